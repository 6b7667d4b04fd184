"""The pictures of a learning phase: those of Figure 5.1 of the thesis."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from earshot_server.discovery.interface import LEFT_OUT, OUTLIER
from earshot_simulations.learning.run import Integers, Run
from earshot_simulations.reporting import drawing
from earshot_simulations.reporting.drawing import Picture
from earshot_simulations.reporting.plane import (
    MOST_VECTORS,
    Frame,
    background,
    framed,
    left_out,
    marks,
    room,
    sample,
    scatter,
    without_room,
    write,
)
from earshot_simulations.reporting.words import UNNAMED, counted, whole


def local_centroids(run: Run, plane: Frame) -> Picture | None:
    """Draw the local top centroids of all phones; None before there are any."""
    if run.local_centroids is None:
        return None
    placed = plane.place(run.local_centroids)
    drawn = placed[sample(len(placed))]

    def draw(axes: Axes) -> None:
        background(axes, run.points, plane)
        marks(axes, drawn, np.zeros(len(drawn), dtype=np.int64), size=6.0)

    alt = f"{counted(len(placed), 'local centroid')} that phones published, noise included."
    return framed(draw, plane, alt, *left_out(plane, placed, len(drawn)))


def global_centroids(run: Run, plane: Frame) -> Picture | None:
    """Draw local centroids by cluster, outliers in grey, global centroids as crosses."""
    if run.global_centroids is None:
        return None
    placed, clusters = np.empty((0, 2)), run.local_clusters
    if run.local_centroids is not None and len(clusters):
        placed = plane.place(run.local_centroids)
    chosen = sample(len(placed))
    centres = plane.place(run.global_centroids)
    colours = _cluster_colours(run)

    def draw(axes: Axes) -> None:
        background(axes, run.points, plane)
        points, cluster = placed[chosen], clusters[chosen]
        outlier, pixels = cluster < 0, len(points) > MOST_VECTORS
        scatter(axes, points[outlier], s=4, c=drawing.MUTED, rasterized=pixels)
        marks(axes, points[~outlier], colours[cluster[~outlier]], size=6.0)
        scatter(axes, centres, s=70, c=drawing.CARD, marker="X", zorder=4)
        scatter(axes, centres, s=34, c=drawing.INK, marker="X", zorder=5)

    outliers, left_out_ones = (int((clusters == kind).sum()) for kind in (OUTLIER, LEFT_OUT))
    unseen = f", {whole(left_out_ones)} were not looked at" if left_out_ones else ""
    alt = (
        f"{counted(len(centres), 'global centroid')} from "
        f"{counted(len(placed), 'local centroid')}, "
        f"{counted(outliers, 'outlier')} among them{unseen}."
    )
    return framed(draw, plane, alt, *left_out(plane, placed, len(chosen)))


def labelled_centroids(run: Run, plane: Frame) -> Picture | None:
    """Draw the kept centroids with labels and votes, larger where more phones voted."""
    if run.global_centroids is None or run.centroid_votes is None:
        return None
    centres = plane.place(run.global_centroids[run.top])
    votes = run.centroid_votes[run.top]
    words = [
        f"{UNNAMED if name is None else drawing.short(name, 18)} {count}"
        for name, count in zip(run.names, votes, strict=True)
    ]
    colours = _cluster_colours(run)[run.top]
    names = room(plane, centres, words, 0.05)

    def draw(axes: Axes) -> None:
        background(axes, run.points, plane)
        share = np.clip(votes / max(1, votes.max(initial=1)), 0.05, 1)
        marks(axes, centres, colours, size=140 * share)
        write(axes, names)

    listed = "; ".join(words[: drawing.MOST_ROWS]) or "none"
    alt = f"{counted(len(centres), 'kept centroid')} with label and votes: {listed}."
    remarks = *left_out(plane, centres, len(centres)), without_room(len(words) - len(names))
    return framed(draw, plane, alt, *remarks)


def _cluster_colours(run: Run) -> Integers:
    """Return for each global centroid the number of the nearest scene, with each scene used once.

    Colours then mean the same in all pictures; centroids without a scene get new ones.
    """
    from scipy.optimize import linear_sum_assignment
    from scipy.spatial.distance import cdist

    if run.global_centroids is None:
        return np.empty(0, dtype=np.int64)
    present = np.unique(run.scenes)
    colours = np.full(len(run.global_centroids), -1)
    if len(present):
        means = np.array([run.points[run.scenes == scene].mean(axis=0) for scene in present])
        centroids, scenes = linear_sum_assignment(cdist(run.global_centroids, means))
        colours[centroids] = present[scenes]
    others = colours < 0
    colours[others] = len(run.label_names) + np.arange(others.sum())
    return colours
