"""Short texts for objects that hold arrays: shapes in place of pages of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

_LONG = 120
"""Most letters of a value."""
_FEW = 6
"""Most entries of a tuple or a table that are written out."""


def shapes(kind: str, values: Mapping[str, Any]) -> str:
    """Return a short `repr` of an object that holds arrays: their shapes, not their numbers."""
    told = ", ".join(f"{name}={_shape(value)}" for name, value in values.items())
    return f"{kind}({told})"


def _shape(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype} {value.shape}"
    if isinstance(value, tuple | list | Mapping) and len(value) > _FEW:
        return f"<{len(value)} entries>"
    told = repr(value)
    return told if len(told) <= _LONG else f"<{type(value).__name__}>"
