"""Charts as inline SVG; widths are percentages of the page's, colours are in the style sheet.

Each chart repeats a text or table beside it, so it is hidden from screen readers unless it has its
own label.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from markupsafe import Markup, escape

from earshot_server.dashboard.histograms import CountInterval
from earshot_server.dashboard.wording import printable

Floats = npt.NDArray[np.float64]

HUES = 10
HEAT_LEVELS = 6
_HEIGHT = 72
"""Height of a chart over time, in pixels."""
_MAP_WIDTH, _MAP_HEIGHT, _MARGIN = 640.0, 440.0, 48.0
_LEAST_RADIUS, _LARGEST_RADIUS = 14.0, 30.0
_LETTER, _LINE = 9.4, 18.0
"""Average width of a letter in the map's names, and height of a line."""
_LONGEST_NAME = 24
_ROUNDS = 200
_SPARSE = 20
"""Largest number of marks with which numbers are enlarged on a small screen."""


class Place(NamedTuple):
    """One environment on the map, or one cell, which is drawn as a ring without its name."""

    number: int | str
    name: str
    hue: int
    votes: float
    cell: bool = False


def track(done: int, total: int) -> Markup:
    """Draw a row of `total` segments: `done` full ones, then one under way."""
    width = 100.0 / total
    return _hidden(
        "track",
        8,
        *(
            _element(
                "rect",
                class_=("done" if place < done else "now" if place == done else "ahead"),
                x=_share(place * width),
                width=_share(width - 1),
                height=8,
                rx=2,
            )
            for place in range(total)
        ),
    )


def participation(answered: int, expected: int, phones: int, least: int) -> Markup:
    """Draw a bar of all `phones`: those that answered, those asked that have not, the rest.

    A mark shows `least`, the fewest answers with which the phase continues.
    """
    unit = 100.0 / max(phones, expected, 1)
    return _bar(
        _block("missing", unit * (expected - answered), 2, x=_share(unit * answered)),
        _block("full", unit * answered),
        _upright(unit * least, 0, 18, "least"),
    )


def interval_bar(count: CountInterval, largest: float) -> Markup:
    """Draw a bar up to the published count, with a whisker over the interval.

    The full width is `largest`. The bar is hollow if the count may be noise alone.
    """
    unit = 100.0 / largest
    low, high = _share(unit * count.least), _share(unit * count.most)
    return _bar(
        _block("full" if count.clear else "missing", unit * max(0, min(count.published, largest))),
        # The halo separates the whisker from the bar below it.
        _element("line", class_="halo", x1=low, x2=high, y1=9, y2=9),
        _element("line", class_="whisker", x1=low, x2=high, y1=9, y2=9),
        _upright(unit * count.least, 4, 14, "whisker"),
        _upright(unit * count.most, 4, 14, "whisker"),
    )


def over_time(
    counts: Sequence[CountInterval | None],
    times: Sequence[float],
    largest: float,
    asked: Sequence[object] | None = None,
) -> Markup:
    """Draw one mark with a whisker per phase, and lines between comparable ones.

    A mark is hollow if the count may be noise alone. The horizontal axis is time; every phase has a
    tick on it.

    Args:
        counts: Counts of the phases, oldest first; None leaves a gap.
        times: Times of the phases, in seconds; the axis goes from the earliest to the latest.
        largest: Count at the upper edge, positive.
        asked: Request of each phase to phones; counts with equal requests are comparable, by
            default all.
    """
    drawn: list[Markup] = [
        _element("line", class_="axis", x1=0, x2="100%", y1=_HEIGHT - 1, y2=_HEIGHT - 1)
    ]
    marks: list[Markup] = []
    last: dict[object, tuple[str, str]] = {}
    kinds = asked or [None] * len(counts)
    for count, place, kind in zip(counts, _along(times), kinds, strict=True):
        drawn.append(_upright(place, _HEIGHT - 1, _HEIGHT + 3, "axis"))
        if count is None:
            last.pop(kind, None)
            continue
        x, y = _share(place), _number(_height(count.published, largest))
        drawn.append(
            _upright(place, _height(count.most, largest), _height(count.least, largest), "whisker")
        )
        if kind in last:
            drawn.append(
                _element("line", class_="course", x1=last[kind][0], y1=last[kind][1], x2=x, y2=y)
            )
        shape = "mark" if count.clear else "mark hollow"
        marks.append(_element("circle", class_=shape, cx=x, cy=y, r=3.5))
        last[kind] = x, y
    return _hidden("course-chart", _HEIGHT, *drawn, *marks)


def _along(times: Sequence[float]) -> list[float]:
    """Return the times' positions as percentages of the width, with margins for the marks."""
    first, span = min(times), max(times) - min(times)
    return [3.0 + 94.0 * ((time - first) / span if span > 0 else 0.5) for time in times]


def heat(count: float, largest: float) -> int:
    """Return the intensity of a table cell's colour, from 0 to `HEAT_LEVELS`."""
    if largest <= 0 or count <= 0:
        return 0
    return max(1, round(HEAT_LEVELS * min(1.0, count / largest)))


def heated(sums: Sequence[Sequence[int]]) -> list[tuple[tuple[int, int], ...]]:
    """Return sums of votes row by row, each with its colour's intensity (`heat`)."""
    largest = max((max(row) for row in sums if row), default=0)
    return [tuple((votes, heat(votes, largest)) for votes in row) for row in sums]


def principal_plane(points: npt.ArrayLike) -> tuple[Floats, float | None]:
    """Project points on their first two principal components.

    Args:
        points: Points, (points, dimensions), at least one.

    Returns:
        Their centred coordinates, (points, 2), and the share of the variance that they explain;
        None if points have at most two dimensions, or no variance.
    """
    points = np.asarray(points, dtype=np.float64)
    centred = points - points.mean(axis=0)
    if centred.shape[1] <= 2:
        return np.pad(centred, ((0, 0), (0, 2 - centred.shape[1]))), None
    _, lengths, directions = np.linalg.svd(centred, full_matrices=False)
    axes = directions[:2]
    # The sign of a principal direction is arbitrary: the largest entry is made positive.
    largest = np.abs(axes).argmax(axis=1)
    axes = axes * np.where(axes[np.arange(len(axes)), largest] < 0, -1.0, 1.0)[:, None]
    plane = centred @ axes.T
    variance = float(np.square(lengths).sum())
    share = float(np.square(lengths[:2]).sum()) / variance if variance > 0 else None
    return np.pad(plane, ((0, 0), (0, 2 - plane.shape[1]))), share


def environment_map(places: Sequence[Place], plane: npt.ArrayLike, title: str) -> Markup:
    """Draw a map of environments: marks scaled by votes, with numbers and, where free, names.

    Args:
        places: Environments.
        plane: Coordinates of the environments, (environments, 2); scaled to fit.
        title: Text for screen readers.
    """
    most = max((place.votes for place in places), default=0)
    shares = np.array([max(0.0, place.votes / most) if most > 0 else 0.0 for place in places])
    radii = _LEAST_RADIUS + (_LARGEST_RADIUS - _LEAST_RADIUS) * np.sqrt(shares)
    centres = _apart(_fitted(np.asarray(plane, dtype=np.float64)), radii)
    order = np.argsort(-radii, kind="stable")
    marks = [_mark(places[i], centres[i], radii[i]) for i in order]
    return Markup('<svg class="{}" viewBox="0 0 {} {}" role="img" aria-label="{}">{}</svg>').format(
        "map sparse" if len(places) <= _SPARSE else "map",
        _number(_MAP_WIDTH),
        _number(_MAP_HEIGHT),
        title,
        Markup("").join([*marks, *_names(places, centres, radii, order)]),
    )


def _fitted(plane: Floats) -> Floats:
    """Scale points to the map's frame, equally in both axes, with the second axis upwards."""
    low, high = plane.min(axis=0), plane.max(axis=0)
    room = np.array([_MAP_WIDTH, _MAP_HEIGHT]) - 2 * (_MARGIN + _LARGEST_RADIUS / 2)
    spans = high - low
    scales = [side / span for side, span in zip(room, spans, strict=True) if span > 1e-12]
    centred = (plane - (low + high) / 2) * (min(scales) if scales else 0.0)
    fitted: Floats = centred * [1.0, -1.0] + [_MAP_WIDTH / 2, _MAP_HEIGHT / 2]
    return fitted


def _apart(centres: Floats, radii: Floats) -> Floats:
    """Move marks until none covers another's number, as far as the frame allows."""
    # Marks at one place are separated along a fixed spiral.
    turns = 2.4 * np.arange(len(centres))
    centres = centres + 1e-3 * np.column_stack([np.cos(turns), np.sin(turns)])
    wanted = (radii[:, None] + radii) * 0.95
    np.fill_diagonal(wanted, 0.0)
    limits = np.array([_MAP_WIDTH, _MAP_HEIGHT])
    for _ in range(_ROUNDS):
        between = centres[:, None] - centres
        distances = np.hypot(between[..., 0], between[..., 1])
        lacking = np.maximum(0.0, wanted - distances)
        if not lacking.any():
            break
        np.fill_diagonal(distances, 1.0)
        centres = centres + ((lacking / distances)[..., None] * between).sum(axis=1) / 2
        centres = np.clip(centres, radii[:, None] + 4, limits - radii[:, None] - 4)
    return centres


def _mark(place: Place, centre: Floats, radius: float) -> Markup:
    x, y = (_number(value) for value in centre)
    kind = "place cell" if place.cell else "place"
    return Markup('<g><title>{}</title>{}<text class="number" x="{}" y="{}">{}</text></g>').format(
        f"{place.number}: {printable(place.name)}",
        _element("circle", class_=f"{kind} hue-{place.hue}", cx=x, cy=y, r=_number(radius)),
        *(x, y, place.number),
    )


class _Box(NamedTuple):
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        return max(self.left, other.left) < min(self.right, other.right) and (
            max(self.top, other.top) < min(self.bottom, other.bottom)
        )

    def on_map(self) -> bool:
        return min(self.left, self.top) >= 4 and (
            self.right <= _MAP_WIDTH - 4 and self.bottom <= _MAP_HEIGHT - 4
        )


def _names(
    places: Sequence[Place], centres: Floats, radii: Floats, order: npt.NDArray[np.int64]
) -> list[Markup]:
    """Draw names beside their marks, the largest first, where they cover nothing."""
    taken = [
        _Box(x - radius, y - radius, x + radius, y + radius)
        for (x, y), radius in zip(centres, radii, strict=True)
    ]
    names = []
    for i in (i for i in order if not places[i].cell):
        name = _shortened(places[i].name)
        for box, anchor, x in _spots(centres[i], radii[i], len(name) * _LETTER):
            if box.on_map() and not any(map(box.meets, taken)):
                taken.append(box)
                names.append(
                    Markup('<text class="name" text-anchor="{}" x="{}" y="{}">{}</text>').format(
                        anchor, _number(x), _number((box.top + box.bottom) / 2), name
                    )
                )
                break
    return names


def _spots(centre: Floats, radius: float, width: float) -> list[tuple[_Box, str, float]]:
    """Return the possible boxes of a name (right, left, below, above), with anchor and x."""
    x, y = centre
    gap, half = radius + 6, width / 2
    return [
        (_Box(x + gap, y - _LINE / 2, x + gap + width, y + _LINE / 2), "start", x + gap),
        (_Box(x - gap - width, y - _LINE / 2, x - gap, y + _LINE / 2), "end", x - gap),
        (_Box(x - half, y + gap, x + half, y + gap + _LINE), "middle", x),
        (_Box(x - half, y - gap - _LINE, x + half, y - gap), "middle", x),
    ]


def _shortened(name: str) -> str:
    name = printable(name)
    return name if len(name) <= _LONGEST_NAME else name[: _LONGEST_NAME - 1] + "…"


def _height(count: float, largest: float) -> float:
    """Return the pixels from the upper edge, with room for a mark at both edges."""
    share = min(1.0, max(0.0, count / largest))
    return 5 + (_HEIGHT - 11) * (1 - share)


def _upright(place: float, top: float, bottom: float, kind: str) -> Markup:
    x = _share(place)
    return _element("line", class_=kind, x1=x, x2=x, y1=_number(top), y2=_number(bottom))


def _bar(*content: Markup) -> Markup:
    """Draw a bar's background and its content."""
    whole = _element("rect", class_="whole", y=3, width="100%", height=12, rx=3)
    return _hidden("bar", 18, whole, *content)


def _block(kind: str, width: float, radius: int = 3, **place: str) -> Markup:
    """Draw a part of a bar, as a percentage of its width."""
    return _element("rect", class_=kind, **place, y=3, width=_share(width), height=12, rx=radius)


def _hidden(kind: str, height: int, *content: Markup) -> Markup:
    return Markup(
        '<svg class="{}" width="100%" height="{}" aria-hidden="true" focusable="false">{}</svg>'
    ).format(kind, height, Markup("").join(content))


def _element(tag: str, **attributes: object) -> Markup:
    written = Markup(" ").join(
        Markup('{}="{}"').format(name.rstrip("_"), escape(value))
        for name, value in attributes.items()
    )
    return Markup("<{} {}/>").format(tag, written)


def _share(percentage: float) -> str:
    return f"{min(100.0, max(0.0, percentage)):.2f}%"


def _number(value: float) -> str:
    return f"{value:.1f}"
