"""The pictures of a learning phase, as SVG that follows the reader's light or dark theme.

The first four are those of Figure 5.1 of the thesis.
"""

from __future__ import annotations

import base64
import io
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from matplotlib.axes import Axes

from earshot_simulations.engine.course import StepRecord
from earshot_simulations.learning.run import NOBODY, Floats, Integers, Run
from earshot_simulations.learning.wording import byte_size, counted, duration, printable, whole

PALETTE = (
    "#0096ff",
    "#d2b400",
    "#a50f78",
    "#5a5a0f",
    "#f08796",
    "#5a4bd2",
    "#c34b69",
    "#3cc3ff",
    "#b48700",
    "#8778b4",
)
"""Ten colours that stay apart under the three colour-vision deficiencies, on white and on black."""
MARKERS = ("o", "s", "^", "D")
"""Beyond ten groups the shape of the marks changes, too."""
UP, DOWN = PALETTE[0], PALETTE[1]

# Drawn in the light theme; `_themed` turns each into a CSS variable that knows the dark one.
_INK, _MUTED, _LINE, _CARD = "#1b1e23", "#8b919b", "#dfe2e7", "#fdfdfe"
_THEME = (
    "<style>"
    ":root{--ink:#1b1e23;--muted:#8b919b;--line:#dfe2e7;--card:#fdfdfe}"
    "@media (prefers-color-scheme:dark){"
    ":root{--ink:#e6e8ec;--muted:#7c828d;--line:#33383f;--card:#181b20}}"
    "</style>"
)
_VARIABLES = {
    _INK: "var(--ink)",
    _MUTED: "var(--muted)",
    _LINE: "var(--line)",
    _CARD: "var(--card)",
}
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "earshot",
    # A label such as "$5" is a label, not a formula.
    "text.parse_math": False,
    "font.size": 8.5,
    "text.color": _INK,
    "axes.labelcolor": _INK,
    "axes.edgecolor": _LINE,
    "axes.linewidth": 0.8,
    "axes.titlesize": 8.5,
    "xtick.color": _LINE,
    "ytick.color": _LINE,
    "xtick.labelcolor": _INK,
    "ytick.labelcolor": _INK,
    "axes.grid": False,
    "axes.axisbelow": True,
    "grid.color": _LINE,
    "legend.frameon": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
}
_WIDTH = 4.6
"""Inches; also what keeps text legible when a page scales the picture down to a phone."""
_LETTER, _LINE_HEIGHT = 0.024, 0.052
"""Size of text as fractions of the width and height of a picture of the plane."""
_MOST_VECTORS = 1500
"""Above so many marks the marks, and only they, become pixels: the file stays small."""
_MOST_MARKS = 20_000
_MOST_ROWS = 40
_MOST_CELLS = 200


@dataclass(frozen=True)
class Picture:
    """An SVG without outside references, and what it shows in words.

    Attributes:
        svg: the markup.
        alt: for who cannot see it.
        remark: what the picture leaves out; empty if nothing.
    """

    svg: str
    alt: str
    remark: str = ""

    @property
    def source(self) -> str:
        """As a data URI for an `img`, whose styles and ids cannot meet those of the page."""
        return "data:image/svg+xml;base64," + base64.b64encode(self.svg.encode()).decode()


@dataclass(frozen=True)
class Frame:
    """The plane that all four pictures of a learning phase share.

    Attributes:
        mean: (d,), what lies at the origin.
        directions: (2, d), orthonormal rows.
        explained: the share of the points' variance that the plane keeps; None if it keeps all.
        low: (2,), the lower left corner.
        high: (2,), the upper right corner.
    """

    mean: npt.NDArray[np.float64]
    directions: npt.NDArray[np.float64]
    explained: float | None
    low: npt.NDArray[np.float64]
    high: npt.NDArray[np.float64]

    def place(self, points: Floats) -> npt.NDArray[np.float64]:
        """Where points (m, d) lie in the plane, (m, 2)."""
        placed: npt.NDArray[np.float64] = (points - self.mean) @ self.directions.T
        return placed

    def outside(self, placed: npt.NDArray[np.float64]) -> int:
        """How many of the placed points lie beyond the corners."""
        return int(np.any((placed < self.low) | (placed > self.high), axis=1).sum())


def frame(points: Floats) -> Frame:
    """The points themselves in up to two dimensions, their first two principal components above.

    The picture is framed around these points: centroids that noise threw far away are counted in
    the remarks instead of shrinking everything else.

    Args:
        points: float32 (m, d), m ≥ 0.
    """
    dimensions = points.shape[1]
    mean, directions, explained = np.zeros(dimensions), np.eye(2, dimensions), None
    if dimensions > 2:
        mean = points.mean(axis=0, dtype=np.float64) if len(points) else mean
        spread, rows = np.linalg.svd(points - mean, full_matrices=False)[1:]
        directions[: len(rows[:2])] = rows[:2]
        # Which way a component points is arbitrary; the largest entry decides, for the same
        # picture on every machine.
        largest = np.abs(directions).argmax(axis=1)
        directions *= np.sign(directions[[0, 1], largest])[:, None]
        variance = float((spread**2).sum())
        explained = float((spread[:2] ** 2).sum()) / variance if variance else 1.0
    placed = (points - mean) @ directions.T if len(points) else np.array([[-1.0, -1.0], [1.0, 1.0]])
    low, high = placed.min(axis=0), placed.max(axis=0)
    margin = 0.08 * max(float((high - low).max()), 1e-6)
    return Frame(mean, directions, explained, low - margin, high + margin)


def heard(run: Run, plane: Frame) -> Picture:
    """The phones' points, coloured by true scene."""
    placed = plane.place(run.points)
    present = np.unique(run.scenes)
    centres = np.array([placed[run.scenes == scene].mean(axis=0) for scene in present])
    names = _spread(plane, centres, [run.scene_names[scene] for scene in present], 0.055)

    def draw(axes: Axes) -> None:
        _marks(axes, placed, run.scenes, size=5.0)
        _write(axes, names)

    alt = f"{counted(len(placed), 'recording')} of {counted(len(present), 'scene')}, by true scene."
    return _plane_picture(draw, plane, alt, _unnamed(len(present) - len(names)))


def published(run: Run, plane: Frame) -> Picture | None:
    """The local top centroids of all phones; None before there are any."""
    if run.local_centroids is None:
        return None
    placed = plane.place(run.local_centroids)
    shown = placed[_sample(len(placed), _MOST_MARKS)]

    def draw(axes: Axes) -> None:
        _background(axes, run, plane)
        _marks(axes, shown, np.zeros(len(shown), dtype=np.int64), size=6.0)

    alt = f"{counted(len(placed), 'local centroid')} that phones published, noise included."
    return _plane_picture(draw, plane, alt, _left_out(plane, placed, len(shown)))


def discovered(run: Run, plane: Frame) -> Picture | None:
    """Local centroids coloured by cluster, outliers grey, global centroids as crosses."""
    if run.global_centroids is None:
        return None
    placed, clusters = np.empty((0, 2)), run.local_clusters
    if run.local_centroids is not None and len(clusters):
        placed = plane.place(run.local_centroids)
    chosen = _sample(len(placed), _MOST_MARKS)
    centres = plane.place(run.global_centroids)
    colours = _cluster_colours(run)

    def draw(axes: Axes) -> None:
        _background(axes, run, plane)
        shown, cluster = placed[chosen], clusters[chosen]
        outlier = cluster == NOBODY
        axes.scatter(
            shown[outlier, 0],
            shown[outlier, 1],
            s=4,
            c=_MUTED,
            linewidths=0,
            rasterized=len(shown) > _MOST_VECTORS,
        )
        _marks(axes, shown[~outlier], colours[cluster[~outlier]], size=6.0)
        axes.scatter(
            centres[:, 0], centres[:, 1], s=70, c=_CARD, marker="X", linewidths=0, zorder=4
        )
        axes.scatter(centres[:, 0], centres[:, 1], s=34, c=_INK, marker="X", linewidths=0, zorder=5)

    outliers = int((clusters == NOBODY).sum())
    alt = (
        f"{counted(len(centres), 'global centroid')} from "
        f"{counted(len(placed), 'local centroid')}, {counted(outliers, 'outlier')} among them."
    )
    return _plane_picture(draw, plane, alt, _left_out(plane, placed, len(chosen)))


def labelled(run: Run, plane: Frame) -> Picture | None:
    """The kept centroids with their labels and votes; larger where more phones voted."""
    if run.global_centroids is None or run.centroid_votes is None:
        return None
    centres = plane.place(run.global_centroids[run.top])
    votes = run.centroid_votes[run.top]
    names = [
        f"{'no label' if name is None else _short(name, 18)} {count}"
        for name, count in zip(run.names, votes, strict=True)
    ]
    colours = _cluster_colours(run)[run.top]
    written = _spread(plane, centres, names, 0.05)

    def draw(axes: Axes) -> None:
        _background(axes, run, plane)
        share = np.clip(votes / max(1, votes.max(initial=1)), 0.05, 1)
        _marks(axes, centres, colours, size=140 * share)
        _write(axes, written)

    words = "; ".join(names[:_MOST_ROWS]) or "none"
    alt = f"{counted(len(centres), 'kept centroid')} with label and votes: {words}."
    left_out = _left_out(plane, centres, len(centres)), _unnamed(len(names) - len(written))
    return _plane_picture(draw, plane, alt, " ".join(filter(None, left_out)))


def bytes_per_step(steps: Sequence[StepRecord]) -> Picture | None:
    """Bytes up and down per phone that answered; None if no phone was ever asked."""
    shown = [step for step in steps if step.asked]
    if not shown:
        return None
    up = [step.per_phone(step.bytes_up) for step in shown]
    down = [step.per_phone(step.bytes_down) for step in shown]

    def draw(axes: Axes) -> None:
        _bars(axes, [_wrapped(step.step) for step in shown], {"up": up, "down": down}, byte_size)

    listed = "; ".join(
        f"{step.step}: {byte_size(sent)} up, {byte_size(received)} down"
        for step, sent, received in zip(shown, up, down, strict=True)
    )
    return _picture(draw, 0.45 * len(shown) + 0.5, f"Bytes per phone and step. {listed}.")


def seconds_per_step(steps: Sequence[StepRecord]) -> Picture | None:
    """Wall-clock time of every step; None before the first."""
    if not steps:
        return None
    seconds = [step.seconds for step in steps]

    def draw(axes: Axes) -> None:
        _bars(axes, [_wrapped(step.step) for step in steps], {"seconds": seconds}, duration)

    listed = "; ".join(f"{step.step}: {duration(step.seconds)}" for step in steps)
    return _picture(draw, 0.34 * len(steps) + 0.4, f"Wall-clock time per step. {listed}.")


def dropouts(steps: Sequence[StepRecord]) -> Picture | None:
    """How many phones vanished in each step; None if none did."""
    shown = [step for step in steps if step.asked]
    lost = [len(step.dropped) for step in shown]
    if not any(lost):
        return None

    def draw(axes: Axes) -> None:
        _bars(axes, [_wrapped(step.step) for step in shown], {"vanished": lost}, whole)

    listed = "; ".join(f"{step.step}: {count}" for step, count in zip(shown, lost, strict=True))
    return _picture(draw, 0.34 * len(shown) + 0.4, f"Phones that vanished, by step. {listed}.")


def centroid_votes(run: Run) -> Picture | None:
    """Votes of every candidate of the first vote, the kept ones in colour."""
    if run.centroid_votes is None or not len(run.centroid_votes):
        return None
    votes = run.centroid_votes
    order = np.argsort(-votes, kind="stable")[: 2 * _MOST_ROWS]
    kept = np.isin(order, run.top)

    def draw(axes: Axes) -> None:
        rank = np.arange(len(order))
        for members, colour, name in ((kept, UP, "kept"), (~kept, _MUTED, "not kept")):
            if members.any():
                axes.bar(rank[members], votes[order][members], color=colour, label=name)
        axes.set_xticks(rank if len(rank) <= 16 else [])
        axes.set_xticklabels(order if len(rank) <= 16 else [])
        axes.set_xlabel("global centroid")
        axes.set_ylabel("votes")
        axes.grid(axis="y", linewidth=0.6)
        axes.axhline(0, color=_MUTED, linewidth=0.8)
        axes.legend(loc="upper right")

    alt = (
        f"Votes of {counted(len(votes), 'candidate')}, from {votes.max()} down to {votes.min()}; "
        f"{len(run.top)} kept."
    )
    return _picture(draw, 2.6, alt, _not_shown(len(votes) - len(order), "candidate"))


def label_histogram(run: Run) -> Picture | None:
    """Recordings per label, as published centroids name them and as they are; None if uncounted."""
    if not (run.label_histogram.any() and run.true_histogram.any()):
        return None
    most = _largest(np.maximum(run.label_histogram, run.true_histogram))
    names = [_short(run.label_names[label]) for label in most]
    named, true = run.label_histogram[most], run.true_histogram[most]

    def draw(axes: Axes) -> None:
        _bars(axes, names, {"published": named, "true": true}, whole)

    listed = "; ".join(
        f"{name}: {ours} of {theirs}" for name, ours, theirs in zip(names, named, true, strict=True)
    )
    alt = f"Recordings per label, published of true. {listed}."
    remark = _not_shown(len(run.label_names) - len(most), "label")
    return _picture(draw, 0.4 * len(most) + 0.5, alt, remark)


def label_votes(run: Run) -> Picture | None:
    """The sums of the second vote: one row per kept centroid, one column per label."""
    if run.label_votes is None or not run.label_votes.size:
        return None
    columns = np.sort(_largest(np.maximum(run.label_votes, 0).sum(axis=0)))
    votes = run.label_votes[:_MOST_ROWS][:, columns]
    rows = len(votes)
    strength = np.clip(votes / max(1, votes.max()), 0, 1)

    def draw(axes: Axes) -> None:
        # Opacity instead of a colour scale: the same picture works on white and on black.
        colours = np.dstack([np.broadcast_to(_channels(UP), (*votes.shape, 3)), 0.75 * strength])
        edges = np.arange(len(columns) + 1), np.arange(rows + 1)
        if votes.size > _MOST_CELLS:
            axes.pcolormesh(*edges, colours, rasterized=True)
        else:
            axes.pcolormesh(*edges, colours, edgecolor=_CARD, linewidth=1)
            for (row, column), count in np.ndenumerate(votes):
                x, y = column + 0.5, row + 0.5
                axes.text(x, y, str(count), ha="center", va="center", fontsize=7)
        axes.invert_yaxis()
        axes.set_xticks(np.arange(len(columns)) + 0.5)
        axes.set_xticklabels([_short(run.label_names[label]) for label in columns], rotation=90)
        axes.set_yticks(np.arange(rows) + 0.5)
        axes.set_yticklabels(run.top[:rows])
        axes.set_ylabel("global centroid")
        axes.tick_params(length=0)

    alt = (
        f"Label votes of {counted(len(run.label_votes), 'kept centroid')} for "
        f"{counted(len(run.label_names), 'label')}; the largest entry is {run.label_votes.max()}."
    )
    left_out = (
        _not_shown(len(run.label_votes) - rows, "centroid"),
        _not_shown(len(run.label_names) - len(columns), "label"),
    )
    return _picture(draw, 0.24 * rows + 1.7, alt, " ".join(filter(None, left_out)))


def _picture(
    draw: Callable[[Axes], None], height: float, alt: str, remark: str = "", square: bool = False
) -> Picture:
    import matplotlib
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        # Text stays text, so the reader's fonts draw it, not the one that measures it here.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        figure = Figure(figsize=(_WIDTH, height), layout="constrained")
        axes = figure.add_subplot()
        if square:
            axes.set_aspect("equal")
        draw(axes)
        file = io.StringIO()
        nobody = dict.fromkeys(("Creator", "Date", "Format", "Type"))
        figure.savefig(file, format="svg", transparent=True, dpi=160, metadata=nobody)
    return Picture(_themed(file.getvalue()), alt, remark)


def _themed(svg: str) -> str:
    """The bare `svg` element, its colours and fonts those of the reader's theme."""
    svg = svg[svg.index("<svg") :]
    opening = svg.index(">") + 1

    def restyle(style: re.Match[str]) -> str:
        text = re.sub(r"'DejaVu Sans'[^;\"]*", "system-ui, sans-serif", style[0])
        return re.sub("#[0-9a-f]{6}", lambda colour: _VARIABLES.get(colour[0], colour[0]), text)

    return svg[:opening] + _THEME + re.sub(r'style="[^"]*"', restyle, svg[opening:])


def _plane_picture(draw: Callable[[Axes], None], plane: Frame, alt: str, remark: str) -> Picture:
    def framed(axes: Axes) -> None:
        draw(axes)
        axes.set_xlim(plane.low[0], plane.high[0])
        axes.set_ylim(plane.low[1], plane.high[1])
        axes.set_xticks([])
        axes.set_yticks([])
        axes.spines[:].set_visible(False)

    width, height = plane.high - plane.low
    return _picture(framed, _WIDTH * float(np.clip(height / width, 0.5, 1)), alt, remark, True)


def _marks(
    axes: Axes,
    placed: npt.NDArray[np.float64],
    group: Integers,
    size: float | npt.NDArray[np.float64],
) -> None:
    """Scatter points in the colour and shape of their group, at most one call per look."""
    looks = group % (len(PALETTE) * len(MARKERS))
    for look in np.unique(looks):
        members = looks == look
        axes.scatter(
            placed[members, 0],
            placed[members, 1],
            s=size if isinstance(size, float) else size[members],
            c=PALETTE[look % len(PALETTE)],
            marker=MARKERS[look // len(PALETTE)],
            linewidths=0,
            alpha=0.75,
            rasterized=len(placed) > _MOST_VECTORS,
            zorder=3,
        )


def _background(axes: Axes, run: Run, plane: Frame) -> None:
    """The phones' points, faint: only a simulation knows them."""
    placed = plane.place(run.points)
    axes.scatter(
        placed[:, 0],
        placed[:, 1],
        s=3,
        c=_MUTED,
        alpha=0.3,
        linewidths=0,
        rasterized=len(placed) > _MOST_VECTORS,
    )


def _spread(
    plane: Frame, centres: npt.NDArray[np.float64], names: Sequence[str], below: float
) -> list[tuple[float, float, str]]:
    """Where to write each name: below its centre, or lower until it covers no other.

    Names that then fall out of the picture are left out.
    """
    width, height = (plane.high - plane.low) * (_LETTER, _LINE_HEIGHT)
    written: list[tuple[float, float, str]] = []
    for index in np.argsort(-centres[:, 1]) if len(centres) else ():
        text = _short(names[index], 28)
        half = len(text) * width / 2
        x = float(np.clip(centres[index, 0], plane.low[0] + half, plane.high[0] - half))
        y = float(centres[index, 1]) - below * float(plane.high[1] - plane.low[1])
        for other, low, words in sorted(written, key=lambda name: -name[1]):
            if abs(x - other) < half + len(words) * width / 2 and abs(y - low) < height:
                y = low - height
        if plane.low[1] <= y <= plane.high[1]:
            written.append((x, y, text))
    return written


def _write(axes: Axes, names: Sequence[tuple[float, float, str]]) -> None:
    box = {"facecolor": _CARD, "alpha": 0.75, "linewidth": 0, "boxstyle": "round,pad=0.15"}
    for x, y, text in names:
        axes.text(x, y, text, ha="center", va="center", zorder=6, bbox=box)


def _unnamed(count: int) -> str:
    return f"{counted(count, 'name')} left out for want of room." if count else ""


def _cluster_colours(run: Run) -> Integers:
    """For each global centroid the number of the nearest scene, each scene used once.

    Colours then mean the same in all pictures; centroids that no scene is left for get new ones.
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
    left = colours < 0
    colours[left] = len(run.scene_names) + np.arange(left.sum())
    return colours


def _bars(
    axes: Axes,
    names: Sequence[str],
    series: Mapping[str, Sequence[float] | Integers],
    text: Callable[[float], str],
) -> None:
    """Horizontal bars with their values, one group per name, one colour per series."""
    rows, thick = np.arange(len(names)), 0.74 / len(series)
    for number, (name, values) in enumerate(series.items()):
        offset = (number - (len(series) - 1) / 2) * thick
        bars = axes.barh(rows + offset, values, thick * 0.86, color=(UP, DOWN)[number], label=name)
        axes.bar_label(bars, [text(value) for value in values], padding=3, fontsize=7.5)
    axes.set_yticks(rows)
    axes.set_yticklabels(names)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(length=0)
    axes.set_xticks([])
    axes.set_xlim(0, 1.22 * max(1e-9, *(max(values) for values in series.values())))
    axes.spines[:].set_visible(False)
    if len(series) > 1:
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), ncols=len(series), borderpad=0)


def _left_out(plane: Frame, placed: npt.NDArray[np.float64], shown: int) -> str:
    outside = plane.outside(placed)
    sampled = f"{whole(shown)} of {whole(len(placed))} drawn." if shown < len(placed) else ""
    beyond = f"{whole(outside)} lie outside the picture." if outside else ""
    return " ".join(filter(None, (sampled, beyond)))


def _not_shown(count: int, noun: str) -> str:
    return f"{counted(count, noun)} with fewer not shown." if count else ""


def _largest(amounts: Integers) -> Integers:
    """The indices of the largest amounts, largest first, as many as a picture has rows for."""
    return np.argsort(-amounts, kind="stable")[:_MOST_ROWS]


def _sample(count: int, most: int) -> Integers:
    """Evenly spaced indices, all of them if they are few enough."""
    return np.linspace(0, count - 1, min(count, most)).astype(np.int64)


def _short(text: str, most: int = 22) -> str:
    """At most so many characters."""
    text = printable(text)
    return text if len(text) <= most else text[: most - 1] + "…"


def _wrapped(step: str) -> str:
    return _short(step, 40).replace(": ", ":\n")


def _channels(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))
