"""Temporary replacement of functions by recording ones, or by a planted fault."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def replaced(place: Any, **functions: Any) -> Iterator[None]:
    """Replace some functions of a module or class until the block ends, for all threads.

    Args:
        place: Module or class.
        functions: Replacements, by name.
    """
    before = {name: getattr(place, name) for name in functions}
    try:
        for name, function in functions.items():
            setattr(place, name, function)
        yield
    finally:
        for name, function in before.items():
            setattr(place, name, function)
