"""Labels of a phase, and the choices that polls offer for each, from an operator's options."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from earshot_protocol.environments import LabelHierarchy, default_hierarchy
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases.parameters import Choices
from earshot_protocol.text import decoded

LARGEST_FILE = 2**20


def asked(labels: str | None, file: Path | None) -> tuple[tuple[str, ...], Choices]:
    """Return the labels of a phase, and the choices of each.

    Args:
        labels: Labels, separated by commas; polls then offer the labels themselves.
        file: JSON file: an object of classes, each with a list of choices.

    Returns:
        The labels and choices; by default `default_hierarchy`.

    Raises:
        InvalidInputError: Both are given, or they are not a valid hierarchy.
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
    text = decoded(content, f"--hierarchy {file}")
    try:
        read = json.loads(text, object_pairs_hook=_once)
        return LabelHierarchy(msgspec.convert(read, dict[str, tuple[str, ...]]))
    except (ValueError, RecursionError, InvalidInputError) as error:
        raise InvalidInputError(
            f'--hierarchy {file}: {error}; give JSON such as {{"car": ["taxi", "car park"]}}'
        ) from error


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object; refuse repeated names, which `json` would silently merge."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidInputError("a class is named twice")
    return found
