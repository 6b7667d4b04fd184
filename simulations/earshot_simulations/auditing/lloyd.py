"""Private clustering on a phone, audited on its transcripts: all noisy sums and counts.

A transcript shows faults that the end result hides. It is recorded from the code that phones run:
the samplers' arguments and results, and the centroids around which points are added up.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_client import clustering
from earshot_client.clustering import GRID, LocalClustering, box_grid, sphere_grid
from earshot_protocol.arrays import Whole
from earshot_protocol.geometry import Geometry
from earshot_protocol.privacy.local_mechanisms import GaussianLloyd, LaplaceLloyd
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import (
    EXACT,
    SAMPLED,
    Check,
    Finding,
    Result,
    Technique,
)
from earshot_simulations.auditing.losses import (
    Losses,
    composed,
    discrete_gaussian_loss,
    discrete_laplace_loss,
)
from earshot_simulations.auditing.proofs import DELTA, finding
from earshot_simulations.auditing.sampling import CONFIDENCE, sampled_epsilon
from earshot_simulations.auditing.watching import replaced

Points = npt.NDArray[np.float64]

LAPLACE = "discrete_laplace"
GAUSSIAN = "discrete_gaussian"
_SAMPLERS = (LAPLACE, GAUSSIAN)
_SUMS = "cluster_sums"
_CELLS = 2**16
_EXACT = Technique(EXACT, "exact: every draw of a transcript, their losses convolved")


class Draw(NamedTuple):
    """Noise of one call for several numbers: its sampler, its scale (or σ), and the noise."""

    sampler: str
    scale: float
    noise: Whole


class Shift(NamedTuple):
    """A noisy number that differs on a neighbour: its sampler, scale, and difference."""

    sampler: str
    scale: float
    size: int


@dataclass(frozen=True)
class Iteration:
    """Release of one iteration.

    Attributes:
        centroids: Centroids around which points were added up.
        geometry: Geometry by which a centroid is nearest.
        draws: Noise that was added to some of the counts and sums.
    """

    centroids: Points
    geometry: Geometry
    draws: list[Draw] = field(default_factory=list)

    def differences(self, steps: Points, others: Points) -> list[Whole]:
        """Return the shifts of a neighbour's numbers, for each draw.

        Args:
            steps: Points of the data set, in whole steps.
            others: Points of the neighbour.
        """
        ours = clustering.cluster_sums(steps, self.centroids, self.geometry)
        theirs = clustering.cluster_sums(others, self.centroids, self.geometry)
        by_shape = {one.shape: two - one for one, two in zip(ours, theirs, strict=True)}
        return [by_shape[draw.noise.shape] for draw in self.draws]


@dataclass(frozen=True)
class Clustering:
    """A clustering to audit.

    Attributes:
        case: Description of the parameters.
        clustering: Clustering that runs on phones.
        mechanism: Mechanism that it declares.
        geometry: Geometry of its points.
        dimensions: Dimensions of its points.
        samplers: Samplers that replace those of the protocol, by name: planted faults.
    """

    case: str
    clustering: LocalClustering
    mechanism: LaplaceLloyd | GaussianLloyd
    geometry: Geometry
    dimensions: int
    samplers: Mapping[str, Callable[..., Whole]] = field(default_factory=dict)

    def farthest(self, count: int) -> Points:
        """Return points whose sum has the largest possible norm, (count, dimensions)."""
        point = np.ones(self.dimensions)
        if self.geometry is Geometry.SPHERICAL:
            point[1:] = 0.0
        return np.tile(point, (count, 1))

    def steps(self, points: Points) -> Points:
        """Return points in whole steps, as the clustering adds them up."""
        return (sphere_grid if self.geometry is Geometry.SPHERICAL else box_grid)(points)

    def transcript(self, points: Points, random: Callable[[int], bytes]) -> list[Iteration]:
        """Return the iterations of one run on these points."""
        with self._watched() as iterations:
            self.clustering.cluster(points, random)
        return iterations

    @contextlib.contextmanager
    def _watched(self) -> Iterator[list[Iteration]]:
        """Record the iterations of every clustering that runs within the block."""
        iterations: list[Iteration] = []
        sums_before = clustering.cluster_sums

        def sums(steps: Any, centroids: Any, geometry: Geometry) -> Any:
            iterations.append(Iteration(np.array(centroids), geometry))
            return sums_before(steps, centroids, geometry)

        def watching(name: str) -> Any:
            sample = self.samplers.get(name, getattr(clustering, name))

            def sampler(scale: float, *given: Any) -> Whole:
                noise: Whole = sample(scale, *given)
                iterations[-1].draws.append(Draw(name, scale, noise))
                return noise

            return sampler

        samplers = {name: watching(name) for name in _SAMPLERS}
        with replaced(clustering, **samplers, **{_SUMS: sums}):
            yield iterations


def audit_clustering(audited: Clustering, seed: int) -> Iterator[Result]:
    """Audit a clustering exactly, in every unit.

    Args:
        audited: Clustering and its mechanism.
        seed: Seed of the transcripts.
    """
    differ = {Unit.RECORDING: 1, Unit.PHONE: audited.mechanism.recordings}
    yield _longest_point(audited, seed)
    yield noisy_numbers(audited, seed)
    for unit, count in differ.items():
        yield clustering_finding(audited, unit, clustering_loss(audited, count, seed))


def clustering_loss(
    audited: Clustering, count: int, seed: int, step: float | None = None
) -> Losses:
    """Return the loss of a whole transcript, where a neighbour lacks some recordings of a phone.

    All of these are equal, and as far out as a point can be. A draw's loss depends on the size of
    the difference alone, so one transcript is enough.
    """
    shifts = transcript_shifts(audited, count, seed)
    step = step or largest_loss(shifts) / _CELLS
    return composed(
        (discrete_gaussian_loss if shift.sampler == GAUSSIAN else discrete_laplace_loss)(
            shift.size, shift.scale, step
        ).times(times)
        for shift, times in shifts.items()
    )


def transcript_shifts(audited: Clustering, count: int, seed: int) -> Counter[Shift]:
    """Count the shifts of noisy numbers by scale and distance; see `clustering_loss`."""
    generator = np.random.default_rng(seed)
    missing = audited.steps(audited.farthest(count))
    iterations = audited.transcript(audited.farthest(count), generator.bytes)
    return Counter(
        Shift(draw.sampler, draw.scale, abs(int(size)))
        for iteration in iterations
        for draw, difference in zip(
            iteration.draws, iteration.differences(missing, missing[:0]), strict=True
        )
        for size in difference[difference != 0]
    )


def largest_loss(shifts: Mapping[Shift, int]) -> float:
    """Return the largest loss of a transcript, beyond which Gaussian noise is negligible."""
    total = 0.0
    for shift, times in shifts.items():
        ratio = shift.size / shift.scale
        total += times * (ratio * (ratio / 2 + 12) if shift.sampler == GAUSSIAN else ratio)
    return total


def _longest_point(audited: Clustering, seed: int) -> Check:
    """Check that no point adds more to sums than the declared sensitivity."""
    generator = np.random.default_rng(seed)
    shape = (20_000, audited.dimensions)
    points = np.concatenate(
        [generator.standard_normal(shape), generator.uniform(-3, 3, shape), np.ones((1, shape[1]))]
    )
    steps = audited.steps(points)
    spherical = audited.geometry is Geometry.SPHERICAL
    norm = np.square(steps).sum(axis=1) if spherical else np.square(steps).max(axis=1)
    return Check(
        f"{audited.case}: {'length' if spherical else 'largest coordinate'} of a point",
        f"at most {GRID} steps",
        f"{float(np.sqrt(norm.max())):.2f}",
        bool(norm.max() <= GRID**2),
        f"{len(points)} points as the clustering rounds them",
        power.of_tries(len(points)),
    )


def noisy_numbers(audited: Clustering, seed: int) -> Check:
    """Check that a result depends on the points through the noisy numbers alone."""
    generator = np.random.default_rng(seed)
    points, others = generator.uniform(-1, 1, (2, 30, audited.dimensions))
    alone = _depends_on_noisy_numbers_alone(
        audited.clustering, points, others[:20], generator.bytes
    )
    return Check(
        f"{audited.case}: what centroids depend on",
        "noisy counts and sums alone",
        "those alone" if alone else "something else of the points, too",
        alone,
        "a second run on other points, with noise that makes all noisy numbers those of the first",
        power.EXACTLY,
    )


def clustering_finding(audited: Clustering, unit: Unit, losses: Losses) -> Finding:
    """Compare claimed, proven and measured ε of a clustering."""
    return finding(audited.case, unit, audited.mechanism, losses.epsilon(DELTA), _EXACT)


def sampled_clustering(audited: Clustering, trials: int, seed: int) -> Finding:
    """Distinguish transcripts of real runs with and without a recording, by their losses.

    Args:
        audited: Clustering; shorter transcripts give tighter bounds.
        trials: Trials on each of two data sets.
        seed: Seed of the trials.
    """
    generator = np.random.default_rng(seed)
    more = audited.farthest(1)
    steps, others = audited.steps(more), audited.steps(more[:0])
    losses, neighbours = np.empty(trials), np.empty(trials)
    for trial in range(trials):
        losses[trial] = _realized(audited.transcript(more, generator.bytes), steps, others)
        neighbours[trial] = -_realized(audited.transcript(more[:0], generator.bytes), others, steps)
    return finding(
        audited.case,
        Unit.RECORDING,
        audited.mechanism,
        sampled_epsilon(losses, neighbours, DELTA),
        Technique(SAMPLED, "likelihood ratios of real transcripts", trials, CONFIDENCE),
    )


def _realized(iterations: list[Iteration], steps: Points, others: Points) -> float:
    """Return the loss of one transcript on these points, against those of a neighbour."""
    total = 0.0
    for iteration in iterations:
        differences = iteration.differences(steps, others)
        for draw, difference in zip(iteration.draws, differences, strict=True):
            noise = draw.noise - difference  # what it would have been on the neighbour
            if draw.sampler == GAUSSIAN:
                total += float((np.square(noise) - np.square(draw.noise)).sum()) / (
                    2 * draw.scale**2
                )
            else:
                total += float((np.abs(noise) - np.abs(draw.noise)).sum()) / draw.scale
    return total


def _depends_on_noisy_numbers_alone(
    run: LocalClustering, points: Points, others: Points, random: Callable[[int], bytes]
) -> bool:
    """Return whether the result of a clustering follows from its noisy numbers alone.

    It runs once as usual, and once on other points, with noise that makes all noisy numbers equal
    to those of the first run. If the result depends on the points in any other way, it differs.

    Args:
        run: Clustering.
        points: Points of the first run, (recordings, dimensions).
        others: Points of the second run.
        random: Source of bytes of the first run's noise.
    """
    released: list[Whole] = []
    numbers: dict[tuple[int, ...], Whole] = {}
    sums_before = clustering.cluster_sums
    before = {name: getattr(clustering, name) for name in _SAMPLERS}

    def sums(*given: Any) -> Any:
        result = sums_before(*given)
        numbers.update({each.shape: each.copy() for each in result})
        return result

    def noting(name: str) -> Any:
        def sampler(*given: Any) -> Whole:
            noise: Whole = before[name](*given)
            released.append(numbers[noise.shape] + noise)
            return noise

        return sampler

    def repeating(scale: float, shape: tuple[int, ...], *given: Any) -> Whole:
        return released.pop(0) - numbers[shape]

    with replaced(clustering, cluster_sums=sums, **{name: noting(name) for name in _SAMPLERS}):
        first = run.cluster(points, random)
    with replaced(clustering, cluster_sums=sums, **dict.fromkeys(_SAMPLERS, repeating)):
        second = run.cluster(others, random)
    return np.array_equal(first, second) and not released
