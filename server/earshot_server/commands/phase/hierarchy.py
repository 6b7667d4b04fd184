"""Labels of a phase, and the choices that polls offer for each, from an operator's options."""

from __future__ import annotations

from pathlib import Path

from earshot_protocol.environments import LabelHierarchy, default_hierarchy
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases.parameters import Choices
from earshot_server.phases.hierarchy_file import read_hierarchy


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
    hierarchy = default_hierarchy() if file is None else read_hierarchy(file, "--hierarchy")
    return hierarchy.classes, tuple(hierarchy.groups.values())
