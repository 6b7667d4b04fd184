"""The pictures of a discovery by secure sums: where cells begin and move to, and their names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from earshot_protocol.geometry import Geometry, nearest
from earshot_simulations.learning.run import Floats, Run
from earshot_simulations.reporting import drawing
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
    write,
)
from earshot_simulations.reporting.words import UNNAMED, counted


def start(run: Run, plane: Frame) -> Picture | None:
    """Draw the public start centroids and the cell of each recording."""
    if run.start_centroids is None:
        return None
    return _cells(run, plane, run.start_centroids, "public start centroid")


def moved(run: Run, plane: Frame) -> Picture | None:
    """Draw where sums moved the cells, and where from; None before the first sum."""
    if run.start_centroids is None or run.global_centroids is None or not len(run.moved):
        return None
    before, after = plane.place(run.start_centroids), plane.place(run.global_centroids)
    clear = run.moved
    began = clear[: len(before)]  # cells that came later have no start

    def draw(axes: Axes) -> None:
        background(axes, run.points, plane)
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
    return framed(draw, plane, alt, *left_out(plane, after, len(after)))


def named(run: Run, plane: Frame) -> Picture | None:
    """Draw cells with their names, coloured by environment; None before the last sum."""
    if run.global_centroids is None or run.label_votes is None:
        return None
    centres, labels = plane.place(run.global_centroids), np.asarray(run.labels)
    clear = np.array([name is not None for name in run.names], dtype=np.bool_)
    words = [drawing.short(name, 18) for name in run.names if name is not None]
    names = room(plane, centres[clear], words, 0.05)

    def draw(axes: Axes) -> None:
        background(axes, run.points, plane)
        scatter(axes, centres[~clear], s=22, c=drawing.MUTED, marker="X", zorder=4)
        marks(axes, centres[clear], labels[clear], size=60.0)
        write(axes, names)

    listed = "; ".join(words[: drawing.MOST_ROWS]) or "none"
    alt = (
        f"{counted(int(clear.sum()), 'named cell')}: {listed}. "
        f"{counted(int((~clear).sum()), 'cell')} {UNNAMED}."
    )
    remarks = *left_out(plane, centres, len(centres)), without_room(len(words) - len(names))
    return framed(draw, plane, alt, *remarks)


def _cells(run: Run, plane: Frame, centroids: Floats, noun: str) -> Picture:
    """Draw recordings in the colour of their cell, and the cells' centroids."""
    placed, centres = plane.place(run.points), plane.place(centroids)
    cells = np.empty(0, dtype=np.int64)
    if len(placed):
        cells = nearest(run.points, centroids, Geometry.SPHERICAL)

    def draw(axes: Axes) -> None:
        marks(axes, placed, cells, size=5.0)
        scatter(axes, centres, s=70, c=drawing.CARD, marker="X", zorder=4)
        scatter(axes, centres, s=34, c=drawing.INK, marker="X", zorder=5)

    used = len(np.unique(cells))
    alt = f"{counted(len(centres), noun)}, {used} of which have recordings in their cell."
    return framed(draw, plane, alt, *left_out(plane, centres, len(centres)))
