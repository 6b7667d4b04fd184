"""Findings of the route by secure sums: cells that sums move, and prototypes that name them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes


from earshot_protocol.geometry import Geometry, nearest
from earshot_protocol.overriding import override
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.phases.discovery import DiscoveryPhase
from earshot_simulations.phases.environments import (
    NOBODY,
    EnvironmentFindings,
    Floats,
    Pictured,
    optional_length,
)
from earshot_simulations.reporting import drawing, plane
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
    UNKNOWN,
    chance,
    counted,
    optional,
    whole,
)


class _Label(NamedTuple):
    """A label with all of its prototypes.

    Attributes:
        name: The label.
        clear: Whether any of its prototypes is clear of the noise.
        rows: Its prototypes, as rows of `global_centroids`.
        length: Length of their rows together: the root of the sum of their squares.
        p_value: Smallest p-value of its prototypes.
        cells: Cells that they name, counted from 0.
    """

    name: str
    clear: bool
    rows: tuple[int, ...]
    length: float
    p_value: float
    cells: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class CellFindings(EnvironmentFindings):
    """Cells that secure sums moved, and prototypes of labels; `global_centroids` are prototypes.

    Attributes:
        start_centroids: Starts of the first cells, float32 (s, d); cells added later have none.
            None before the phase.
        cells: Places of the cells, float32 (k, d); None before the phase.
        moved: Whether a sum has moved each cell, bool (k,).
        cell_lengths: Length of each cell's last sum without its noise, (k,).
        cell_labels: Label of the prototype that names each cell, int (k,); -1 where it is unknown,
            empty before there are prototypes.
        lengths: Length of each prototype's row without its noise. A label has several prototypes
            where rows are split by kinds of sound.
        radius: Largest distance at which a prototype names a sound; None for any.
    """

    phase: ClassVar[str] = "discovery phase"
    template: ClassVar[str] = "phases/secure_sum.html"
    place: ClassVar[str] = "prototype"
    unit: ClassVar[Unit] = Unit.PHONE
    counts: ClassVar[str] = "cells"
    adversary_votes: ClassVar[str] = "Length of the adversary's prototype"
    other_places: ClassVar[str] = "prototypes"

    start_centroids: Floats | None = None
    cells: Floats | None = None
    moved: npt.NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    cell_lengths: tuple[float, ...] = ()
    cell_labels: tuple[int, ...] = ()
    lengths: tuple[float, ...] = ()
    radius: float | None = None

    @staticmethod
    @override
    def known(state: object) -> dict[str, Any]:
        if not isinstance(state, DiscoveryPhase):
            return {}
        return {
            "start_centroids": state.parameters.start.centroids(),
            "cells": state.cells(),
            "moved": np.asarray(state.moved, dtype=np.bool_),
            "cell_lengths": state.cell_lengths,
        } | _named(state)

    @staticmethod
    @override
    def counts_of(figures: Mapping[str, Any]) -> dict[str, Any]:
        return {"cells": len(figures.get("cells") or ()) or None, "environments": figures["named"]}

    @property
    @override
    def named(self) -> int | None:
        """Number of labels with a prototype that stands clear; None before there are any."""
        return len(set(self.names) - {None}) if len(self.labels) else None

    @override
    def unnamed(self) -> str:
        without = len(set(self.labels)) - (self.named or 0)
        are = "is" if without == 1 else "are"
        return f"{counted(without, 'label')} {are} not clear of the noise" if without else ""

    @override
    def environments(self) -> list[dict[str, object]]:
        return [
            {
                "label": label.name if label.clear else None,
                "likely_label": label.name,
                "centroids": label.rows,
                "length": label.length,
                "cells": label.cells,
            }
            for label in self._labels()
        ]

    def _labels(self) -> list[_Label]:
        names = self.names
        return [
            _Label(
                self.label_names[label],
                any(names[row] is not None for row in rows),
                rows,
                math.hypot(*(self.lengths[row] for row in rows)),
                min(self.name_p_values[row] for row in rows),
                tuple(cell for cell, own in enumerate(self.cell_labels) if own == label),
            )
            for label in sorted({int(label) for label in self.labels})
            for rows in [tuple(np.flatnonzero(self.labels == label).tolist())]
        ]

    @override
    def kept(self, row: int) -> dict[str, object]:
        return {"length": self.lengths[row]}

    @override
    def added(self) -> dict[str, object]:
        return {"radius": self.radius, "cells": self._described_cells()}

    def _described_cells(self) -> list[dict[str, object]]:
        if self.cells is None or self.start_centroids is None:
            return []
        starts = len(self.start_centroids)
        return [
            {
                "cell": row,
                "label": self._label_of(row),
                "moved": bool(self.moved[row]) if len(self.moved) else False,
                "length": self.cell_lengths[row] if self.cell_lengths else None,
                "centroid": place,
                "start_centroid": self.start_centroids[row] if row < starts else None,
            }
            for row, place in enumerate(self.cells)
        ]

    def _label_of(self, cell: int) -> str | None:
        """Return the label that names a cell; None where it is unknown."""
        label = self.cell_labels[cell] if self.cell_labels else NOBODY
        return None if label == NOBODY else self.label_names[label]

    @override
    def count(self) -> str:
        cells = optional(optional_length(self.cells), whole)
        moved = whole(int(self.moved.sum())) if len(self.moved) else NOTHING
        named = optional(self.named, whole)
        labels = counted(len(self.label_names), "label")
        return f"{cells} placed, {moved} moved; {named} of {labels} named"

    @override
    def steps(self, frame: Frame) -> tuple[Pictured, ...]:
        return (
            Pictured(
                "Public start centroids and their cells",
                "Crosses come with the encoder, and contain no sound of the phones. A recording "
                "has the colour of its cell.",
                self._drawn_start(frame),
            ),
            Pictured(
                "Where sums moved them",
                "Blue crosses are cells in which phones' sound stood clear of the noise in the "
                "last sum, with a line from their start; grey ones are the others, next to the "
                "fullest cells or where they began. Where few cells get nearly all recordings, "
                "further ones are placed next to them.",
                self._drawn_moves(frame),
            ),
            Pictured(
                "Prototypes of labels",
                "Where the last sum places each label; a recording gets the name of the nearest "
                "prototype. Small marks are the cells in which sound was heard, in the colour of "
                "their label; grey crosses are cells of unknown sound.",
                self._drawn_names(frame),
            ),
        )

    def labelled(self) -> list[list[str]]:
        """Return the labels with their prototypes and cells, as text."""
        return [
            [
                label.name,
                "yes" if label.clear else "may be noise",
                whole(len(label.rows)),
                f"{label.length:.1f}",
                chance(label.p_value),
                ", ".join(str(cell + 1) for cell in label.cells) or NOTHING,
            ]
            for label in self._labels()
        ]

    def sounds(self) -> list[list[str]]:
        """Return the cells with the label that names each, as text."""
        return [
            [
                str(row + 1),
                self._label_of(row) or UNKNOWN,
                "yes" if len(self.moved) and bool(self.moved[row]) else "no",
                f"{self.cell_lengths[row]:.1f}" if self.cell_lengths else NOTHING,
            ]
            for row in range(optional_length(self.cells) or 0)
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
            marks(axes, placed, cells, 5.0, f"{plane.HEARD}, by cell")
            scatter(axes, centres, "", s=70, c=drawing.CARD, marker="X", zorder=4)
            scatter(axes, centres, "start centroid", s=34, c=drawing.INK, marker="X", zorder=5)

        alt = (
            f"{counted(len(centres), 'public start centroid')}, {len(np.unique(cells))} of which "
            "have recordings in their cell."
        )
        return framed(draw, frame, alt, *left_out(frame, centres, len(centres)))

    def _drawn_moves(self, frame: Frame) -> Picture | None:
        """Draw the cells and where sums moved them from; None before the first sum."""
        if self.start_centroids is None or self.cells is None or not len(self.moved):
            return None
        before, after = frame.place(self.start_centroids), frame.place(self.cells)
        clear = self.moved
        began = clear[: len(before)]  # cells added later have no start

        def draw(axes: Axes) -> None:
            background(axes, self.points, frame)
            for old, new in zip(before[began], after[: len(before)][began], strict=True):
                axes.plot(*zip(old, new, strict=True), color=drawing.MUTED, linewidth=0.9, zorder=2)
            scatter(axes, before[began], "its start", s=9, c=drawing.MUTED, zorder=3)
            scatter(axes, after[~clear], "other cell", s=22, c=drawing.MUTED, marker="X", zorder=4)
            scatter(axes, after[clear], "", s=70, c=drawing.CARD, marker="X", zorder=4)
            moved = {"s": 38, "c": drawing.PALETTE[0], "marker": "X", "zorder": 5}
            scatter(axes, after[clear], "moved cell", **moved)

        alt = (
            f"{counted(int(clear.sum()), 'cell')} moved to where sound is, and "
            f"{counted(int((~clear).sum()), 'cell')} in which no sound stood clear of the noise."
        )
        return framed(draw, frame, alt, *left_out(frame, after, len(after)))

    def _drawn_names(self, frame: Frame) -> Picture | None:
        """Draw clear prototypes with their names, and moved cells; None before the last sum."""
        if self.global_centroids is None or self.cells is None:
            return None
        places, labels = frame.place(self.global_centroids), np.asarray(self.labels)
        clear = np.array([name is not None for name in self.names], dtype=np.bool_)
        heard = frame.place(self.cells)[self.moved]
        owners = np.asarray(self.cell_labels, dtype=np.int64)[self.moved]
        words = [drawing.short(name, 18) for name in self.names if name is not None]
        names = room(frame, places[clear], words, 0.05)

        def draw(axes: Axes) -> None:
            background(axes, self.points, frame)
            unknown = {"s": 22, "c": drawing.MUTED, "marker": "X", "zorder": 4}
            scatter(axes, heard[owners < 0], "cell of unknown sound", **unknown)
            marks(axes, heard[owners >= 0], owners[owners >= 0], 14.0, "cell")
            marks(axes, places[clear], labels[clear], 70.0, "prototype of a label")
            plane.write(axes, names)

        listed = "; ".join(words[: drawing.MOST_ROWS]) or "none"
        alt = (
            f"{counted(int(clear.sum()), 'prototype')}: {listed}. "
            f"{counted(int((owners < 0).sum()), 'cell')} with sound that is {UNKNOWN}."
        )
        remarks = *left_out(frame, places, len(places)), without_room(len(words) - len(names))
        return framed(draw, frame, alt, *remarks)


def _named(state: DiscoveryPhase) -> dict[str, Any]:
    """Return prototypes, labels and radius, as fields of `CellFindings`; none before their sum."""
    if state.prototypes is None:
        return {}
    found = state.published()
    return {
        "global_centroids": found.centroids.array(),
        "top": np.arange(found.centroids.rows),
        "labels": np.asarray(found.labels),
        "name_p_values": found.name_p_values,
        "lengths": found.lengths,
        "cell_labels": found.cell_labels,
        "radius": found.radius,
    }
