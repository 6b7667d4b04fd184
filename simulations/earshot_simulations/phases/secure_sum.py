"""The route by secure sums: phones sort what they heard into cells, which sums move and name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from earshot_client.encoder import open_encoder, start_centroids
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry, nearest
from earshot_protocol.overriding import override
from earshot_protocol.phases import discovery_budget
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.discovery_budget import (
    CellCounts,
    NoiseMultipliers,
    cell_counts,
    noises,
)
from earshot_protocol.privacy.mechanisms import GRID, Unit
from earshot_protocol.start_centroids import CentroidSet, MissingCentroidsError
from earshot_protocol.wire import LARGEST_DIMENSIONS
from earshot_server.dashboard.groups import groups, numbers
from earshot_server.discovery.route import Discovery
from earshot_server.phases.discovery import DiscoveryPhase
from earshot_simulations.phases.environments import (
    UNHEARD,
    EnvironmentFindings,
    Floats,
    Pictured,
    Route,
    named,
    optional_length,
)
from earshot_simulations.phases.settings import (
    BLOBS,
    NO_NOISE,
    NOISELESS,
    CostOptions,
    OfEitherRoute,
    PolicyChoice,
)
from earshot_simulations.populations import Population
from earshot_simulations.reporting import charts, drawing, plane
from earshot_simulations.reporting.drawing import Picture
from earshot_simulations.reporting.plane import (
    Frame,
    background,
    framed,
    left_out,
    marks,
    room,
    scatter,
    without_room,
)
from earshot_simulations.reporting.words import (
    NOTHING,
    UNNAMED,
    chance,
    counted,
    optional,
    votes,
    whole,
)

_VANISHING = 1e-6
"""Noise multiplier with which hardly any entry of a sum is off by one step."""


# ---------------------------------------------------------------------------------------- settings


@dataclass(frozen=True)
class CellOptions(CostOptions):
    """Settings of cells and their sums; they follow the cost that they share.

    Attributes:
        label_share: Share of ε (in ρ of zero-concentrated privacy) that the names of cells get.
        cells: Start centroids of a discovery by secure sums; by default 20, or 40 where crowd and ε
            allow.
        most_cells: Most cells that the start centroids may grow to (k); by default 40.
        sums: Sums over cells before they are named (T), 0 to 3.
    """

    label_share: float = discovery_budget.LABEL_SHARE
    cells: int | None = None
    most_cells: int | None = None
    sums: int = discovery_budget.SUMS


@dataclass(frozen=True)
class SecureSumSettings(OfEitherRoute, CellOptions):
    """Settings of a phase on the route by secure sums."""

    @property
    def whole_epsilon(self) -> float:
        """Budget ε of a whole phase by secure sums, per phone."""
        return discovery_budget.EPSILON if self.epsilon is None else self.epsilon

    @property
    def counts(self) -> CellCounts:
        """Numbers of cells that a discovery by secure sums begins with, and that they may grow to.

        Raises:
            InvalidParametersError: A number of cells, or ε or δ, is out of range.
        """
        # Without noise there are as many as with hardly any.
        epsilon = min(self.whole_epsilon, NO_NOISE)
        return cell_counts(self.phones, epsilon, self.delta, self.cells, self.most_cells)


def _parameters(
    settings: SecureSumSettings, encoder: str, start: CentroidSet, labels: tuple[str, ...]
) -> DiscoveryParameters:
    noise = _noise(settings, start, len(labels))
    return DiscoveryParameters(
        phones=settings.phones,
        labels=labels,
        encoder=encoder,
        start=start,
        most_cells=settings.counts.most,
        sums=settings.sums,
        cells_noise=noise.cells,
        labels_noise=noise.labels,
        rows=len(labels),
        delta=settings.delta,
        dropout=settings.dropout,
        corrupted=settings.corrupted,
    )


def _noise(settings: SecureSumSettings, start: CentroidSet, labels: int) -> NoiseMultipliers:
    """Return the noise multipliers of each sum of cells, and of that of labels."""
    if settings.whole_epsilon == NOISELESS:
        return NoiseMultipliers(_VANISHING, _VANISHING)
    return noises(
        settings.whole_epsilon,
        settings.delta,
        sums=settings.sums,
        label_share=settings.label_share,
        cells=settings.counts.most,
        dimensions=start.dimensions,
        rows=labels,
    )


# ------------------------------------------------------------------------------------------- found


@dataclass(frozen=True, kw_only=True, eq=False)
class CellFindings(EnvironmentFindings):
    """Cells that secure sums moved and named.

    Attributes:
        start_centroids: Starts of the cells, float32 (s, d); further cells may have come after
            them. None before the phase.
        moved: Whether a sum has moved each cell, bool (k,).
    """

    phase: ClassVar[str] = "discovery phase"
    template: ClassVar[str] = "phases/secure_sum.html"
    place: ClassVar[str] = "cell"
    unit: ClassVar[Unit] = Unit.PHONE
    counts: ClassVar[str] = "cells"
    adversary_votes: ClassVar[str] = "Votes for labels in the adversary's cell"
    other_places: ClassVar[str] = "cells"

    start_centroids: Floats | None = None
    moved: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=np.bool_))

    @override
    def environments(self) -> list[dict[str, object]]:
        if self.label_votes is None:
            return super().environments()
        return [
            {
                "label": group.name,
                "centroids": group.clear,
                "doubtful": group.doubtful,
                "votes": group.votes,
            }
            for group in groups(self)
        ]

    @override
    def added(self, row: int) -> dict[str, object]:
        if self.start_centroids is None:
            return {}
        likely = self.label_names[self.labels[row]] if len(self.labels) else None
        moved = self.moved[row] if len(self.moved) else False
        start = self.start_centroids[row] if row < len(self.start_centroids) else None
        return {"likely_label": likely, "moved": moved, "start_centroid": start}

    @override
    def count(self) -> str:
        placed = self.start_centroids if self.global_centroids is None else self.global_centroids
        cells = optional(optional_length(placed), whole)
        moved = whole(int(self.moved.sum())) if len(self.moved) else NOTHING
        return f"{cells} placed, {moved} moved, {optional(self.named, whole)} named"

    @override
    def steps(self, frame: Frame) -> tuple[Pictured, ...]:
        return (
            Pictured(
                "Public start centroids and their cells",
                "Crosses come with the encoder, and nobody's sound is in them. A recording has "
                "the colour of the cell that it falls into.",
                self._drawn_start(frame),
            ),
            Pictured(
                "Where sums moved them",
                "Blue crosses are cells in which phones' sound stood clear of the noise in the "
                "last sum, with a line from their start; grey ones are the others, beside the "
                "fullest cells or where they began. Where few cells hear nearly everything, "
                "further ones are placed beside them.",
                self._drawn_moves(frame),
            ),
            Pictured(
                "Named environments",
                "Cells with a name that stands clear of the noise; those of one colour are one "
                "environment. Grey crosses have none.",
                self._drawn_names(frame),
            ),
        )

    def groups(self) -> list[list[str]]:
        """Return the environments that the cells make up, with their votes, in words."""
        return [
            [
                group.name if group.clear else f"{group.name}, which may be noise",
                numbers(group.clear) or NOTHING,
                numbers(group.doubtful) or NOTHING,
                votes(group.votes),
            ]
            for group in groups(self)
        ]

    def cells(self) -> list[list[str]]:
        """Return the cells with the votes for their labels, in words."""
        return [self._cell(row) for row in range(len(self.labels))]

    @override
    def drawn_label_votes(self) -> Picture | None:
        if self.label_votes is None:
            return None
        cells = range(1, len(self.labels) + 1)
        return charts.votes_by_label(self.label_votes, cells, self.label_names, self.place)

    def _cell(self, row: int) -> list[str]:
        label, name = self.labels[row], self.names[row]
        cast = 0.0 if self.label_votes is None else float(self.label_votes[row][label])
        moved = len(self.moved) and bool(self.moved[row])
        return [
            str(row + 1),
            UNNAMED if name is None else name,
            self.label_names[label],
            "yes" if moved else "no",
            votes(cast),
            chance(self.name_p_values[row]) if self.name_p_values else NOTHING,
        ]

    def _drawn_start(self, frame: Frame) -> Picture | None:
        """Draw the public start centroids and the cell of each recording."""
        if self.start_centroids is None:
            return None
        placed, centres = frame.place(self.points), frame.place(self.start_centroids)
        cells = np.empty(0, dtype=np.int64)
        if len(placed):
            cells = nearest(self.points, self.start_centroids, Geometry.SPHERICAL)

        def draw(axes: Axes) -> None:
            marks(axes, placed, cells, size=5.0)
            scatter(axes, centres, s=70, c=drawing.CARD, marker="X", zorder=4)
            scatter(axes, centres, s=34, c=drawing.INK, marker="X", zorder=5)

        alt = (
            f"{counted(len(centres), 'public start centroid')}, {len(np.unique(cells))} of which "
            "have recordings in their cell."
        )
        return framed(draw, frame, alt, *left_out(frame, centres, len(centres)))

    def _drawn_moves(self, frame: Frame) -> Picture | None:
        """Draw where sums moved the cells, and where from; None before the first sum."""
        if self.start_centroids is None or self.global_centroids is None or not len(self.moved):
            return None
        before, after = frame.place(self.start_centroids), frame.place(self.global_centroids)
        clear = self.moved
        began = clear[: len(before)]  # cells that came later have no start

        def draw(axes: Axes) -> None:
            background(axes, self.points, frame)
            for old, new in zip(before[began], after[: len(before)][began], strict=True):
                axes.plot(*zip(old, new, strict=True), color=drawing.MUTED, linewidth=0.9, zorder=2)
            scatter(axes, before[began], s=9, c=drawing.MUTED, zorder=3)
            scatter(axes, after[~clear], s=22, c=drawing.MUTED, marker="X", zorder=4)
            scatter(axes, after[clear], s=70, c=drawing.CARD, marker="X", zorder=4)
            scatter(axes, after[clear], s=38, c=drawing.PALETTE[0], marker="X", zorder=5)

        alt = (
            f"{counted(int(clear.sum()), 'cell')} moved to where sound is, and "
            f"{counted(int((~clear).sum()), 'cell')} in which no sound stood clear of the noise."
        )
        return framed(draw, frame, alt, *left_out(frame, after, len(after)))

    def _drawn_names(self, frame: Frame) -> Picture | None:
        """Draw cells with their names, coloured by environment; None before the last sum."""
        if self.global_centroids is None or self.label_votes is None:
            return None
        centres, labels = frame.place(self.global_centroids), np.asarray(self.labels)
        clear = np.array([name is not None for name in self.names], dtype=np.bool_)
        words = [drawing.short(name, 18) for name in self.names if name is not None]
        names = room(frame, centres[clear], words, 0.05)

        def draw(axes: Axes) -> None:
            background(axes, self.points, frame)
            scatter(axes, centres[~clear], s=22, c=drawing.MUTED, marker="X", zorder=4)
            marks(axes, centres[clear], labels[clear], size=60.0)
            plane.write(axes, names)

        listed = "; ".join(words[: drawing.MOST_ROWS]) or "none"
        alt = (
            f"{counted(int(clear.sum()), 'named cell')}: {listed}. "
            f"{counted(int((~clear).sum()), 'cell')} {UNNAMED}."
        )
        remarks = *left_out(frame, centres, len(centres)), without_room(len(words) - len(names))
        return framed(draw, frame, alt, *remarks)


# ---------------------------------------------------------------------------------------- the route


class _SecureSum(Route[SecureSumSettings]):
    """Secure sums over the cells of public start centroids; protects phones."""

    discovery = Discovery.SECURE_SUM
    settings = SecureSumSettings
    found = CellFindings
    dimensions = discovery_budget.DIMENSIONS
    agreement = PolicyChoice.DEFAULT
    vote = GRID
    real_sound = (
        "Real sound that its encoder had never heard got the right name 71 % of "
        "the time at ε = 2 per phone, and 55 % by names that stand clear of the noise " + UNHEARD
    )

    @override
    def check(self, settings: SecureSumSettings) -> None:
        if settings.data == BLOBS:
            return
        encoder = open_encoder(settings.encoder)
        dimensions = self.dimensions if settings.dimensions is None else settings.dimensions
        checks.whole("dimensions", dimensions, 1, encoder.dimensions)
        try:
            start_centroids(encoder, dimensions, settings.counts.start)
        except MissingCentroidsError as error:
            raise InvalidParametersError(str(error)) from None

    @override
    def filled(self, settings: SecureSumSettings) -> dict[str, object]:
        return {"epsilon": settings.whole_epsilon}

    @override
    def any_parameters(self, settings: SecureSumSettings, dimensions: int) -> DiscoveryParameters:
        checks.whole("dimensions", dimensions, 1, LARGEST_DIMENSIONS)
        start = CentroidSet.of(np.ones((settings.counts.start, dimensions)))
        return _parameters(settings, "", start, ("any label",))

    @override
    def parameters(
        self, settings: SecureSumSettings, population: Population
    ) -> DiscoveryParameters:
        start = population.start(settings.counts.start)
        return _parameters(settings, population.encoder, start, population.labels)

    @override
    def fields(self, state: object) -> dict[str, Any]:
        if not isinstance(state, DiscoveryPhase):
            return {}
        return {
            "start_centroids": state.parameters.start.centroids(),
            "global_centroids": state.cells(),
            "moved": np.asarray(state.moved, dtype=np.bool_),
            "top": np.arange(len(state.cells())),
        } | named(state)

    @override
    def counted(self, figures: Mapping[str, Any]) -> dict[str, Any]:
        named = [each for each in figures["environments"] if each["label"] and each["centroids"]]
        return {
            "cells": figures["global_centroids"],
            "named_cells": figures["named"],
            "environments": None if figures["named"] is None else len(named),
        }


SECURE_SUM = _SecureSum()
"""The route by secure sums."""
