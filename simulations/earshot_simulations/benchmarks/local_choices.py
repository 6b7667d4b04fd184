"""Value of a phone's choices on the local route at the same ε: selection, and several runs.

Everything is measured on the phone alone, on blobs and on directions scattered around centres on
the sphere; a figure is the mean over seeds with the half-width of its 95 % interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from earshot_client.private_runs import BestOfRuns, clustering_by
from earshot_client.selection import top_centroids
from earshot_protocol.checks import whole
from earshot_protocol.geometry import Geometry, counts, nearest, unit_rows
from earshot_protocol.privacy.local_mechanisms import (
    BestGaussianLloyd,
    BestLaplaceLloyd,
    GaussianLloyd,
    LaplaceLloyd,
    Selection,
    SelectionMethod,
)
from earshot_protocol.randomness import RandomBytes
from earshot_simulations.populations import Blobs

Row = dict[str, str | float]
Progress = Callable[[str, int, int], None]

_PHONES, _RECORDINGS, _SCENES = 10, 200, 10
_K, _TOP = 6, 2
_CHOICES = 10
"""Choices of one phone by one method."""
_DELTA = 1e-6
_DIMENSIONS, _DIRECTIONS, _SPREAD = 8, 6, 0.2

SELECTION_EPSILONS = (0.02, 0.05, 0.1, 0.25)
CLUSTERING_EPSILONS = (1.0, 4.0, 8.0, 16.0)
RUNS = (1, 2, 4, 8)


class _InTheOpen(BestOfRuns):
    """The same law without the runs that hide how many count, since nobody observes them."""

    @property
    def computed(self) -> int:
        """Number of runs computed, none of which is only for show."""
        return 1


def selections(seeds: Sequence[int], progress: Progress) -> list[Row]:
    """Measure the two published centroids by recordings, by method and ε of each choice."""
    shape = (len(SELECTION_EPSILONS), len(SelectionMethod), len(seeds))
    best, lost = np.zeros(shape), np.zeros(shape)
    for place, seed in enumerate(seeds):
        population, random = _blobs(seed), np.random.default_rng([seed, 1]).bytes
        clustering = clustering_by(LaplaceLloyd(1.0, _RECORDINGS), _K)
        for phone in range(_PHONES):
            points = population.recordings(phone).points
            numbers = counts(points, clustering.cluster(points, random), Geometry.EUCLIDEAN)
            most = np.sort(numbers)[-_TOP:].sum()
            for row, epsilon in enumerate(SELECTION_EPSILONS):
                for column, method in enumerate(SelectionMethod):
                    mechanism = Selection(epsilon, _TOP, _RECORDINGS, method)
                    for _ in range(_CHOICES):
                        behind = most - numbers[top_centroids(numbers, mechanism, random)].sum()
                        best[row, column, place] += (behind == 0) / (_CHOICES * _PHONES)
                        lost[row, column, place] += behind / (_CHOICES * _PHONES)
        progress("selection", place + 1, len(seeds))
    return [
        {"epsilon": epsilon, "method": method.value}
        | _figures("the largest two", best[row, column])
        | _figures("recordings lost", lost[row, column])
        for row, epsilon in enumerate(SELECTION_EPSILONS)
        for column, method in enumerate(SelectionMethod)
    ]


def runs(seeds: Sequence[int], progress: Progress) -> list[Row]:
    """Measure the adjusted Rand index of a phone's centroids on its recordings, by runs and ε."""
    rows: list[Row] = []
    cases = [(geometry, epsilon) for geometry in Geometry for epsilon in CLUSTERING_EPSILONS]
    for done, (geometry, epsilon) in enumerate(cases):
        rows += [
            {"geometry": geometry.value, "epsilon": epsilon, "runs": mean}
            | _figures("ari", np.array([_agreement(geometry, epsilon, mean, s) for s in seeds]))
            for mean in RUNS
        ]
        progress("runs", done + 1, len(cases))
    return rows


def benchmark(seeds: int, progress: Progress) -> dict[str, list[Row]]:
    """Return both tables, over the seeds 0, 1, ….

    Raises:
        InvalidParametersError: There are fewer than two seeds, which give no interval.
    """
    some = range(whole("seeds", seeds, 2))
    return {"selection": selections(some, progress), "runs": runs(some, progress)}


def _agreement(geometry: Geometry, epsilon: float, mean: int, seed: int) -> float:
    """Return the mean over the phones of a seed; all settings meet the same recordings."""
    from sklearn.metrics import adjusted_rand_score

    random = np.random.default_rng([seed, 2]).bytes
    spherical = geometry is Geometry.SPHERICAL
    population = None if spherical else _blobs(seed)
    scores = []
    for phone in range(_PHONES):
        if population is None:
            points, truth = _directions(np.random.default_rng([seed, phone, 3]))
        else:
            heard = population.recordings(phone)
            points, truth = heard.points, heard.scenes
        found = _clustered(geometry, epsilon, mean, points, random)
        scores.append(adjusted_rand_score(truth, nearest(points, found, geometry)))
    return float(np.mean(scores))


def _clustered(
    geometry: Geometry,
    epsilon: float,
    mean: int,
    points: npt.NDArray[np.float32],
    random: RandomBytes,
) -> npt.NDArray[np.float32]:
    spherical = geometry is Geometry.SPHERICAL
    if mean == 1:
        once = GaussianLloyd(epsilon, _DELTA, _RECORDINGS)
        one = once if spherical else LaplaceLloyd(epsilon, _RECORDINGS)
        return clustering_by(one, _K).cluster(points, random)
    several: BestGaussianLloyd | BestLaplaceLloyd = (
        BestGaussianLloyd(epsilon, _DELTA, _RECORDINGS, mean)
        if spherical
        else BestLaplaceLloyd(epsilon, _RECORDINGS, mean)
    )
    return _InTheOpen(clustering_by(several.each, _K), several).cluster(points, random)


def _blobs(seed: int) -> Blobs:
    return Blobs(_PHONES, _RECORDINGS, _SCENES, 0.0, seed)


def _directions(
    generator: np.random.Generator,
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int16]]:
    """Return a phone's recordings on the sphere and the direction each is scattered around."""
    centres = unit_rows(generator.standard_normal((_DIRECTIONS, _DIMENSIONS)))
    truth = generator.integers(_DIRECTIONS, size=_RECORDINGS, dtype=np.int16)
    scatter = _SPREAD * generator.standard_normal((_RECORDINGS, _DIMENSIONS))
    return unit_rows(centres[truth] + scatter).astype(np.float32), truth


def _figures(name: str, values: npt.NDArray[np.float64]) -> Row:
    width = 1.96 * float(values.std(ddof=1)) / math.sqrt(len(values))
    return {name: float(values.mean()), f"{name} ±": width}
