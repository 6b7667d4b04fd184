"""Private clustering on a phone, audited on its transcripts: all noisy sums and counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_client.clustering import GRID, LocalClustering, box_grid, sphere_grid
from earshot_protocol.geometry import Geometry
from earshot_protocol.privacy.local_mechanisms import GaussianLloyd, LaplaceLloyd
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import (
    EXACT,
    SAMPLED,
    Check,
    Finding,
    Method,
    Result,
    Role,
)
from earshot_simulations.auditing.losses import (
    Losses,
    composed,
    discrete_gaussian_loss,
    discrete_laplace_loss,
)
from earshot_simulations.auditing.proofs import DELTA, finding
from earshot_simulations.auditing.sampling import CONFIDENCE, sampled_epsilon
from earshot_simulations.auditing.transcripts import (
    GAUSSIAN,
    Iteration,
    depends_on_noisy_numbers_alone,
    watched,
)

Points = npt.NDArray[np.float64]

_CELLS = 2**16
_EXACT = Method(EXACT, "exact: every draw of a transcript, their losses convolved")


class Shift(NamedTuple):
    """A noisy number that is another on a neighbour: its sampler, scale, and by how much."""

    sampler: str
    scale: float
    size: int


@dataclass(frozen=True)
class Clustering:
    """A clustering to audit.

    Attributes:
        subject: the name that selects it.
        case: its parameters.
        clustering: what runs on phones.
        mechanism: what it declares.
        geometry: of its points.
        dimensions: of its points.
    """

    subject: str
    case: str
    clustering: LocalClustering
    mechanism: LaplaceLloyd | GaussianLloyd
    geometry: Geometry
    dimensions: int

    def farthest(self, count: int) -> Points:
        """So many points whose sum is as long as any, (count, dimensions)."""
        point = np.ones(self.dimensions)
        if self.geometry is Geometry.SPHERICAL:
            point[1:] = 0.0
        return np.tile(point, (count, 1))

    def steps(self, points: Points) -> Points:
        """Points as the clustering adds them up."""
        return (sphere_grid if self.geometry is Geometry.SPHERICAL else box_grid)(points)

    def transcript(self, points: Points, random: Callable[[int], bytes]) -> list[Iteration]:
        """What one run on these points draws, and adds it to."""
        with watched() as iterations:
            self.clustering.cluster(points, random)
        return iterations


def audit_clustering(audited: Clustering, seed: int) -> Iterator[Result]:
    """Exactly, in every unit.

    Args:
        audited: what.
        seed: of the transcripts.
    """
    recordings = audited.mechanism.recordings
    differ = {Unit.RECORDING: 1, Unit.PHONE: recordings}
    yield longest_point(audited, seed)
    yield noisy_numbers(audited, seed)
    for unit, count in differ.items():
        yield clustering_finding(audited, unit, clustering_loss(audited, count, seed))


def clustering_loss(
    audited: Clustering, count: int, seed: int, step: float | None = None
) -> Losses:
    """The loss of a whole transcript, where a neighbour lacks so many of a phone's recordings.

    All of them are alike and as far out as a point can be. A draw's loss depends on the size of the
    difference and not on where it is, so one transcript stands for all.
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
    """How often numbers with noise of which scale move by how much, see `clustering_loss`."""
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
    """The largest loss of a transcript; with Gaussian noise, one that is negligible beyond."""
    total = 0.0
    for shift, times in shifts.items():
        ratio = shift.size / shift.scale
        total += times * (ratio * (ratio / 2 + 12) if shift.sampler == GAUSSIAN else ratio)
    return total


def longest_point(audited: Clustering, seed: int) -> Check:
    """That no point adds more to sums than the sensitivity that noise is drawn for."""
    generator = np.random.default_rng(seed)
    shape = (20_000, audited.dimensions)
    points = np.concatenate(
        [generator.standard_normal(shape), generator.uniform(-3, 3, shape), np.ones((1, shape[1]))]
    )
    steps = audited.steps(points)
    spherical = audited.geometry is Geometry.SPHERICAL
    norm = np.square(steps).sum(axis=1) if spherical else np.square(steps).max(axis=1)
    return Check(
        audited.subject,
        f"{audited.case}: {'length' if spherical else 'largest coordinate'} of a point",
        f"at most {GRID} steps",
        f"{float(np.sqrt(norm.max())):.2f}",
        bool(norm.max() <= GRID**2),
        f"{len(points)} points as the clustering rounds them",
        power.of_tries(len(points)),
    )


def noisy_numbers(audited: Clustering, seed: int, role: Role = Role.PRODUCT) -> Check:
    """That nothing of the points leaves but through the numbers that noise was added to."""
    generator = np.random.default_rng(seed)
    points, others = generator.uniform(-1, 1, (2, 30, audited.dimensions))
    alone = depends_on_noisy_numbers_alone(audited.clustering, points, others[:20], generator.bytes)
    return Check(
        audited.subject,
        f"{audited.case}: what centroids depend on",
        "noisy counts and sums alone",
        "those alone" if alone else "something else of the points, too",
        alone,
        "a second run on other points, with noise that makes all noisy numbers those of the first",
        power.EXACTLY,
        role,
    )


def clustering_finding(
    audited: Clustering, unit: Unit, losses: Losses, role: Role = Role.PRODUCT
) -> Finding:
    """What a clustering is said to cost, is proven to cost, and costs."""
    measured, mechanism = losses.epsilon(DELTA), audited.mechanism
    return finding(audited.subject, audited.case, unit, mechanism, measured, _EXACT, role)


def sampled_clustering(
    audited: Clustering, trials: int, seed: int, role: Role = Role.PRODUCT
) -> Finding:
    """Per recording: transcripts of real runs with it and without, told apart by their losses.

    Args:
        audited: what; the fewer numbers a transcript has, the more trials show.
        trials: on each of two data sets.
        seed: of the trials.
        role: why.
    """
    generator = np.random.default_rng(seed)
    more = audited.farthest(1)
    steps, others = audited.steps(more), audited.steps(more[:0])
    losses, neighbours = np.empty(trials), np.empty(trials)
    for trial in range(trials):
        losses[trial] = _realized(audited.transcript(more, generator.bytes), steps, others)
        neighbours[trial] = -_realized(audited.transcript(more[:0], generator.bytes), others, steps)
    return finding(
        audited.subject,
        audited.case,
        Unit.RECORDING,
        audited.mechanism,
        sampled_epsilon(losses, neighbours, DELTA),
        Method(SAMPLED, "likelihood ratios of real transcripts", trials, CONFIDENCE),
        role,
    )


def _realized(iterations: list[Iteration], steps: Points, others: Points) -> float:
    """The loss of one transcript on these points, against those of a neighbour."""
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
