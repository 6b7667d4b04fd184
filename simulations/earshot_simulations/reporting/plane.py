"""Pictures of points in one plane: the two directions in which they differ most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from earshot_simulations.reporting import drawing
from earshot_simulations.reporting.drawing import Picture
from earshot_simulations.reporting.words import counted, percent, whole

_MARKERS = ("o", "s", "^", "D")
"""Shapes of marks, which change after every ten groups."""
_LETTER, _LINE_HEIGHT = 0.024, 0.052
"""Size of text as fractions of the width and height of a picture."""
MOST_VECTORS = 1500
"""Most marks drawn as vectors; more are rasterized, so that the file stays small."""
_MOST_MARKS = 20_000

HEARD = "what phones heard"
"""Entry of a legend for recordings."""

Points = npt.NDArray[np.float32]
"""Points before projection, shape (m, d)."""
Integers = npt.NDArray[np.integer[Any]]
Placed = npt.NDArray[np.float64]
"""Points in the plane, shape (m, 2)."""


@dataclass(frozen=True)
class Frame:
    """The plane that all pictures of a page share.

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

    def place(self, points: Points) -> Placed:
        """Return the places (m, 2) of points (m, d) in the plane."""
        placed: Placed = (points - self.mean) @ self.directions.T
        return placed

    def outside(self, placed: Placed) -> int:
        """Return the number of placed points beyond the corners."""
        return int(np.any((placed < self.low) | (placed > self.high), axis=1).sum())


def frame(points: Points) -> Frame:
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
        # The sign of a component is arbitrary: make the largest entry positive, for the same
        # picture on every machine.
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


def recordings(points: Points, scenes: Integers, names: Sequence[str], plane: Frame) -> Picture:
    """Draw points coloured by scene, with the scenes' names."""
    placed = plane.place(points)
    present = np.unique(scenes)
    centres = np.array([placed[scenes == scene].mean(axis=0) for scene in present])
    written = room(plane, centres, [names[scene] for scene in present], 0.055)

    def draw(axes: Axes) -> None:
        marks(axes, placed, scenes, 5.0, f"{HEARD}, by scene")
        write(axes, written)

    alt = f"{counted(len(placed), 'recording')} of {counted(len(present), 'scene')}, by true scene."
    return framed(draw, plane, alt, without_room(len(present) - len(written)))


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


def marks(axes: Axes, placed: Placed, group: Integers, size: float | Placed, label: str) -> None:
    """Scatter points in the colour and shape of their group, at most one call per look.

    Args:
        axes: Axes to draw on.
        placed: Places of the points.
        group: Group of each point.
        size: Size of all marks, or of each.
        label: Entry of a legend, which shows the look of the first group.
    """
    looks = group % (len(drawing.PALETTE) * len(_MARKERS))
    for index, look in enumerate(np.unique(looks)):
        members = looks == look
        scatter(
            axes,
            placed[members],
            "" if index else label,
            s=size if isinstance(size, float) else size[members],
            c=drawing.PALETTE[look % len(drawing.PALETTE)],
            marker=_MARKERS[look // len(drawing.PALETTE)],
            alpha=0.75,
            rasterized=len(placed) > MOST_VECTORS,
            zorder=3,
        )


def background(axes: Axes, points: Points, plane: Frame) -> None:
    """Draw points faintly, behind others."""
    placed, pixels = plane.place(points), len(points) > MOST_VECTORS
    scatter(axes, placed, HEARD, s=3, c=drawing.MUTED, alpha=0.3, rasterized=pixels)


def scatter(axes: Axes, placed: Placed, label: str, **look: Any) -> None:
    """Draw marks without edges; their entry in a legend is empty for none."""
    entry = label if label and len(placed) else None
    axes.scatter(placed[:, 0], placed[:, 1], linewidths=0, label=entry, **look)


def room(
    plane: Frame, centres: Placed, names: Sequence[str], below: float
) -> list[tuple[float, float, str]]:
    """Return the place of each name: below its centre, or lower until it covers no other name.

    Names that end up outside the picture are left out.
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


def left_out(plane: Frame, placed: Placed, drawn: int) -> tuple[str, str]:
    """Return remarks on points not drawn and on points outside; empty if there are none."""
    outside = plane.outside(placed)
    lie = "lies" if outside == 1 else "lie"
    return (
        f"{whole(drawn)} of {whole(len(placed))} drawn." if drawn < len(placed) else "",
        f"{whole(outside)} {lie} outside the picture." if outside else "",
    )


def sample(count: int) -> Integers:
    """Return evenly spaced indices of the points to draw, or all if they are few enough."""
    return np.linspace(0, count - 1, min(count, _MOST_MARKS)).astype(np.int64)
