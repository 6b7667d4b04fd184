"""Transcripts of a phone's private clustering: every draw of noise and what it was added to.

What the end result hides, a transcript shows. It is taken from the code that phones run: while it
is watched, its samplers note what they were asked for and what they returned, and the function
that adds points up notes around which centroids.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_client import clustering
from earshot_client.clustering import LocalClustering
from earshot_protocol.geometry import Geometry
from earshot_simulations.auditing.watching import replaced

Integers = npt.NDArray[np.int64]

LAPLACE = "discrete_laplace"
GAUSSIAN = "discrete_gaussian"
_SAMPLERS = (LAPLACE, GAUSSIAN)
_SUMS = "cluster_sums"


@dataclass(frozen=True)
class Draw:
    """Noise for several numbers at once: by which sampler, of what scale (or σ)."""

    sampler: str
    scale: float
    noise: Integers


@dataclass(frozen=True)
class Iteration:
    """What one iteration released.

    Attributes:
        centroids: around which points were added up.
        geometry: which centroid is nearest.
        draws: what was added to some of the counts and sums.
    """

    centroids: npt.NDArray[np.float64]
    geometry: Geometry
    draws: list[Draw] = field(default_factory=list)

    def differences(
        self, steps: npt.NDArray[np.float64], others: npt.NDArray[np.float64]
    ) -> list[Integers]:
        """By how much a neighbour's numbers are larger than a data set's, for each draw.

        Args:
            steps: points of the data set, in whole steps.
            others: those of the neighbour.
        """
        ours = clustering.cluster_sums(steps, self.centroids, self.geometry)
        theirs = clustering.cluster_sums(others, self.centroids, self.geometry)
        by_shape = {one.shape: two - one for one, two in zip(ours, theirs, strict=True)}
        return [by_shape[draw.noise.shape] for draw in self.draws]


@contextlib.contextmanager
def watched() -> Iterator[list[Iteration]]:
    """Note the iterations of every clustering that runs meanwhile, in this thread."""
    iterations: list[Iteration] = []
    before = {name: getattr(clustering, name) for name in (*_SAMPLERS, _SUMS)}

    def sums(steps: Any, centroids: Any, geometry: Geometry) -> Any:
        iterations.append(Iteration(np.array(centroids), geometry))
        return before[_SUMS](steps, centroids, geometry)

    def watching(name: str) -> Any:
        def sampler(scale: float, *given: Any) -> Integers:
            noise: Integers = before[name](scale, *given)
            iterations[-1].draws.append(Draw(name, scale, noise))
            return noise

        return sampler

    samplers = {name: watching(name) for name in _SAMPLERS}
    with replaced(clustering, **samplers, **{_SUMS: sums}):
        yield iterations


def depends_on_noisy_numbers_alone(
    run: LocalClustering,
    points: npt.NDArray[np.float64],
    others: npt.NDArray[np.float64],
    random: Callable[[int], bytes],
) -> bool:
    """Whether what a clustering returns follows from its noisy numbers and from nothing else.

    It runs once as ever, and once on other points whose noise is such that all noisy numbers are
    those of the first run. If anything else of the points gets through, the results differ.

    Args:
        run: the clustering.
        points: of the first run, (recordings, dimensions).
        others: of the second.
        random: of the first run's noise.
    """
    released: list[Integers] = []
    numbers: dict[tuple[int, ...], Integers] = {}
    sums_before = clustering.cluster_sums
    before = {name: getattr(clustering, name) for name in _SAMPLERS}

    def sums(*given: Any) -> Any:
        result = sums_before(*given)
        numbers.update({each.shape: each.copy() for each in result})
        return result

    def noting(name: str) -> Any:
        def sampler(*given: Any) -> Integers:
            noise: Integers = before[name](*given)
            released.append(numbers[noise.shape] + noise)
            return noise

        return sampler

    def repeating(scale: float, shape: tuple[int, ...], *given: Any) -> Integers:
        return released.pop(0) - numbers[shape]

    with replaced(clustering, cluster_sums=sums, **{name: noting(name) for name in _SAMPLERS}):
        first = run.cluster(points, random)
    with replaced(clustering, cluster_sums=sums, **dict.fromkeys(_SAMPLERS, repeating)):
        second = run.cluster(others, random)
    return np.array_equal(first, second) and not released
