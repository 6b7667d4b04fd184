"""The pictures of a learning phase in one plane: those of Figure 5.1 of the thesis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from earshot_server.dashboard.wording import UNNAMED, counted, whole
from earshot_server.discovery.interface import LEFT_OUT, OUTLIER
from earshot_simulations.learning import drawing
from earshot_simulations.learning.drawing import Picture
from earshot_simulations.learning.run import Floats, Integers, Run
from earshot_simulations.learning.wording import percent

_MARKERS = ("o", "s", "^", "D")
"""Shapes of marks, which change after every ten groups."""
_LETTER, _LINE_HEIGHT = 0.024, 0.052
"""Size of text as fractions of the width and height of a picture."""
_MOST_VECTORS = 1500
"""Most marks that are drawn as vectors; more become pixels, and only they, so that the file stays
small."""
_MOST_MARKS = 20_000

Placed = npt.NDArray[np.float64]
"""Points in the plane, shape (m, 2)."""


@dataclass(frozen=True)
class Frame:
    """The plane that all four pictures of a learning phase share.

    Attributes:
        mean: Point at the origin, (d,).
        directions: Orthonormal rows, (2, d).
        explained: Share of the points' variance that the plane keeps; None if it keeps all.
        low: Lower left corner, (2,).
        high: Upper right corner, (2,).
    """

    mean: npt.NDArray[np.float64]
    directions: npt.NDArray[np.float64]
    explained: float | None
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]

    def place(self, points: Floats) -> Placed:
        """Return the places (m, 2) of points (m, d) in the plane."""
        placed: Placed = (points - self.mean) @ self.directions.T
        return placed

    def outside(self, placed: Placed) -> int:
        """Return the number of placed points beyond the corners."""
        return int(np.any((placed < self.low) | (placed > self.high), axis=1).sum())


def frame(points: Floats) -> Frame:
    """Return the plane of the points, or of their first two principal components.

    The components are used beyond two dimensions. The picture is framed around these points:
    centroids that noise threw far away are counted in the remarks instead of shrinking everything
    else.

    Args:
        points: Points, float32 (m, d), m ≥ 0.
    """
    dimensions = points.shape[1]
    mean, directions, explained = np.zeros(dimensions), np.eye(2, dimensions), None
    if dimensions > 2:
        mean = points.mean(axis=0, dtype=np.float64) if len(points) else mean
        spread, rows = np.linalg.svd(points - mean, full_matrices=False)[1:]
        directions[: len(rows[:2])] = rows[:2]
        # The sign of a component is arbitrary; the largest entry decides, for the same picture
        # on every machine.
        largest = np.abs(directions).argmax(axis=1)
        directions *= np.sign(directions[[0, 1], largest])[:, None]
        variance = float((spread**2).sum())
        explained = float((spread[:2] ** 2).sum()) / variance if variance else 1.0
    placed = (points - mean) @ directions.T if len(points) else np.array([[-1.0, -1.0], [1.0, 1.0]])
    low, high = placed.min(axis=0), placed.max(axis=0)
    margin = 0.08 * max(float((high - low).max()), 1e-6)
    return Frame(mean, directions, explained, low - margin, high + margin)


def projection(plane: Frame) -> str:
    """Describe the projection and its loss; empty if there is none."""
    if plane.explained is None:
        return ""
    return (
        f"The {len(plane.mean)} dimensions are projected on the two in which the points differ "
        f"most; these hold {percent(plane.explained)} of their variance."
    )


def recordings(run: Run, plane: Frame) -> Picture:
    """Draw the phones' points, coloured by true scene."""
    placed = plane.place(run.points)
    scenes = np.unique(run.scenes)
    centres = np.array([placed[run.scenes == scene].mean(axis=0) for scene in scenes])
    names = room(plane, centres, [run.label_names[scene] for scene in scenes], 0.055)

    def draw(axes: Axes) -> None:
        marks(axes, placed, run.scenes, size=5.0)
        write(axes, names)

    alt = f"{counted(len(placed), 'recording')} of {counted(len(scenes), 'scene')}, by true scene."
    return framed(draw, plane, alt, without_room(len(scenes) - len(names)))


def local_centroids(run: Run, plane: Frame) -> Picture | None:
    """Draw the local top centroids of all phones; None before there are any."""
    if run.local_centroids is None:
        return None
    placed = plane.place(run.local_centroids)
    sample = placed[_sample(len(placed))]

    def draw(axes: Axes) -> None:
        background(axes, run, plane)
        marks(axes, sample, np.zeros(len(sample), dtype=np.int64), size=6.0)

    alt = f"{counted(len(placed), 'local centroid')} that phones published, noise included."
    return framed(draw, plane, alt, *left_out(plane, placed, len(sample)))


def global_centroids(run: Run, plane: Frame) -> Picture | None:
    """Draw local centroids by cluster, outliers in grey, global centroids as crosses."""
    if run.global_centroids is None:
        return None
    placed, clusters = np.empty((0, 2)), run.local_clusters
    if run.local_centroids is not None and len(clusters):
        placed = plane.place(run.local_centroids)
    sample = _sample(len(placed))
    centres = plane.place(run.global_centroids)
    colours = _cluster_colours(run)

    def draw(axes: Axes) -> None:
        background(axes, run, plane)
        points, cluster = placed[sample], clusters[sample]
        outlier, pixels = cluster < 0, len(points) > _MOST_VECTORS
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
    return framed(draw, plane, alt, *left_out(plane, placed, len(sample)))


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
        background(axes, run, plane)
        share = np.clip(votes / max(1, votes.max(initial=1)), 0.05, 1)
        marks(axes, centres, colours, size=140 * share)
        write(axes, names)

    listed = "; ".join(words[: drawing.MOST_ROWS]) or "none"
    alt = f"{counted(len(centres), 'kept centroid')} with label and votes: {listed}."
    remarks = *left_out(plane, centres, len(centres)), without_room(len(words) - len(names))
    return framed(draw, plane, alt, *remarks)


def framed(draw: Callable[[Axes], None], plane: Frame, alt: str, *remarks: str) -> Picture:
    """Draw with `draw`, within the frame."""

    def draw_framed(axes: Axes) -> None:
        from matplotlib.collections import PathCollection

        draw(axes)
        # Marks near the edge are drawn whole; those beyond it, which remarks count, are not drawn.
        for drawn in (each for each in axes.collections if isinstance(each, PathCollection)):
            placed = np.asarray(drawn.get_offsets(), dtype=np.float64)
            inside = np.all((placed >= plane.low) & (placed <= plane.high), axis=1)
            drawn.set_offsets(np.where(inside[:, None], placed, np.nan))
            drawn.set_clip_on(False)
        axes.set_xlim(plane.low[0], plane.high[0])
        axes.set_ylim(plane.low[1], plane.high[1])
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(False)

    width, height = plane.high - plane.low
    inches = drawing.WIDTH * float(np.clip(height / width, 0.5, 1))
    return drawing.picture(draw_framed, inches, alt, *remarks, square=True)


def marks(axes: Axes, placed: Placed, group: Integers, size: float | Placed) -> None:
    """Scatter points in the colour and shape of their group, at most one call per look."""
    looks = group % (len(drawing.PALETTE) * len(_MARKERS))
    for look in np.unique(looks):
        members = looks == look
        scatter(
            axes,
            placed[members],
            s=size if isinstance(size, float) else size[members],
            c=drawing.PALETTE[look % len(drawing.PALETTE)],
            marker=_MARKERS[look // len(drawing.PALETTE)],
            alpha=0.75,
            rasterized=len(placed) > _MOST_VECTORS,
            zorder=3,
        )


def background(axes: Axes, run: Run, plane: Frame) -> None:
    """Draw the phones' points faintly, which only a simulation knows."""
    placed, pixels = plane.place(run.points), len(run.points) > _MOST_VECTORS
    scatter(axes, placed, s=3, c=drawing.MUTED, alpha=0.3, rasterized=pixels)


def scatter(axes: Axes, placed: Placed, **look: Any) -> None:
    """Draw marks without edges."""
    axes.scatter(placed[:, 0], placed[:, 1], linewidths=0, **look)


def room(
    plane: Frame, centres: Placed, names: Sequence[str], below: float
) -> list[tuple[float, float, str]]:
    """Return the place of each name: below its centre, or lower until it covers no other name.

    Names that then fall out of the picture are left out.
    """
    width, height = (plane.high - plane.low) * (_LETTER, _LINE_HEIGHT)
    places: list[tuple[float, float, str]] = []
    for index in np.argsort(-centres[:, 1]) if len(centres) else ():
        text = drawing.short(names[index], 28)
        half = len(text) * width / 2
        x = float(np.clip(centres[index, 0], plane.low[0] + half, plane.high[0] - half))
        y = float(centres[index, 1]) - below * float(plane.high[1] - plane.low[1])
        for other, low, words in sorted(places, key=lambda place: -place[1]):
            if abs(x - other) < half + len(words) * width / 2 and abs(y - low) < height:
                y = low - height
        if plane.low[1] <= y <= plane.high[1]:
            places.append((x, y, text))
    return places


def write(axes: Axes, names: Sequence[tuple[float, float, str]]) -> None:
    """Write the names at the places from `room`."""
    box = {"facecolor": drawing.CARD, "alpha": 0.75, "linewidth": 0, "boxstyle": "round,pad=0.15"}
    for x, y, text in names:
        axes.text(x, y, text, ha="center", va="center", zorder=6, bbox=box)


def without_room(count: int) -> str:
    """Return the remark on names that are left out; empty if none are."""
    return f"{counted(count, 'name')} left out for lack of room." if count else ""


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


def left_out(plane: Frame, placed: Placed, drawn: int) -> tuple[str, str]:
    """Return remarks on points not drawn and on points outside; empty if there are none."""
    outside = plane.outside(placed)
    lie = "lies" if outside == 1 else "lie"
    return (
        f"{whole(drawn)} of {whole(len(placed))} drawn." if drawn < len(placed) else "",
        f"{whole(outside)} {lie} outside the picture." if outside else "",
    )


def _sample(count: int) -> Integers:
    """Return evenly spaced indices of the points to draw, or all if they are few enough."""
    return np.linspace(0, count - 1, min(count, _MOST_MARKS)).astype(np.int64)
