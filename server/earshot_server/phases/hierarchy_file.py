"""Labels and the choices that polls offer for each, in a JSON file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.text import text_of


def read_hierarchy(file: Path, option: str) -> LabelHierarchy:
    """Read an object of classes, each with a list of choices.

    Args:
        file: JSON file.
        option: Name under which the file was given, for errors.

    Raises:
        InvalidInputError: The file cannot be read, or holds no valid hierarchy.
    """
    text = text_of(file, "a JSON file of classes", f"{option} {file}")
    try:
        read = json.loads(text, object_pairs_hook=_once)
        return LabelHierarchy(msgspec.convert(read, dict[str, tuple[str, ...]]))
    except (ValueError, RecursionError, InvalidInputError) as error:
        raise InvalidInputError(
            f'{option} {file}: {error}; give JSON such as {{"car": ["taxi", "car park"]}}'
        ) from error


def _once(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Build a JSON object; refuse repeated names, which `json` would silently merge."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidInputError("a class is named twice")
    return found
