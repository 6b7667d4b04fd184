"""Charts as inline SVG; widths are percentages of the page's, colours are in the style sheet.

Each chart repeats a text or table beside it, so it is hidden from screen readers unless it has its
own label. The chart of a campaign's weeks is also on pages of simulations, which have another style
sheet: it has colours of its own, and the page's colour of text.
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


_WEEKS_HEIGHT, _ABOVE, _BELOW = 132, 18, 22
"""Height of a chart of weeks in pixels, and of its parts for texts above and below."""
_LEFT, _RIGHT = 11.0, 98.0
"""Ends of its axis, as percentages of the width."""
_MARK, _BESIDE = "#2f7fd1", "#c2571a"
"""Its colours, of which the contrast to light and to dark pages is above 3.5."""


class WeekMark(NamedTuple):
    """One week of a campaign in a chart.

    Attributes:
        told: What the week's mark says.
        value: The figure; None leaves a gap.
        least: Lower end of its interval.
        most: Upper end.
        late: Whether the week was counted late.
        broken: Whether it does not compare with those before.
        beside: A figure to compare with, such as the true one; None for none.
    """

    told: str
    value: float | None
    least: float = 0.0
    most: float = 0.0
    late: bool = False
    broken: bool = False
    beside: float | None = None


class ChartTexts(NamedTuple):
    """Texts of a chart of weeks.

    Attributes:
        title: Title, for screen readers.
        description: What the chart shows, for screen readers.
        top: Figure at the upper edge.
        first: Day at the left end.
        last: Day at the right end.
        broken: Text at weeks that do not compare with those before.
    """

    title: str
    description: str
    top: str
    first: str
    last: str
    broken: str


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


def of_weeks(weeks: Sequence[WeekMark], top: float, texts: ChartTexts) -> Markup:
    """Draw a mark with its interval for each week of a campaign, and lines between neighbours.

    Weeks without a figure are grey gaps, late ones have square marks, and a dashed line is before a
    week that does not compare with those before.

    Args:
        weeks: All weeks, oldest first, one after another; at least one.
        top: Figure at the upper edge, positive.
        texts: Texts of the chart.
    """
    pitch = (_RIGHT - _LEFT) / len(weeks)
    radius = 3.5 if len(weeks) <= _SPARSE else 2.2
    behind: list[Markup] = []
    marks: list[Markup] = []
    for number, week in enumerate(weeks):
        x = _LEFT + (number + 0.5) * pitch
        before = weeks[number - 1] if number else None
        if week.broken:
            behind += _broken(x - pitch / 2, texts.broken)
        if before and not (before.beside is None or week.beside is None):
            behind.append(_piece(x - pitch, before.beside, x, week.beside, top, beside=True))
        if week.value is None:
            gap = {"x": _share(x - pitch / 2), "y": _ABOVE, "width": _share(pitch)}
            gap["height"] = _WEEKS_HEIGHT - _ABOVE - _BELOW
            marks.append(
                _grouped(week, _element("rect", class_="gap", **gap, **_shade("fill", 0.12)))
            )
            continue
        if before and before.value is not None and not week.broken:
            behind.append(_piece(x - pitch, before.value, x, week.value, top))
        marks.append(_grouped(week, *_with_interval(week, x, top, radius)))
    drawn = [*_frame(texts), *behind, *marks]
    return Markup(
        '<svg class="weeks-chart" width="100%" height="{}" role="img" font-size="12"'
        "><title>{}</title><desc>{}</desc>{}</svg>"
    ).format(
        _WEEKS_HEIGHT,
        printable(texts.title),
        printable(texts.description),
        Markup("").join(drawn),
    )


def _frame(texts: ChartTexts) -> list[Markup]:
    """Draw the axes of a chart of weeks, with their texts."""
    bottom = _WEEKS_HEIGHT - _BELOW
    lines = [
        _element(
            "line",
            class_="axis",
            x1=_share(_LEFT),
            x2=_share(_RIGHT),
            y1=y,
            y2=y,
            **_shade("stroke", strength),
        )
        for y, strength in ((_ABOVE, 0.2), ((_ABOVE + bottom) / 2, 0.2), (bottom, 0.6))
    ]
    return [
        *lines,
        _label(_LEFT - 1, _ABOVE + 4, "end", texts.top),
        _label(_LEFT - 1, bottom + 4, "end", "0"),
        _label(_LEFT, _WEEKS_HEIGHT - 4, "start", texts.first),
        _label(_RIGHT, _WEEKS_HEIGHT - 4, "end", texts.last),
    ]


def _broken(x: float, text: str) -> list[Markup]:
    """Draw a dashed line between two weeks, with a text beside its upper end."""
    line = _element(
        "line",
        class_="break",
        x1=_share(x),
        x2=_share(x),
        y1=2,
        y2=_WEEKS_HEIGHT - _BELOW,
        stroke_dasharray="3 3",
        **_shade("stroke", 0.7),
    )
    at_right = x > (_LEFT + _RIGHT) / 2
    return [line, _label(x + (-1 if at_right else 1), 11, "end" if at_right else "start", text)]


def _piece(
    x: float, value: float, next_x: float, next_value: float, top: float, beside: bool = False
) -> Markup:
    """Draw a line between the figures of neighbouring weeks."""
    return _element(
        "line",
        class_="beside" if beside else "course",
        x1=_share(x),
        y1=_number(_level(value, top)),
        x2=_share(next_x),
        y2=_number(_level(next_value, top)),
        stroke=_BESIDE if beside else _MARK,
        stroke_width=2 if beside else 1,
        **({"stroke_dasharray": "5 3"} if beside else {}),
    )


def _with_interval(week: WeekMark, x: float, top: float, radius: float) -> list[Markup]:
    """Draw a week's interval and its mark."""
    y = _number(_level(week.value or 0.0, top))
    interval = _element(
        "line",
        class_="interval",
        x1=_share(x),
        x2=_share(x),
        y1=_number(_level(week.least, top)),
        y2=_number(_level(week.most, top)),
        **_shade("stroke", 0.6),
    )
    if week.late:
        move, side = f"translate({-radius} {-radius})", 2 * radius
        place = {"x": _share(x), "y": y, "width": side, "height": side, "transform": move}
        return [interval, _element("rect", class_="late", fill=_MARK, **place)]
    return [interval, _element("circle", class_="week", fill=_MARK, cx=_share(x), cy=y, r=radius)]


def _grouped(week: WeekMark, *drawn: Markup) -> Markup:
    """Group what is drawn of a week with its text, which browsers show at the pointer."""
    return Markup("<g><title>{}</title>{}</g>").format(printable(week.told), Markup("").join(drawn))


def _label(x: float, y: float, anchor: str, text: str) -> Markup:
    return Markup('<text x="{}" y="{}" text-anchor="{}" fill="currentColor">{}</text>').format(
        _share(x), _number(y), anchor, printable(text)
    )


def _shade(of: str, strength: float) -> dict[str, object]:
    """Return the page's colour of text at a strength between 0 and 1, for `fill` or `stroke`."""
    return {of: "currentColor", f"{of}_opacity": strength}


def _level(value: float, top: float) -> float:
    """Return the pixels from the upper edge in a chart of weeks."""
    share = min(1.0, max(0.0, value / top))
    return _ABOVE + (_WEEKS_HEIGHT - _ABOVE - _BELOW) * (1 - share)


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
        Markup('{}="{}"').format(name.rstrip("_").replace("_", "-"), escape(value))
        for name, value in attributes.items()
    )
    return Markup("<{} {}/>").format(tag, written)


def _share(percentage: float) -> str:
    return f"{min(100.0, max(0.0, percentage)):.2f}%"


def _number(value: float) -> str:
    return f"{value:.1f}"
