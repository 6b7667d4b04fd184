"""Temporary replacement of a module's functions by recording ones, or by a planted fault."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any


@contextlib.contextmanager
def replaced(place: Any, **functions: Any) -> Iterator[None]:
    """Replace some functions of a module until the block ends.

    They are replaced for the whole process, whichever thread calls them.

    Args:
        place: Module.
        functions: Functions by the names that they have there.
    """
    before = {name: getattr(place, name) for name in functions}
    try:
        for name, function in functions.items():
            setattr(place, name, function)
        yield
    finally:
        for name, function in before.items():
            setattr(place, name, function)
