"""Reachability plot of OPTICS (Ankerst et al. 1999), faster than scikit-learn's.

Ordering, reachability, core distances and predecessors are bitwise the same as scikit-learn's, with
the same choice among ties, in a fraction of the time. The core distances are computed by
scikit-learn. Most of its remaining time goes into the distances of each visited point to all
others, nearly all of which exceed the other point's reachability and change nothing. Inner products
in float32, of many points at a time, prove this for most pairs; only the rest are computed exactly.
"""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import finite_rows

if TYPE_CHECKING:
    from earshot_server.discovery.prim import Left

Indices = npt.NDArray[np.int64]

_BATCH = 64
"""Number of points whose inner products are computed together."""
FEW = 2048
"""Number of remaining points below which visited points are no longer removed."""


@dataclass(frozen=True)
class Reachability:
    """Reachability plot.

    Attributes:
        ordering: Points in the order of visits, (points,).
        core: Distance within which each point has enough neighbours, (points,).
        reach: Minimum, over the points visited before, of the larger of their core distance and
            their distance to the point; infinity for the first.
        before: Point that attains this minimum; -1 for the first.
    """

    ordering: Indices
    core: Numbers
    reach: Numbers
    before: Indices


class Neighbours:
    """Nearest neighbours of points, cached for several plots of the same points.

    A search for many neighbours also serves searches for fewer.
    """

    def __init__(self, rows: Numbers) -> None:
        """Store the points; the search is lazy.

        Args:
            rows: Points, float64 (points, dimensions), finite.
        """
        self.rows = rows
        self._distances: Numbers = np.empty((len(rows), 0))
        self._places: Indices = np.empty((len(rows), 0), dtype=np.int64)

    def nearest(self, count: int) -> tuple[Numbers, Indices]:
        """Return the distances and indices of each point's nearest points, itself among them.

        Args:
            count: Number of neighbours, from 1 to the number of points.

        Returns:
            Distances float64 and indices int64, (points, count), the nearest first.
        """
        if count > self._distances.shape[1]:
            self._distances, self._places = self._search(count).kneighbors(self.rows)
        return self._distances[:, :count], self._places[:, :count]

    def of(self, others: Numbers, count: int) -> Indices:
        """Return the indices of the points nearest to each of `others`, int64 (others, count)."""
        found = self._search(count).kneighbors(others, return_distance=False)
        return np.asarray(found, dtype=np.int64)

    def _search(self, count: int) -> Any:
        from sklearn.neighbors import NearestNeighbors

        # `n_neighbors` determines the algorithm, and so the last bit of distances, as in OPTICS.
        return NearestNeighbors(n_neighbors=count).fit(self.rows)


def reachability(
    points: npt.ArrayLike,
    least: int,
    weights: npt.NDArray[np.integer] | None = None,
    neighbours: Neighbours | None = None,
) -> Reachability:
    """Return the reachability plot at an unbounded radius, by Euclidean distance.

    Args:
        points: Points, (points, dimensions); unit rows for an order by angles.
        least: Number of points within a core distance, including the point itself.
        weights: Number of points at each position; 1 each if None. Points at one position are
            visited together and are one point of the plot.
        neighbours: Cached neighbours of the points, if several plots are made of them.

    Raises:
        InvalidInputError: The matrix is not finite, or weights are not whole numbers above 0.
        InvalidParametersError: `least` is below 2, or above the weighted number of points.
    """
    rows = finite_rows("points", points)
    counts = _checked(weights, len(rows))
    checks.whole("least", least, 2, len(rows) if counts is None else int(counts.sum()))
    if importlib.util.find_spec("numba") is None:  # it supports new interpreters late
        return _by_scikit_learn(rows, least, counts)
    return _visited(rows, _core_distances(neighbours or Neighbours(rows), least, counts))


def _checked(weights: npt.NDArray[np.integer] | None, points: int) -> Indices | None:
    if weights is None:
        return None
    counts = np.asarray(weights)
    if counts.shape != (points,) or counts.dtype.kind not in "iu" or counts.min(initial=1) < 1:
        raise InvalidInputError(f"weights: give a whole number above 0 for each of {points} points")
    return counts.astype(np.int64)


def _core_distances(neighbours: Neighbours, least: int, counts: Indices | None) -> Numbers:
    """Return core distances, rounded as in scikit-learn, so that the same points tie."""
    found, places = neighbours.nearest(min(least, len(neighbours.rows)))
    if counts is None:
        core = found[:, -1]
    else:
        enough = np.argmax(np.cumsum(counts[places], axis=1) >= least, axis=1)
        core = np.take_along_axis(found, enough[:, None], axis=1)[:, 0]
    return np.asarray(np.around(core, decimals=np.finfo(np.float64).precision))


def _by_scikit_learn(rows: Numbers, least: int, counts: Indices | None) -> Reachability:
    from sklearn.cluster import compute_optics_graph

    copies = np.repeat(np.arange(len(rows)), 1 if counts is None else counts)
    ordering, core, reach, before = compute_optics_graph(
        rows[copies], min_samples=least, max_eps=np.inf, metric="minkowski", p=2,
        metric_params=None, algorithm="auto", leaf_size=30, n_jobs=None,
    )  # fmt: skip
    # Of the points at one position, the first visited has the reachability of all.
    visited = np.sort(np.unique(copies[ordering], return_index=True)[1])
    chosen = ordering[visited]
    chosen = chosen[np.argsort(copies[chosen])]
    whence = np.where(before[chosen] < 0, -1, copies[before[chosen]])
    return Reachability(copies[ordering[visited]], core[chosen], reach[chosen], whence)


def _visited(rows: Numbers, core: Numbers) -> Reachability:
    from earshot_server.discovery import prim

    count = len(rows)
    reach, before = np.full(count, np.inf), np.full(count, -1, dtype=np.int64)
    ordering, at, ids = np.empty(count, dtype=np.int64), 0, np.arange(count)
    centred = rows - rows.mean(axis=0)
    scale = float(np.sqrt(np.square(centred).sum(axis=1).max())) or 1.0
    singles = (centred / scale).astype(np.float32)
    while len(ids):
        left = prim.begun(ids, rows[ids], core[ids], reach[ids], before[ids], singles[ids], scale)
        enough = at + len(ids) // 2 if len(ids) > FEW else count
        point = 0
        while at < enough and point >= 0:
            at, point = prim.advance(left, ordering, at)
            if point >= 0:
                _multiply(left, point)
        reach[ids], before[ids] = left.reach, left.before
        ids = ids[left.rows != prim.VISITED]
    return Reachability(ordering, core, reach, before)


def _multiply(left: Left, point: int) -> None:
    """Compute the inner products of a point, and of those likely to be visited next."""
    from earshot_server.discovery import prim

    present = np.flatnonzero(left.rows >= 0)
    absent = np.flatnonzero(left.rows == prim.ABSENT)
    absent = absent[absent != point]
    if len(absent) >= _BATCH:
        absent = absent[np.argpartition(left.reach[absent], _BATCH - 1)[: _BATCH - 1]]
    chosen = np.concatenate([[point], absent])
    free = np.setdiff1d(np.arange(len(left.products)), left.rows[present], assume_unique=True)
    lacking = len(chosen) - len(free)
    if lacking > 0:
        last = present[np.argpartition(left.reach[present], -lacking)[-lacking:]]
        free = np.concatenate([free, left.rows[last]])
        left.rows[last] = prim.ABSENT
    left.rows[chosen] = free[: len(chosen)]
    left.products[left.rows[chosen]] = left.singles[chosen] @ left.singles.T
