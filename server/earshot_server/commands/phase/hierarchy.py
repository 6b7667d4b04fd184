"""Labels that a phase asks for, and what polls offer for each, as an operator gives them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from earshot_protocol.environments import LabelHierarchy, default_hierarchy
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases.parameters import Choices

LARGEST_FILE = 2**20


def asked(labels: str | None, file: Path | None) -> tuple[tuple[str, ...], Choices]:
    """Return the labels of a phase, and the choices of each.

    Args:
        labels: Labels, separated by commas, which polls then offer as they are.
        file: JSON file: an object of classes, each with a list of choices.

    Returns:
        The labels and choices; by default those of everyday life.

    Raises:
        InvalidInputError: Both are given, or they are not a hierarchy.
    """
    if labels is not None and file is not None:
        raise InvalidInputError("--labels and --hierarchy: give one of them")
    if labels is not None:
        return LabelHierarchy.flat(name.strip() for name in labels.split(",")).classes, ()
    hierarchy = default_hierarchy() if file is None else _read(file)
    return hierarchy.classes, tuple(hierarchy.groups.values())


def _read(file: Path) -> LabelHierarchy:
    try:
        with file.open("rb") as opened:
            content = opened.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InvalidInputError(
            f"--hierarchy {file}: cannot be read ({error.strerror}); name a JSON file of classes"
        ) from error
    if len(content) > LARGEST_FILE:
        raise InvalidInputError(f"--hierarchy {file}: at most {LARGEST_FILE} bytes are read")
    try:
        groups = msgspec.json.decode(content, type=dict[str, tuple[str, ...]])
        return LabelHierarchy(groups)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, InvalidInputError) as error:
        raise InvalidInputError(
            f'--hierarchy {file}: {error}; give JSON such as {{"car": ["taxi", "car park"]}}'
        ) from error
