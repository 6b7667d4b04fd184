"""The loop of OPTICS as numba compiles it: who is visited next, and who is reached from there."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

BLOCK = 256
"""Points whose least reachability is kept together."""
ABSENT, VISITED = -1, -2
"""In place of the row that holds a point's inner products."""

_DECIMALS = 1e15
"""scikit-learn rounds to as many decimals as a double is said to have."""
MEMORY = 256 * 2**20
"""Bytes of inner products that are kept, of points that are visited soon."""
_LEAST_ROWS = 128
_TINY = 1e-30
"""More than all that underflows in float32."""
_STEP = 2.0**-22
"""Four times what a float32 is off, relative to it."""


class Left(NamedTuple):
    """Points that were not visited when this was made, m in ascending order.

    Attributes:
        ids: of each, among all points.
        points: float64 (m, dimensions).
        core: core distances, rounded.
        reach: reachability so far.
        before: from where, -1 if from nowhere.
        singles: float32 (m, dimensions), the points about their mean, in units of `scale`.
        norms: float32 (m,), half of their squared lengths, less what float32 may be off.
        bars: float32 (m,), see `bar`; infinity where visited.
        rows: of each, where in `products` its inner products are, or `ABSENT`, or `VISITED`.
        products: float32 (rows, m), of `singles`.
        low, first: of each block of points, see `lowest`.
        scale: a length.
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
    """Points none of which has its inner products yet."""
    many, dimensions = points.shape
    # Inner products that are added up in float32, in any order, are off by less than
    # (dimensions + 4) 2^-24 of the mean squared length (Higham 2002, section 3.1), and so are
    # distances of points that were rounded, by less than 4 2^-24 of it: margin is twice as much.
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


@numba.njit(cache=True)
def _begin(left):  # type: ignore[no-untyped-def]
    for point in range(len(left.ids)):
        reached, dimensions = left.reach[point], left.points.shape[1]
        left.bars[point] = bar(left.norms[point], reached, left.scale, dimensions)
    for block in range(len(left.low)):
        start, end = block * BLOCK, min((block + 1) * BLOCK, len(left.ids))
        left.low[block], left.first[block] = lowest(left.reach, left.rows, start, end)


@numba.njit(cache=True)
def advance(left, ordering, at):  # type: ignore[no-untyped-def]
    """Visit points until one comes whose inner products are not there.

    Args:
        left: of which reach, before, bars, rows, low and first change.
        ordering: ids as they are visited; grows from `at`.
        at: how many were visited.

    Returns:
        How many are visited now, and the point whose inner products are missing; -1 if none is.
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


@numba.njit(cache=True)
def reached_from(left, point, product, start, end):  # type: ignore[no-untyped-def]
    """Measure those of a block that may be nearer than their reachability; whether one is."""
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


@numba.njit(cache=True)
def distance(one, other):  # type: ignore[no-untyped-def]
    """The Euclidean distance, added up in the order of SciPy's, to the last bit."""
    total = 0.0
    for place in range(len(one)):
        apart = one[place] - other[place]
        total += apart * apart
    return np.sqrt(total)


@numba.njit(cache=True)
def rounded(number):  # type: ignore[no-untyped-def]
    """To 15 decimals, as NumPy does it."""
    return np.rint(number * _DECIMALS) / _DECIMALS


@numba.njit(cache=True)
def bar(norm, reached, scale, dimensions):  # type: ignore[no-untyped-def]
    """What an inner product, less half of the visited point's squared norm, must come to.

    Below it the distance is not below `reached`, however all that is in float32 was rounded, and
    the distance itself, and its rounding to 15 decimals.
    """
    longest = (reached * (1 + (dimensions + 16) * 2.0**-52) + 2 / _DECIMALS) / scale
    exact = norm - 0.5 * longest * longest
    return np.float32(exact - abs(exact) * _STEP)


@numba.njit(cache=True)
def lowest(reach, rows, start, end):  # type: ignore[no-untyped-def]
    """The least reachability from start to end, and the first point not visited that has it.

    -1 for the point where all were visited.
    """
    least, first = np.inf, -1
    for point in range(start, end):
        if rows[point] != VISITED and (first < 0 or reach[point] < least):
            least, first = reach[point], point
    return least, first
