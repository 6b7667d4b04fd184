"""Conversion of a caller's values to plain types of Python."""

from __future__ import annotations

import dataclasses
import numbers
import os
from typing import Any

import numpy as np

_PLAIN = (bool, int, float, str, type(None))


def plain_value(value: Any) -> Any:
    """Return a number of any kind as `int` or `float`, and a path as `str`; others as they are.

    A number of NumPy keeps its own value: `numpy.float32(0.1)` is 0.10000000149011612. An array
    without dimensions is the number in it.
    """
    if type(value) in _PLAIN:
        return value
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, np.bool_):
        return bool(value)
    if isinstance(value, np.str_):
        return str(value)
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        try:
            return int(value) if isinstance(value, numbers.Integral) else float(value)
        except OverflowError:  # a fraction too large for a float
            return value
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def hold_plain(settings: Any) -> None:
    """Replace every value of a frozen dataclass, and in its tuples, by the plain one."""
    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        held = tuple(map(plain_value, value)) if isinstance(value, tuple) else plain_value(value)
        object.__setattr__(settings, field.name, held)
