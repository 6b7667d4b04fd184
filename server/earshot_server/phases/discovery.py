"""Server's part in a discovery phase: cells move to where sound is, and get names."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import Geometry
from earshot_protocol.overriding import override
from earshot_protocol.phases.discovery import (
    LABELS,
    Discovered,
    DiscoveryParameters,
    LabelCells,
    SumCells,
    cells,
)
from earshot_protocol.phases.plan import SumPartTask
from earshot_protocol.privacy.laws import NoiseLaw
from earshot_protocol.privacy.significance import name_p_values
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.voting import ballots
from earshot_protocol.voting.vectors import unit_steps
from earshot_protocol.wire import Matrix
from earshot_server.discovery.cells import least_clear_length, moved_cells
from earshot_server.phases.expected import Expected, Hurdle, names
from earshot_server.phases.snapshot import Snapshot, Totals


def _lengths(shape: tuple[int, int]) -> Hurdle:
    """Return the test of a cell's sum: noise alone seldom is as long.

    With noise on its entries that is nearly normal, its squared length follows a non-central χ²
    law.

    Args:
        shape: Cells and dimensions.
    """

    def least(noise: NoiseLaw) -> int:
        return math.ceil(least_clear_length(noise.deviation, shape))

    def chance(noise: NoiseLaw, entry: int) -> float:
        from scipy.stats import ncx2

        needed, there = (each / noise.deviation for each in (least(noise), entry))
        return float(ncx2.sf(needed**2, shape[1], there**2))

    return Hurdle(least, chance)


class DiscoveryPhase(Snapshot, kw_only=True):
    """Discovery phase at the start of a step.

    Attributes:
        parameters: Parameters of the phase.
        centroids: Centroids of the cells after the last sum of them; None before the first.
        moved: Whether the last sum of each cell stood clear of the noise.
        label_votes: Votes per cell and label.
        labels: Most frequent label of each cell; p-values say which are clear of the noise.
        name_p_values: P-values of the cells' labels.
    """

    parameters: DiscoveryParameters
    centroids: Matrix | None = None
    moved: tuple[bool, ...] = ()
    label_votes: tuple[tuple[float, ...], ...] = ()
    labels: tuple[int, ...] = ()
    name_p_values: tuple[float, ...] = ()

    @override
    @staticmethod
    def expected(parameters: DiscoveryParameters, part: str) -> Expected:
        """Return the inputs expected: all that a phone heard, or named, is one vote."""
        cells, labels = parameters.most_cells, len(parameters.labels)
        shape = cells, parameters.dimensions
        if part == LABELS:
            return Expected(
                shape=(cells, labels),
                places=cells,
                place="cell",
                votes=1,
                unit=unit_steps(cells * labels),
                spread=math.sqrt(cells * labels),
                hurdle=names(cells * labels),
                provided="if all labels of a phone are one, and in one cell",
                enough="name one",
                can="get a name",
                remedy="--epsilon",
            )
        return Expected(
            shape=shape,
            places=cells,
            place="cell",
            votes=1,
            unit=unit_steps(math.prod(shape)),
            spread=math.sqrt(cells),
            hurdle=_lengths(shape),
            honest="honest phones",
            provided="if each hears one thing, in one cell",
            enough="move one",
            can="be moved to where sound is",
            remedy="--epsilon",
        )

    @override
    def shape(self, part: str) -> tuple[int, ...]:
        """Return the shape of an input: a row for each cell that there may be."""
        names = len(self.parameters.labels)
        return self.parameters.most_cells, names if part == LABELS else self.parameters.dimensions

    @override
    def sum_task(self, part: str, advertise: AdvertiseKeys) -> SumPartTask:
        """Return the task; the first one of the phase has all that is agreed on."""
        parts = [each.name for each in self.parameters.plan().parts]
        first = part == parts[0]
        kind: Callable[..., SumPartTask] = LabelCells
        if part != LABELS:
            kind = partial(SumCells, repetition=parts.index(part) + 1)
        return kind(
            phase=self.phase,
            parameters=self.parameters if first else None,
            choices=self.choices if first else (),
            centroids=self.centroids,
            advertise=advertise,
        )

    @override
    def take_total(self, part: str, total: Totals) -> None:
        """Move cells to what phones heard in them, then name them."""
        noise, last = self.noise(part), self.cells()
        total, unit = total[: len(last)], unit_steps(total.size)
        if part != LABELS:
            # Further cells are useful only if another sum tells them apart.
            more = part != cells(self.parameters.sums)
            most = self.parameters.most_cells if more else 0
            moved, clear = moved_cells(total, noise.deviation, last, most)
            self.centroids, self.moved = Matrix.of(moved), tuple(clear.tolist())
            return
        self.label_votes = tuple(map(tuple, (total / unit).tolist()))
        self.name_p_values = name_p_values(total, noise)
        self.labels = tuple(ballots.winning_labels(total).tolist())

    def cells(self) -> npt.NDArray[np.float32]:
        """Return the centroids of the cells as known so far, float32 (cells, dimensions)."""
        if self.centroids is None:
            return self.parameters.start.centroids()
        return self.centroids.array()

    @override
    def published(self) -> Discovered:
        return Discovered(
            phase=self.phase,
            geometry=Geometry.SPHERICAL,
            centroids=Matrix.of(self.cells()),
            moved=self.moved or (False,) * self.parameters.start.count,
            labels=self.labels,
            label_names=self.parameters.labels,
            label_votes=self.label_votes,
            name_p_values=self.name_p_values,
            encoder=self.parameters.encoder,
            privacy=self.parameters.plan().releases(),
        )
