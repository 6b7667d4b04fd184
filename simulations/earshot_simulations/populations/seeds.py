"""Generators of a few numbers each, one for every phone: made by the million."""

from __future__ import annotations

import numpy as np

_WORD = 2**32


def generator(*seed: int) -> np.random.Generator:
    """The same as `np.random.default_rng(seed)`, in half the time where all numbers are small.

    Args:
        seed: one whole number or more, each at least 0.

    Raises:
        ValueError, OverflowError: there is none, or one is negative.
    """
    # NumPy makes 32-bit words of whole numbers, one by one; an array of words it takes as it is.
    return np.random.default_rng(
        np.array(seed, dtype=np.uint32) if max(seed) < _WORD else list(seed)
    )
