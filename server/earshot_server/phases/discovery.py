"""Server's part in a discovery phase: move cells to where sound is, compute labels' prototypes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import WrongStateError
from earshot_protocol.geometry import Geometry
from earshot_protocol.overriding import override
from earshot_protocol.phases.discovery import (
    LABELS,
    Discovered,
    DiscoveryParameters,
    SumCells,
    SumLabels,
    cells,
    rows_of,
)
from earshot_protocol.phases.places import UNNAMED, Places
from earshot_protocol.phases.plan import SumPartTask
from earshot_protocol.privacy.laws import NoiseLaw
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.privacy.significance import are_clear
from earshot_protocol.summations import Opening
from earshot_protocol.voting.vectors import UNCOUNTED, unit_steps
from earshot_protocol.wire import Matrix
from earshot_server.discovery.cells import (
    clear_lengths,
    least_clear_component,
    least_clear_length,
    moved_cells,
    turned,
)
from earshot_server.discovery.merging import grouped
from earshot_server.discovery.prototypes import kept_rows, least_clear_prototype, prototypes, radius
from earshot_server.phases.expected import Expected, Hurdle
from earshot_server.phases.snapshot import Snapshot, Totals


def _components(cells: int) -> Hurdle:
    """Return the test of a cell's sum, by its component along the cell's position."""

    def least(noise: NoiseLaw) -> int:
        return math.ceil(least_clear_component(noise.deviation, cells))

    def chance(noise: NoiseLaw, entry: int) -> float:
        from scipy.stats import norm

        return float(norm.sf((least(noise) - entry) / noise.deviation))

    return Hurdle(least, chance)


def _prototypes(shape: tuple[int, int], cells: int) -> Hurdle:
    """Return the test of a label's row, by its length and by its component along any cell.

    Args:
        shape: Rows and dimensions.
        cells: Number of cells.
    """

    def least(noise: NoiseLaw) -> int:
        return math.ceil(least_clear_prototype(noise.deviation, shape, cells))

    def chance(noise: NoiseLaw, entry: int) -> float:
        from scipy.stats import ncx2, norm

        long = least_clear_length(noise.deviation, (2 * shape[0], shape[1])) / noise.deviation
        along = (least(noise) - entry) / noise.deviation
        there = (entry / noise.deviation) ** 2
        return float(ncx2.sf(long**2, shape[1], there) + cells * norm.sf(along))

    return Hurdle(least, chance)


class DiscoveryPhase(Snapshot, kw_only=True):
    """Discovery phase at the start of a step.

    Attributes:
        parameters: Parameters of the phase.
        centroids: Centroids of the cells after the last sum of them; None before the first.
        moved: Whether the last sum of each cell was clear of the noise.
        cell_lengths: Length of each cell's last sum without its noise; empty before the first.
        prototypes: Prototypes of labels; None before their sum.
        prototype_rows: Label or choice of each prototype, an index into `rows_of`.
        lengths: Length of each prototype's row without its noise.
        name_p_values: P-value of each prototype.
        radius: Largest distance at which a prototype names a sound.
    """

    parameters: DiscoveryParameters
    centroids: Matrix | None = None
    moved: tuple[bool, ...] = ()
    cell_lengths: tuple[float, ...] = ()
    prototypes: Matrix | None = None
    prototype_rows: tuple[int, ...] = ()
    lengths: tuple[float, ...] = ()
    name_p_values: tuple[float, ...] = ()
    radius: float | None = None

    @override
    @staticmethod
    def expected(parameters: DiscoveryParameters, part: str) -> Expected:
        """Return the expected inputs, where all that a phone heard or labelled is one vote."""
        cells, labels = parameters.most_cells, len(parameters.labels)
        if part == LABELS:
            rows, dimensions = parameters.rows * parameters.kinds, parameters.dimensions
            shape = rows, parameters.label_entries
            return Expected(
                shape=shape,
                places=labels,
                place="label",
                votes=1,
                unit=UNCOUNTED * unit_steps(math.prod(shape)),
                spread=math.sqrt(labels),
                hurdle=_prototypes((rows, dimensions), cells),
                honest="honest phones",
                provided="if all that a phone labelled has one label and sounds the same",
                enough="give it a prototype",
                can="get a prototype",
                remedy="--epsilon",
                verb="learn",
            )
        shape = cells, parameters.dimensions
        return Expected(
            shape=shape,
            places=cells,
            place="cell",
            votes=1,
            unit=unit_steps(math.prod(shape)),
            spread=math.sqrt(cells),
            hurdle=_components(cells),
            honest="honest phones",
            provided="if each hears one thing, in one cell",
            enough="move one",
            can="be moved to where sound is",
            remedy="--epsilon",
        )

    @override
    def shape(self, part: str) -> tuple[int, ...]:
        """Return the shape of an input: a row for each possible cell, or for each label's kind."""
        agreed = self.parameters
        if part == LABELS:
            return agreed.rows * agreed.kinds, agreed.label_entries
        return agreed.most_cells, agreed.dimensions

    @override
    def sum_task(self, part: str, opening: Opening) -> SumPartTask:
        """Return the task; the first one of the phase includes parameters and choices."""
        parts = [each.name for each in self.parameters.plan().parts]
        first = part == parts[0]
        told: dict[str, Any] = {
            "phase": self.phase,
            "parameters": self.parameters if first else None,
            "choices": self.choices if first else (),
            "opening": opening,
        }
        if part == LABELS:
            split = self.parameters.kinds > 1
            cells = self.centroids if split else None
            return SumLabels(centroids=cells, kinds=self.kinds() if split else (), **told)
        repetition = parts.index(part) + 1
        return SumCells(repetition=repetition, centroids=self.centroids, **told)

    @override
    def take_total(self, part: str, total: Totals) -> None:
        """Move the cells, or compute the labels' prototypes, from a part's total."""
        noise, last = self.noise(part).deviation, self.cells()
        if part == LABELS:
            found = prototypes(total, noise, last)
            kept = kept_rows(found, self.parameters.kinds)
            self.prototypes = Matrix.of(found.directions[kept])
            self.lengths = tuple((found.lengths[kept] / GRID).tolist())
            self.name_p_values = tuple(found.p_values[kept].tolist())
            self.prototype_rows = tuple((kept // self.parameters.kinds).tolist())
            self.radius = radius(found, noise, kept)
            return
        # Further cells are useful only if another sum follows to separate them.
        more = part != cells(self.parameters.sums)
        most = self.parameters.most_cells if more else 0
        moved, clear = moved_cells(total[: len(last)], noise, last, most)
        self.centroids, self.moved = Matrix.of(moved), tuple(clear.tolist())
        lengths = clear_lengths(total[: len(last)], noise) / GRID
        self.cell_lengths = (*lengths.tolist(), *(0.0,) * (len(moved) - len(last)))

    def cells(self) -> npt.NDArray[np.float32]:
        """Return the present centroids of the cells, float32 (cells, dimensions)."""
        if self.centroids is None:
            return self.parameters.start.centroids()
        return self.centroids.array()

    def kinds(self) -> tuple[int, ...]:
        """Return the kind of sound of each cell: its group of neighbouring cells (`grouped`)."""
        cells = self.cells()
        lengths = np.array(self.cell_lengths or (0.0,) * len(cells))
        groups = grouped(cells, lengths, self.parameters.kinds)
        return tuple(np.unique(groups, return_inverse=True)[1].tolist())

    @override
    def published(self) -> Discovered:
        if self.prototypes is None:
            raise WrongStateError("no prototypes: the sum of labels is not over")
        labels, names = self.parameters.labels, rows_of(self.hierarchy)
        rows = [names[row] for row in self.prototype_rows]
        classes = [self.hierarchy.class_of(row) for row in rows]
        clear = are_clear(self.name_p_values, len(rows))
        places = Places(
            self.prototypes.array(),
            tuple(name if each else None for name, each in zip(classes, clear, strict=True)),
            Geometry.SPHERICAL,
            self.radius,
        )
        start = self.parameters.start
        named = places.nearest(start.centroids())
        owners = places.within(self.cells(), self._turned())
        return Discovered(
            phase=self.phase,
            geometry=Geometry.SPHERICAL,
            centroids=self.prototypes,
            labels=tuple(map(labels.index, classes)),
            choices=tuple("" if row in labels else row for row in rows),
            label_names=labels,
            name_p_values=self.name_p_values,
            lengths=self._at_most_all(LABELS, self.lengths),
            cells=Matrix.of(self.cells()),
            moved=self.moved or (False,) * start.count,
            cell_lengths=self._at_most_all(
                cells(self.parameters.sums), self.cell_lengths or (0.0,) * start.count
            ),
            cell_prototypes=tuple(UNNAMED if owner is None else owner for owner in owners),
            radius=self.radius,
            refused=named.count(None) / len(named),
            encoder=self.parameters.encoder,
            privacy=self.parameters.plan().releases(),
        )

    def _at_most_all(self, part: str, lengths: tuple[float, ...]) -> tuple[float, ...]:
        """Return the lengths, cut off at the number of inputs, each of which adds at most 1.

        Noise may exceed its mean contribution, which was subtracted.
        """
        inputs = self.inputs.get(part, self.parameters.phones)
        return tuple(min(each, float(inputs)) for each in lengths)

    def _turned(self) -> npt.NDArray[np.float64]:
        """Return the cosine between each cell with and without noise; 1 without a sum.

        The noise of earlier sums in a cell's last position is small in comparison, and ignored.
        """
        lengths = np.array(self.cell_lengths or (0.0,) * len(self.cells())) * GRID
        if not self.parameters.sums:
            return np.ones(len(lengths))
        deviation = self.noise(cells(self.parameters.sums)).deviation
        cosines = turned(lengths, deviation, self.parameters.dimensions)
        return np.where(lengths > 0, cosines, 1.0)
