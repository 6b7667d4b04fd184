"""Cost of discovery's reachability plots, compared with scikit-learn and a floor, in one run.

The floor is the least work of an exact method over all pairs: their inner products in float32, by
the installed BLAS (in this many dimensions, an index that prunes pairs does not help). Both use
scikit-learn's core distances, so their share of the time is reported separately.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.progress import Progress, silent
from earshot_server.discovery.reachability import Reachability, reachability

Points = npt.NDArray[np.float64]

PEER_POINTS = 20_000
"""Largest number of points for which scikit-learn is run; larger ones take many minutes."""

_CROWDS = 20
_LEAST = 20
"""Points within a core distance, as needed for a crowd of thousands."""
_SPREAD = 0.3
_ROWS = 512
_T = TypeVar("_T")


def benchmark(
    sizes: list[int],
    dimensions: int,
    threads: int,
    seed: int,
    progress: Progress = silent,
) -> list[dict[str, object]]:
    """Time reachability plots of points in twenty crowds.

    Args:
        sizes: Numbers of points.
        dimensions: Dimensions of a point.
        threads: Threads of BLAS and of scikit-learn's search.
        seed: Seed of the points.
        progress: Callback that receives the number of finished sizes.

    Returns:
        Figures of each size by the names of the JSON output; times are elapsed seconds.

    Raises:
        InvalidParametersError: A number is out of range.
    """
    from threadpoolctl import threadpool_limits

    for size in sizes:
        checks.whole("points", size, 10)
    checks.whole("dimensions", dimensions, 1, 4096)
    checks.whole("threads", threads, 1)
    checks.whole("seed", seed, 0)
    rows = []
    with threadpool_limits(threads):
        reachability(_points(500, dimensions, seed), 5)  # compiles
        for done, size in enumerate(sizes):
            progress("reachability plots", done, len(sizes))
            rows.append(_measured(_points(size, dimensions, seed), threads))
        progress("reachability plots", len(sizes), len(sizes))
    return rows


def _measured(points: Points, threads: int) -> dict[str, object]:
    from sklearn.neighbors import NearestNeighbors

    least = _LEAST
    ours, seconds = _timed(lambda: reachability(points, least))
    core = _timed(lambda: NearestNeighbors(n_neighbors=least).fit(points).kneighbors(points))[1]
    floor = _timed(lambda: _products(points.astype(np.float32)))[1]
    figures: dict[str, object] = {
        "points": len(points),
        "dimensions": points.shape[1],
        "threads": threads,
        "seconds": seconds,
        "core_distances_seconds": core,
        "floor_seconds": floor,
        "peer_seconds": None,
        "speedup": None,
        "same": None,
    }
    if len(points) <= PEER_POINTS:
        theirs, peer = _timed(lambda: _peer(points, least))
        figures |= {"peer_seconds": peer, "speedup": peer / seconds, "same": _same(ours, theirs)}
    return figures


def _points(count: int, dimensions: int, seed: int) -> Points:
    generator = np.random.default_rng(seed)
    crowds = generator.standard_normal((_CROWDS, dimensions))
    own = crowds[generator.integers(0, _CROWDS, count)]
    return np.asarray(own + _SPREAD * generator.standard_normal((count, dimensions)))


def _timed(call: Callable[[], _T]) -> tuple[_T, float]:
    started = time.perf_counter()
    result = call()
    return result, time.perf_counter() - started


def _products(points: npt.NDArray[np.float32]) -> None:
    for start in range(0, len(points), _ROWS):
        points[start : start + _ROWS] @ points.T


def _peer(points: Points, least: int) -> Reachability:
    from sklearn.cluster import compute_optics_graph

    return Reachability(
        *compute_optics_graph(
            points, min_samples=least, max_eps=np.inf, metric="minkowski", p=2,
            metric_params=None, algorithm="auto", leaf_size=30, n_jobs=None,
        )
    )  # fmt: skip


def _same(ours: Reachability, theirs: Reachability) -> bool:
    pairs = (
        (ours.ordering, theirs.ordering), (ours.core, theirs.core),
        (ours.reach, theirs.reach), (ours.before, theirs.before),
    )  # fmt: skip
    return all(np.array_equal(one, other) for one, other in pairs)
