"""A discovery phase finds and names environments by secure sums alone (docs/privacy.md).

It protects a phone, where a learning phase protects a recording. Every phone sorts what it heard
into cells around public start centroids; a sum of cells moves these to where sound really is, and
may be repeated. A last sum adds up what was heard under each label: its direction is the label's
prototype, and the nearest prototype names a sound.
"""

from __future__ import annotations

import functools
from typing import Annotated

import msgspec
from msgspec import Meta

from earshot_protocol import checks, start_centroids
from earshot_protocol.environments import LARGEST_CHOICES, LARGEST_NAME, LabelHierarchy
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
from earshot_protocol.phases.places import UNNAMED
from earshot_protocol.phases.plan import Plan, SecureSum, SumPartTask
from earshot_protocol.privacy.mechanisms import VectorSum
from earshot_protocol.privacy.significance import PValue
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.summations import Opening
from earshot_protocol.text import line
from earshot_protocol.voting.vectors import COUNTS, moved_by_direction
from earshot_protocol.wire import LARGEST_DIMENSIONS, Matrix

LABELS = "labels"
"""Name of the last part of the plan, and of its private step."""
MOST_SUMS = 3
"""Most sums of cells: further ones cost privacy and time, and move hardly anything."""
SMALLEST_NOISE, LARGEST_NOISE = 1e-9, 1e9
"""Multipliers far below and far above any use, whose costs can still be computed."""

PerCell = Meta(max_length=start_centroids.MOST)
MOST_KINDS = 16
"""Most kinds of sound by which rows are split."""
MOST_ROWS = LARGEST_LABELS + LARGEST_CHOICES
"""Most rows of a sum of labels: one for each label, and one for each of their choices."""
PerRow = Meta(max_length=MOST_ROWS * MOST_KINDS)
Length = Annotated[float, Meta(ge=0, le=1e12)]
"""Length of a noisy sum of vectors; one phone adds at most 1."""


def cells(repetition: int) -> str:
    """Return the name of the nth sum of cells, from 1: of the part and of its private step."""
    return f"cells {repetition}"


class DiscoveryParameters(Parameters, frozen=True, kw_only=True, tag="discovery"):
    """Everything that phones and server must agree on before a discovery phase.

    Attributes:
        phones: Number of phones that are enrolled, n.
        labels: Equivalence classes of environments, L.
        encoder: Name of the encoder whose embeddings are sorted.
        start: Start centroids, in d dimensions. They are public, and no cost depends on them: a
            server that chooses others learns no more.
        most_cells: Number of cells for which a sum has room, k; cells are added, up to this many,
            where sound is unlike the start centroids.
        sums: Number of times that cells are summed before they are named, T, from 0 to 3.
        cells_noise: Noise multiplier of each sum of cells: the noise's standard deviation over the
            most that one phone adds.
        labels_noise: Noise multiplier of the sum of labels.
        rows: Rows of the sum of labels: one for each label, and one for each choice of a poll if
            choices have prototypes of their own (`rows_of`).
        kinds: Kinds of sound, which are groups of cells: every row is split by them, so that a
            label of several kinds gets several prototypes. 1 leaves rows whole.
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
    rows: int
    kinds: int = 1
    delta: float = 1e-6

    @property
    def dimensions(self) -> int:
        """Dimensions of the projection in which sound is sorted, d."""
        return self.start.dimensions

    @property
    def label_entries(self) -> int:
        """Entries of a row of the sum of labels: its vector, and one that counts recordings."""
        return self.dimensions + COUNTS

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
        checks.whole("rows", self.rows, len(self.labels), MOST_ROWS)
        checks.whole("kinds", self.kinds, 1, MOST_KINDS)


# Every phone needs it several times in each step, and a simulation has many phones.
@functools.lru_cache(maxsize=64)
def _plan(parameters: DiscoveryParameters) -> Plan:
    survivors, dimensions = parameters.noise_survivors, parameters.dimensions
    entries = parameters.most_cells * dimensions
    moved = VectorSum(
        parameters.cells_noise,
        entries,
        parameters.delta,
        survivors,
        moved_by_direction(entries, dimensions),
    )
    # A recording adds to its label's row, and to its choice's where choices have rows.
    levels = 1 + (parameters.rows > len(parameters.labels))
    entries = parameters.rows * parameters.kinds * parameters.label_entries
    named = VectorSum(
        parameters.labels_noise,
        entries,
        parameters.delta,
        survivors,
        moved_by_direction(entries, levels * parameters.label_entries),
    )
    return Plan(
        (
            *(
                SecureSum(cells(number), SumCells, moved, repetition=number)
                for number in range(1, parameters.sums + 1)
            ),
            SecureSum(LABELS, SumLabels, named),
        )
    )


class SumCells(SumPartTask, frozen=True, kw_only=True, tag="sum-cells"):
    """Sort what you heard into the cells of centroids and add it up; opens a sum of cells.

    The first one has the phase's parameters, and its centroids are their start centroids; later
    ones have the centroids from the sum before, at most `most_cells`. Rows of the sum without a
    centroid stay empty. `choices` are those of the phase's labels (`Parameters.agreed_hierarchy`).
    """

    repetition: Annotated[int, Meta(ge=1, le=MOST_SUMS)]
    parameters: DiscoveryParameters | None = None
    choices: Choices = ()
    centroids: Matrix | None = None
    opening: Opening = msgspec.field(name="advertise")


class SumLabels(SumPartTask, frozen=True, kw_only=True, tag="sum-labels"):
    """Add up what you heard under each label and of each kind; opens the sum of labels.

    Without a sum of cells before it, it is the first task and has the phase's parameters. Where
    rows are split, `kinds` has the kind of each cell, and `centroids` are the cells as in
    `SumCells`.
    """

    parameters: DiscoveryParameters | None = None
    choices: Choices = ()
    centroids: Matrix | None = None
    kinds: Annotated[tuple[Annotated[int, Meta(ge=0, lt=MOST_KINDS)], ...], PerCell] = ()
    opening: Opening = msgspec.field(name="advertise")


def rows_of(hierarchy: LabelHierarchy) -> tuple[str, ...]:
    """Return the names of all rows that a sum of labels may have: labels, then their choices.

    A choice with the name of its label has no row of its own.
    """
    return tuple(dict.fromkeys((*hierarchy.classes, *hierarchy.choices)))


class Discovered(NamedCentroids, frozen=True, kw_only=True, tag="discovered"):
    """Prototypes of labels, the cells in which sound was heard, and the privacy spent.

    A sound has the name of the nearest prototype, if that stands clear of the noise and is no
    farther than `radius`. A prototype that does not stand clear names nothing, but keeps the sound
    that is nearest to it from getting another label's name.

    Attributes:
        geometry: Kind of distance to the centroids: spherical.
        centroids: Prototypes, unit rows: of each label (and choice) those of its rows in the sum
            that stand clear of the noise, or the longest if none does.
        labels: Index into `label_names` of each centroid.
        choices: Choice of a poll that each centroid names; empty where it names the label.
        label_names: Labels of the phase, L.
        name_p_values: P-value of each centroid's name; where it is large, the centroid may be
            noise.
        lengths: Length of each prototype's row in the sum, less what noise adds to it on average,
            and at most the number of inputs. A phone adds 1 at most to all rows together.
        cells: Centroids of the cells, unit rows.
        moved: Whether what phones heard in each cell stood clear of the noise in the last sum.
        cell_lengths: Length of each cell's last sum, likewise; 0 for a cell that no sum has. A
            phone adds 1 at most to all cells together.
        cell_prototypes: Prototype that names the sound of each cell, an index into `centroids`; −1
            where none is near. Noise turns a cell away from its sound, so this is not always the
            prototype within the radius of the cell itself.
        radius: Largest distance, 1 − cosine, at which a prototype names a sound: beyond it the
            sound is unknown. It is chosen so that about one in twenty of the sounds that have a
            label lies beyond. None for any distance.
        refused: Share of the phase's start centroids, which are kinds of public sound, that the
            prototypes leave unknown: about as much of the sound that has no label.
        encoder: Encoder whose embeddings the centroids are among.
        privacy: Privacy that the phase spent.
    """

    geometry: Geometry
    centroids: Matrix
    labels: Annotated[tuple[Annotated[int, Meta(ge=0, lt=LARGEST_LABELS)], ...], PerRow]
    choices: Annotated[tuple[Annotated[str, line(LARGEST_NAME)], ...], PerRow]
    label_names: Annotated[tuple[LabelName, ...], PerLabel]
    name_p_values: Annotated[tuple[PValue, ...], PerRow]
    lengths: Annotated[tuple[Length, ...], PerRow]
    cells: Matrix
    moved: Annotated[tuple[bool, ...], PerCell]
    cell_lengths: Annotated[tuple[Length, ...], PerCell]
    cell_prototypes: Annotated[
        tuple[Annotated[int, Meta(ge=UNNAMED, lt=MOST_ROWS * MOST_KINDS)], ...], PerCell
    ]
    radius: Annotated[float, Meta(ge=0, le=2)] | None = None
    refused: Annotated[float, Meta(ge=0, le=1)]
    encoder: EncoderName
    privacy: Releases

    @property
    @override
    def environments(self) -> tuple[int, ...]:
        """Environment of each centroid: those of one label are one."""
        return self.labels

    @property
    def cell_labels(self) -> tuple[int, ...]:
        """Index into `label_names` of the label that names each cell; -1 for an unknown one."""
        names = self.names
        return tuple(
            UNNAMED if owner is None or names[owner] is None else self.labels[owner]
            for owner in self.cell_owners
        )

    @property
    def cell_owners(self) -> tuple[int | None, ...]:
        """Prototype that is near the sound of each cell, an index into `centroids`, or None."""
        return tuple(None if owner == UNNAMED else owner for owner in self.cell_prototypes)


DISCOVERY = Kind(DiscoveryParameters, (SumCells, SumLabels), (), Discovered)
"""Discovery phases, which find environments and name them, and protect whole phones."""
