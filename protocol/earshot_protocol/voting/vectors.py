"""Vectors of bounded length, which phones put into a sum, and their reading by the server.

A phone that has summed up its recordings in each of k cells, S of shape (k, d), divides by the L2
norm of its counts: row j of S has a norm of at most c_j, so the result has one of at most 1. One
recording more or less moves it by at most 1, too. With u the recording's unit vector, a = ‖c‖ with
it and b = ‖c'‖ > 0 without: S/a − S'/b = u/a − (S'/b)(a − b)/a, and a − b ≤ 1, so its norm is at
most 2/a ≤ 1 for a ≥ 2; a < 2 leaves c² of 2 and 3, where all counts are ones in cells of their own
and it comes to 0.77. Where b = 0 it is ‖u‖ = 1. The same holds for a table of counts divided by its
norm.

A vector becomes whole numbers without growing: its norm of 1 is a little less than `GRID` − √ℓ/2
steps, ℓ its entries, and rounding each to the nearest whole number adds √ℓ/2 at most.

One recording moves whole numbers by no more than `GRID`, either, wherever rows are short beside the
whole: only entries that are not zero are rounded. With b = 0 the vector is rounded once. With a
single row in use, of d entries, two roundings add √d at most, so it moves by `GRID` − √ℓ/2 + √d.
With two rows or more in use, the recording is alone in its row, at a right angle to the others, and
moves the vector by 0.77 at most; or it is one of several, and then a ≥ √5, and it moves it by 2/√5
at most. Two roundings add √ℓ to that. From four rows on, up to 600,000 entries in all, none of this
is above `GRID` (`VectorSum.sensitivity`).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.mechanisms import GRID

_ROUNDOFF = 2.0**-20
"""Steps far above the errors of doubles between a point and its step."""


def bounded(
    values: npt.NDArray[np.float64], counts: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return values divided by the L2 norm of counts; zeros where all counts are zero."""
    norm = math.sqrt(float(np.square(counts, dtype=np.float64).sum()))
    return values / norm if norm else np.zeros(values.shape)


def quantized(vector: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return a vector of norm at most 1 as whole numbers of norm at most `GRID`, in the same shape.

    Raises:
        InvalidInputError: The vector is longer or not finite; nothing of it may be released.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # an overflowing vector is longer than 1
        steps = np.rint(vector * unit_steps(vector.size))
        # Sums of squares of whole numbers below 2^53 are exact, so this comparison is, too.
        fits = float(np.square(steps).sum()) <= GRID**2
    if not fits:
        raise InvalidInputError("a vector must be finite and at most 1 long to be summed")
    return steps.astype(np.int64)


def unit_steps(length: int) -> float:
    """Return the steps of the grid in a length of 1, for a vector of `length` entries."""
    return GRID - math.sqrt(length) / 2 - _ROUNDOFF
