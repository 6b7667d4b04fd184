"""A discovery phase finds and names environments by secure sums alone (docs/privacy.md).

It protects a phone, where a learning phase protects a recording. Every phone sorts what it heard
into cells around public start centroids; a sum of cells moves these to where sound really is, and
may be repeated; a last sum gives the cells their names.
"""

from __future__ import annotations

import functools
from typing import Annotated, ClassVar

from msgspec import Meta

from earshot_protocol import checks, start_centroids
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry
from earshot_protocol.overriding import override
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.parameters import (
    LARGEST_LABELS,
    Choices,
    Embeddings,
    EncoderName,
    Kind,
    LabelName,
    Parameters,
    PerLabel,
    Releases,
)
from earshot_protocol.phases.plan import Plan, SecureSum, SumPartTask
from earshot_protocol.privacy.mechanisms import VectorSum
from earshot_protocol.privacy.significance import PValue
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.voting.vectors import unit_steps
from earshot_protocol.wire import LARGEST_DIMENSIONS, Matrix

LABELS = "labels"
"""Name of the last part of the plan, and of its private step."""
MOST_SUMS = 3
"""Most sums of cells: further ones cost privacy and time, and move hardly anything."""
SMALLEST_NOISE, LARGEST_NOISE = 1e-9, 1e9
"""Multipliers far below and far above any use, whose costs can still be computed."""

PerCell = Meta(max_length=start_centroids.MOST)
Votes = Annotated[float, Meta(ge=-1e12, le=1e12)]
"""Noisy votes: far beyond what 10^8 phones and their noise add up to, never infinite or
not-a-number."""


def cells(repetition: int) -> str:
    """Return the name of the nth sum of cells, from 1: of the part and of its private step."""
    return f"cells {repetition}"


class DiscoveryParameters(Parameters, frozen=True, kw_only=True, tag="discovery"):
    """Everything that phones and server must agree on before a discovery phase.

    Attributes:
        phones: Number of phones that are enrolled, n.
        labels: Equivalence classes of environments, L.
        encoder: Name of the encoder whose embeddings are sorted.
        start: Start centroids, in d dimensions. They are public, and whoever chooses others learns
            no more, because no cost depends on them.
        most_cells: Number of cells for which a sum has room, k: it may grow from that of the start
            centroids to this, where sound is unlike theirs.
        sums: Number of times that cells are summed before they are named, T, from 0 to 3.
        cells_noise: Noise multiplier of each sum of cells: the noise's standard deviation over the
            most that one phone adds.
        labels_noise: Noise multiplier of the sum of labels.
        delta: Value of δ for which costs are stated.
        dropout: Largest fraction of phones that may vanish, ρ.
        corrupted: Largest fraction of phones that an adversary may control, γ.
        step_seconds: Time for which a step waits for phones, in seconds.
        noise_crowd: Most phones whose noise a sum counts on.
    """

    encoder: EncoderName
    start: CentroidSet
    most_cells: int
    sums: int
    cells_noise: float
    labels_noise: float
    delta: float = 1e-6

    @property
    def dimensions(self) -> int:
        """Dimensions of the projection in which sound is sorted, d."""
        return self.start.dimensions

    @property
    @override
    def reads(self) -> Embeddings:
        return Embeddings(self.encoder, self.dimensions)

    @override
    def plan(self) -> Plan:
        """Return the sums of cells, one for each repetition, and the sum of labels."""
        return _plan(self)

    @override
    def check(self) -> None:
        super().check()
        checks.whole("sums", self.sums, 0, MOST_SUMS)
        checks.between("cells_noise", self.cells_noise, SMALLEST_NOISE, LARGEST_NOISE)
        checks.between("labels_noise", self.labels_noise, SMALLEST_NOISE, LARGEST_NOISE)
        checks.probability("delta", self.delta)
        wrong = start_centroids.flaw((self.start,), LARGEST_DIMENSIONS)
        if wrong is not None:
            raise InvalidParametersError(wrong)
        if not self.start.count <= self.most_cells <= start_centroids.MOST:
            raise InvalidParametersError(
                f"most_cells={self.most_cells}: must be at least {self.start.count}, the number of "
                f"start centroids, and at most {start_centroids.MOST}"
            )


# A phone asks for it several times in every step, and so do all phones of a simulation.
@functools.lru_cache(maxsize=64)
def _plan(parameters: DiscoveryParameters) -> Plan:
    survivors, k = parameters.noise_survivors, parameters.most_cells
    moved = VectorSum(
        parameters.cells_noise,
        k * parameters.dimensions,
        parameters.delta,
        survivors,
        row=parameters.dimensions,
    )
    named = VectorSum(
        parameters.labels_noise,
        k * len(parameters.labels),
        parameters.delta,
        survivors,
        signed=False,
        row=1,
    )
    return Plan(
        (
            *(
                SecureSum(cells(number), SumCells, moved, repetition=number)
                for number in range(1, parameters.sums + 1)
            ),
            SecureSum(LABELS, LabelCells, named),
        )
    )


class SumCells(SumPartTask, frozen=True, kw_only=True, tag="sum-cells"):
    """Sort what you heard into the cells of centroids and add it up; opens a sum of cells.

    The first one has the phase's parameters, and its centroids are their start centroids; later
    ones have the centroids that the sum before it gave, at most `most_cells`; rows of the sum that
    have no centroid stay empty. `choices` are those of the phase's labels
    (`Parameters.agreed_hierarchy`).
    """

    repetition: Annotated[int, Meta(ge=1, le=MOST_SUMS)]
    parameters: DiscoveryParameters | None = None
    choices: Choices = ()
    centroids: Matrix | None = None
    advertise: AdvertiseKeys


class LabelCells(SumPartTask, frozen=True, kw_only=True, tag="label-cells"):
    """Count your labels in each cell; opens the sum of labels.

    Without a sum of cells before it, it is the first task, and has what that would have.
    """

    parameters: DiscoveryParameters | None = None
    choices: Choices = ()
    centroids: Matrix | None = None
    advertise: AdvertiseKeys


class Discovered(NamedCentroids, frozen=True, kw_only=True, tag="discovered"):
    """The named cells, and the privacy spent; cells of one label are one environment.

    Attributes:
        geometry: Kind of distance to the centroids: spherical.
        centroids: Centroids of the cells, unit rows.
        moved: Whether what phones heard in each cell stood clear of the noise in the last sum.
        labels: Index into `label_names` of each cell: the label with the most votes, whether or not
            they are noise, which `name_p_values` tell; `names` are the labels that are clear of it.
        label_names: Labels of the phase, L.
        label_votes: Noisy sum of the votes, per cell and label: a phone's labels make one vote in
            all, or little more.
        name_p_values: P-value of each cell's name; where it is large, the name may be noise.
        encoder: Encoder whose embeddings the centroids are among.
        privacy: Privacy that the phase spent.
    """

    geometry: Geometry
    centroids: Matrix
    moved: Annotated[tuple[bool, ...], PerCell]
    labels: Annotated[tuple[Annotated[int, Meta(ge=0, lt=LARGEST_LABELS)], ...], PerCell]
    label_names: Annotated[tuple[LabelName, ...], PerLabel]
    label_votes: Annotated[tuple[Annotated[tuple[Votes, ...], PerLabel], ...], PerCell]
    name_p_values: Annotated[tuple[PValue, ...], PerCell]
    encoder: EncoderName
    privacy: Releases

    named_in: ClassVar[str] = LABELS

    @property
    @override
    def vote(self) -> float:
        """Value of one vote in the noisy sum: a length of 1 on the grid."""
        return unit_steps(max(1, len(self.labels) * len(self.label_names)))

    @property
    @override
    def environments(self) -> tuple[int, ...]:
        """Environment of each centroid: cells of one label are one."""
        return self.labels


DISCOVERY = Kind(DiscoveryParameters, (SumCells, LabelCells), (), Discovered)
"""Discovery phases, which find environments and name them, and protect whole phones."""
