"""Vectors of bounded length, which phones put into a sum, and their reading by the server.

A phone that has summed up its recordings in each of k cells, S of shape (k, d), divides by the L2
norm of its counts: row j of S has a norm of at most c_j, so the result has one of at most 1. One
recording more or less moves it by at most 1, too. With u the recording's unit vector, a = ‖c‖ with
it and b = ‖c'‖ > 0 without: S/a − S'/b = u/a − (S'/b)(a − b)/a, and a − b ≤ 1, so its norm is at
most 2/a ≤ 1 for a ≥ 2; a < 2 leaves c² of 2 and 3, where all counts are ones in cells of their own
and it comes to 0.77. Where b = 0 it is ‖u‖ = 1.

Sums by label are the same with labels for cells. Where choices have rows of their own, too, every
recording counts twice: in its label's row and in its choice's, or, if it has no choice, in a second
count of its label that has no row. Counts without a row make the vector shorter, so a phone's norm
is at most 1 still. A recording adds W, ‖W‖ ≤ √2, and a − b ≤ √2, so W/a − (S'/b)(a − b)/a has a
norm of at most 2√2/a, that is 2/√5 for a² ≥ 10. Where b = 0 it is at most √2/a = 1. Two recordings
of one label and choice (a² = 8) move it by 1, if they are opposite: (u − u')/√8 in each of two
rows. All others with a² < 10 move it by no more than √.756 = 0.87, which two of one label and
different choices do (a² = 6): docs/privacy.md lists them. If a recording without a choice counted
once, one could move the vector by √1.2 (1.07 with the entry that counts, below). Splitting rows by
kind of sound changes none of this: a label's row of one kind is a row like any other, and both
counts of a recording are of its own kind.

A sum by label also counts the unit vectors of a row (`counted`). Each gets one more entry, the same
for all, and its other entries are scaled so that it stays a unit vector: u is (√(1 − q²) u, q) in
everything above.

A vector becomes whole numbers without growing: its norm of 1 is a little less than `GRID` − √ℓ/2
steps, ℓ its entries, and rounding each to the nearest whole number adds √ℓ/2 at most.

One recording moves whole numbers by no more than `GRID`, too, where the rows that it adds to are
short compared with the whole: only entries that are not zero are rounded. With b = 0 the vector is
rounded once. If all recordings are in one cell, or all of one label and choice, the rows in use
have r entries (d, or 2d), and two roundings add √r at most, so the vector moves by `GRID` − √ℓ/2 +
√r. Otherwise it moves by at most 2/√5 before it is rounded: with rows for cells or labels alone,
the recording is alone in its row, at a right angle to the others, and moves the vector by 0.77 at
most, or it is one of several, and then a ≥ √5; with rows for choices, see above. Two roundings add
√ℓ to that. Where ℓ is at least 4r, up to 600,000 entries in all, none of this is above `GRID`
(`moved_by_direction`).

Counts are projected instead of divided (`projected`): c becomes P(c)/B, P(c) the nearest point to c
in the ball of radius B. A projection onto a convex set never moves two points apart: for p = P(x)
and q = P(y), (x − p)·(q − p) ≤ 0 and (y − q)·(p − q) ≤ 0, so ‖p − q‖² ≤ (x − y)·(p − q), and
‖p − q‖ ≤ ‖x − y‖ by Cauchy and Schwarz. A recording adds 1 to one entry of c, so it moves P(c)/B by
at most 1/B, and whole numbers by (`GRID` − √ℓ/2)/B + √ℓ, as two roundings change the difference of
an entry by at most 1. With up to two million entries it never moves them by more than `GRID`: for
B ≥ 2 the bound is smaller. For B = 1 either there is no other recording, and one of the two vectors
is zeros; or both counts are projected onto the unit sphere, at an angle of at most 45°, which one
recording and one of another entry make: a distance of 0.77.

A confusion matrix is divided by the norm of the labelled recordings (`bounded`). T_kj of the r_k
recordings of label k have name j, and the others have none; it becomes T/g, g = max(1, ‖r‖). As
Σ_j T_kj ≤ r_k, its norm is at most ‖r‖/g ≤ 1. A recording more adds E, ‖E‖ ≤ 1, and makes g to g',
g' − g ≤ 1: it moves T/g by E/g' − (T/g)(g' − g)/g'. Without others g = g' = 1, and it is ‖E‖ ≤ 1.
Else g'² ≥ g² + 1 ≥ 2; no entry is negative, so the squared norm is at most (1 + (g' − g)²)/g'² ≤
2/g'² ≤ 1.

Two vectors in one sum are divided by √2 (`joined`), so that the norm of both together is at most 1.
A recording moves projected counts and confusion by √(1/B² + 1)/√2, and whole numbers by √ℓ more.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.mechanisms import GRID

COUNTED = 0.25
"""Last entry of the unit vector of a labelled recording, q, whose sum counts them."""
UNCOUNTED = math.sqrt(1 - COUNTED**2)
"""Length of its other entries together."""
COUNTS = 1
"""Entries of such a vector beside its dimensions: the one that counts."""
_ROUNDOFF = 2.0**-20
"""Steps far above the errors of doubles between a point and its step."""


def counted(
    sums: npt.NDArray[np.float64], counts: npt.NDArray[np.integer[Any]]
) -> npt.NDArray[np.float64]:
    """Return sums of unit vectors with one more entry, which counts the vectors.

    Args:
        sums: Sum of the unit vectors of each row, (..., rows, dimensions).
        counts: Number of unit vectors of each row, (..., rows).

    Returns:
        float64 (..., rows, dimensions + 1).
    """
    return np.concatenate([UNCOUNTED * sums, COUNTED * counts[..., None]], axis=-1)


def bounded(
    values: npt.NDArray[np.float64] | npt.NDArray[np.int64], counts: npt.NDArray[np.int64]
) -> npt.NDArray[np.float64]:
    """Return values divided by the L2 norm of counts, or by 1 where all counts are zero."""
    return values / max(1.0, _norm(counts))


def projected(counts: npt.NDArray[np.int64], radius: int) -> npt.NDArray[np.float64]:
    """Return counts projected onto the ball of this radius, over the radius: of norm at most 1."""
    return counts / max(radius, _norm(counts))


def _norm(counts: npt.NDArray[np.int64]) -> float:
    return math.sqrt(float(np.square(counts, dtype=np.float64).sum()))


def moved_by_direction(length: int, row: int) -> float:
    """Return the most that one recording moves sums of directions (`bounded`), L2 in steps.

    Args:
        length: Number of entries of the vector, ℓ.
        row: Number of entries that one recording adds to, r.
    """
    rounded = math.sqrt(length)
    longest = GRID - rounded / 2
    return max(GRID, longest + math.sqrt(row), 2 / math.sqrt(5) * longest + rounded)


def moved_by_count(length: int, radius: int) -> float:
    """Return the most that one recording moves projected counts (`projected`), L2 in steps.

    Args:
        length: Number of entries of the vector, ℓ.
        radius: Length to which counts are projected, B.

    Raises:
        InvalidParametersError: The radius is not a positive whole number.
    """
    checks.whole("radius", radius)
    rounded = math.sqrt(length)
    return min(GRID, (GRID - rounded / 2) / radius + rounded)


def joined(
    first: npt.NDArray[np.float64], second: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """Return the entries of two vectors of norm at most 1 as one of norm at most 1."""
    return np.concatenate([first.ravel(), second.ravel()]) / math.sqrt(2)


def moved_with_confusion(length: int, radius: int) -> float:
    """Return the most that one recording moves counts with a confusion matrix, L2 in steps.

    Args:
        length: Number of entries of both, ℓ.
        radius: Length to which counts are projected, B.

    Raises:
        InvalidParametersError: The radius is not a positive whole number.
    """
    checks.whole("radius", radius)
    rounded = math.sqrt(length)
    return (GRID - rounded / 2) * math.sqrt((1 + 1 / radius**2) / 2) + rounded


def quantized(vector: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    """Return a vector of norm at most 1 as whole numbers of norm below `GRID`, in the same shape.

    Raises:
        InvalidInputError: The vector is longer or not finite; it must not be released.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # an overflowing vector is longer than 1
        steps = np.rint(vector * unit_steps(vector.size))
        # Sums of squares of whole numbers below 2^53 are exact, so this comparison is, too.
        fits = float(np.square(steps).sum()) < GRID**2
    if not fits:
        raise InvalidInputError("a vector must be finite and at most 1 long to be summed")
    return steps.astype(np.int64)


def unit_steps(length: int) -> float:
    """Return the steps of the grid in a length of 1, for a vector of `length` entries."""
    return GRID - math.sqrt(length) / 2 - _ROUNDOFF
