"""Main loop of OPTICS, compiled by numba: visiting points and updating reachability."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

BLOCK = 256
"""Number of points in a block, whose least reachability is stored."""
ABSENT, VISITED = -1, -2
"""Markers in place of the row that holds a point's inner products."""

_DECIMALS = 1e15
"""Scale by which scikit-learn rounds: 15 decimals, the precision of a double."""
MEMORY = 256 * 2**20
"""Bytes for the stored inner products."""
_LEAST_ROWS = 128
_TINY = 1e-30
"""Bound on underflow in float32."""
_STEP = 2.0**-22
"""Four times the relative rounding error of a float32."""


class Left(NamedTuple):
    """State of the m points that were not visited when it was created, in ascending order.

    Attributes:
        ids: Index of each point among all points.
        points: Points, float64 (m, dimensions).
        core: Core distances, rounded.
        reach: Reachability so far.
        before: Point from which each was reached; -1 for none.
        singles: Points about their mean, in units of `scale`, float32 (m, dimensions).
        norms: Half of their squared lengths, less the largest float32 error, float32 (m,).
        bars: Bars of the points (see `bar`), float32 (m,); infinity if visited.
        rows: Row of `products` that holds each point's inner products, or `ABSENT`, or `VISITED`.
        products: Inner products of `singles`, float32 (rows, m).
        low, first: Least reachability of each block and the first point with it (see `lowest`).
        scale: Unit of `singles`, a length.
    """

    ids: Any
    points: Any
    core: Any
    reach: Any
    before: Any
    singles: Any
    norms: Any
    bars: Any
    rows: Any
    products: Any
    low: Any
    first: Any
    scale: float


def begun(
    ids: Any, points: Any, core: Any, reach: Any, before: Any, singles: Any, scale: float
) -> Left:
    """Return the initial state: no point has inner products yet."""
    many, dimensions = points.shape
    # Inner products that are added up in float32, in any order, are off by less than
    # (dimensions + 4) 2^-24 of the mean squared length (Higham 2002, section 3.1), and distances
    # of rounded points by less than 4 2^-24 of it: the margin is twice as much.
    margin = (dimensions + 16) * 2.0**-23
    norms = 0.5 * (1 - margin) * np.square(singles.astype(np.float64)).sum(axis=1) - _TINY
    fit = max(_LEAST_ROWS, MEMORY // (4 * many))
    blocks = -(-many // BLOCK)
    left = Left(
        ids, points, core, reach, before, singles, norms.astype(np.float32),
        np.empty(many, dtype=np.float32), np.full(many, ABSENT),
        np.empty((min(many, fit), many), dtype=np.float32),
        np.empty(blocks), np.empty(blocks, dtype=np.int64), scale,
    )  # fmt: skip
    _begin(left)
    return left


@numba.njit
def _begin(left):  # type: ignore[no-untyped-def]
    for point in range(len(left.ids)):
        reached, dimensions = left.reach[point], left.points.shape[1]
        left.bars[point] = bar(left.norms[point], reached, left.scale, dimensions)
    for block in range(len(left.low)):
        start, end = block * BLOCK, min((block + 1) * BLOCK, len(left.ids))
        left.low[block], left.first[block] = lowest(left.reach, left.rows, start, end)


@numba.njit
def advance(left, ordering, at):  # type: ignore[no-untyped-def]
    """Visit points until the next one's inner products are missing.

    Args:
        left: State of the points; its reach, before, bars, rows, low and first change.
        ordering: Ids in the order of visits; grows from `at`.
        at: Number of points visited before.

    Returns:
        Number of points visited now, and the point whose inner products are missing; -1 if none is.
    """
    while True:
        point, least = -1, np.inf
        for block in range(len(left.low)):
            if left.first[block] >= 0 and (point < 0 or left.low[block] < least):
                point, least = left.first[block], left.low[block]
        if point < 0 or left.rows[point] < 0:
            return at, point
        product, half = left.products[left.rows[point]], left.norms[point]
        left.rows[point], left.bars[point] = VISITED, np.inf
        ordering[at] = left.ids[point]
        at += 1
        for block in range(len(left.low)):
            start, end = block * BLOCK, min((block + 1) * BLOCK, len(left.ids))
            near = False
            for other in range(start, end):
                near |= product[other] - half >= left.bars[other]
            changed = near and reached_from(left, point, product, start, end)
            if changed or block == point // BLOCK:
                left.low[block], left.first[block] = lowest(left.reach, left.rows, start, end)


@numba.njit
def reached_from(left, point, product, start, end):  # type: ignore[no-untyped-def]
    """Update the reachability of the points of a block that a visited point may reach.

    Returns:
        Whether any has changed.
    """
    floor, changed = rounded(left.core[point]), False
    for other in range(start, end):
        if product[other] - left.norms[point] >= left.bars[other] and left.reach[other] > floor:
            apart = distance(left.points[point], left.points[other])
            reached = rounded(max(apart, left.core[point]))
            if reached < left.reach[other]:
                left.reach[other], left.before[other] = reached, left.ids[point]
                norm, dimensions = left.norms[other], left.points.shape[1]
                left.bars[other] = bar(norm, reached, left.scale, dimensions)
                changed = True
    return changed


@numba.njit
def distance(one, other):  # type: ignore[no-untyped-def]
    """Return the Euclidean distance, summed in SciPy's order, so that it is bitwise equal."""
    total = 0.0
    for place in range(len(one)):
        apart = one[place] - other[place]
        total += apart * apart
    return np.sqrt(total)


@numba.njit
def rounded(number):  # type: ignore[no-untyped-def]
    """Round to 15 decimals, as NumPy does."""
    return np.rint(number * _DECIMALS) / _DECIMALS


@numba.njit
def bar(norm, reached, scale, dimensions):  # type: ignore[no-untyped-def]
    """Return the bar for an inner product less half of the visited point's squared norm.

    Below the bar, the distance is at least `reached`, whatever the rounding of the float32 values,
    of the distance itself and of its 15 decimals.
    """
    longest = (reached * (1 + (dimensions + 16) * 2.0**-52) + 2 / _DECIMALS) / scale
    exact = norm - 0.5 * longest * longest
    return np.float32(exact - abs(exact) * _STEP)


@numba.njit
def lowest(reach, rows, start, end):  # type: ignore[no-untyped-def]
    """Return the least reachability from start to end, and the first unvisited point that has it.

    The point is -1 if all were visited.
    """
    least, first = np.inf, -1
    for point in range(start, end):
        if rows[point] != VISITED and (first < 0 or reach[point] < least):
            least, first = reach[point], point
    return least, first
