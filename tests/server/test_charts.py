"""Charts, read back from their SVG, and the map's plane against an independent decomposition."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup
from support.examples import examples

from earshot_server.dashboard import charts
from earshot_server.dashboard.charts import ChartTexts, Place, WeekMark
from earshot_server.dashboard.histograms import CountInterval

HOSTILE = "</text><script>alert(1)</script>\"'&"


def parsed(drawn: Markup) -> ElementTree.Element:
    return ElementTree.fromstring(drawn)  # noqa: S314 - what we have just drawn


def of_class(drawn: Markup, name: str) -> list[ElementTree.Element]:
    return [each for each in parsed(drawn).iter() if name in each.get("class", "").split()]


def share(element: ElementTree.Element, name: str) -> float:
    value = element.get(name, "0%")
    assert value.endswith("%")
    return float(value[:-1])


@pytest.mark.parametrize(("done", "total"), [(0, 9), (3, 9), (8, 9), (2, 4)])
def test_track_has_one_segment_per_step(done: int, total: int) -> None:
    drawn = charts.track(done, total)
    kinds = [segment.get("class") for segment in parsed(drawn)]
    assert kinds == ["done"] * done + ["now"] + ["ahead"] * (total - done - 1)
    ends = [share(segment, "x") + share(segment, "width") for segment in parsed(drawn)]
    assert ends == sorted(ends)
    assert ends[-1] <= 100


def test_participation_shows_answered_then_missing_and_marks_the_fewest_needed() -> None:
    drawn = charts.participation(answered=120, expected=160, phones=200, least=150)
    (full,), (missing,) = of_class(drawn, "full"), of_class(drawn, "missing")
    assert share(full, "width") == pytest.approx(60)
    assert share(missing, "x") == pytest.approx(60)
    assert share(missing, "width") == pytest.approx(20)
    assert share(of_class(drawn, "least")[0], "x1") == pytest.approx(75)


def test_participation_of_nobody_is_drawn() -> None:
    drawn = charts.participation(answered=0, expected=0, phones=0, least=0)
    assert share(of_class(drawn, "full")[0], "width") == 0


@pytest.mark.parametrize(
    "drawn",
    [
        charts.track(1, 4),
        charts.participation(1, 2, 3, 2),
        charts.interval_bar(CountInterval(3, 1, 5, 1.0), 5),
        charts.over_time([CountInterval(3, 1, 5, 1.0)], [7.0], 5),
    ],
)
def test_charts_beside_their_text_are_hidden_from_screen_readers(drawn: Markup) -> None:
    assert parsed(drawn).get("aria-hidden") == "true"
    assert parsed(drawn).get("width") == "100%"


def test_interval_bar_reaches_the_count_and_its_whisker_the_interval() -> None:
    drawn = charts.interval_bar(CountInterval(40, 30, 50, 0.01), 80)
    assert share(of_class(drawn, "full")[0], "width") == pytest.approx(50)
    whisker = of_class(drawn, "whisker")[0]
    assert (share(whisker, "x1"), share(whisker, "x2")) == pytest.approx((37.5, 62.5))


def test_interval_bar_of_a_negative_count_is_empty() -> None:
    drawn = charts.interval_bar(CountInterval(-8, 0, 2, 0.9), 80)
    assert share(of_class(drawn, "missing")[0], "width") == 0


@pytest.mark.parametrize(("p_value", "hollow"), [(0.05, 0), (0.051, 1)])
def test_what_may_be_noise_is_hollow(p_value: float, hollow: int) -> None:
    count = CountInterval(40, 30, 50, p_value)
    bar = charts.interval_bar(count, 80)
    assert (len(of_class(bar, "missing")), len(of_class(bar, "full"))) == (hollow, 1 - hollow)
    assert share(of_class(bar, "missing" if hollow else "full")[0], "width") == pytest.approx(50)
    course = charts.over_time([count], [0.0], 80)
    assert len(of_class(course, "hollow")) == hollow


def test_course_joins_neighbours_and_leaves_gaps() -> None:
    first, second, last = (
        CountInterval(0, 0, 4, 1.0),
        CountInterval(50, 40, 60, 1.0),
        CountInterval(100, 90, 100, 1.0),
    )
    drawn = charts.over_time([first, second, None, last], [0.0, 60.0, 90.0, 240.0], 100)
    marks, lines = of_class(drawn, "mark"), of_class(drawn, "course")
    # As far apart as the times are, with room for a mark at both ends.
    assert [share(mark, "cx") for mark in marks] == pytest.approx([3.0, 26.5, 97.0])
    assert [(share(line, "x1"), share(line, "x2")) for line in lines] == [(3.0, 26.5)]
    ticks = [share(line, "x1") for line in of_class(drawn, "axis")[1:]]
    assert ticks == pytest.approx([3.0, 26.5, 38.25, 97.0])
    heights = [float(mark.get("cy", "")) for mark in marks]
    assert heights == sorted(heights, reverse=True)
    assert heights[1] == pytest.approx((heights[0] + heights[2]) / 2)
    assert len(of_class(drawn, "whisker")) == 3


@given(
    st.lists(
        st.none()
        | st.builds(CountInterval, st.integers(-50, 150), st.integers(0, 120), st.integers(0, 150)),
        min_size=1,
        max_size=20,
    ),
    st.floats(0, 1e8),
)
def test_course_stays_in_its_frame(counts: list[CountInterval | None], pause: float) -> None:
    times = [1.79e9 + pause * number for number in range(len(counts))]
    drawn = parsed(charts.over_time(counts, times, 100))
    height = float(drawn.get("height", ""))
    inside = [each for each in drawn if each.get("class") != "axis"]
    values = [float(each.get(name, "1")) for each in inside for name in ("y1", "y2", "cy")]
    assert all(0 <= value <= height for value in values)
    places = [share(each, name) for each in inside for name in ("x1", "cx") if each.get(name)]
    assert all(3 <= place <= 97 for place in places)


def test_heat_grows_from_nothing_to_the_highest_level() -> None:
    levels = [charts.heat(count, 60) for count in (-3, 0, 1, 10, 20, 30, 40, 50, 60)]
    assert levels == [0, 0, 1, 1, 2, 3, 4, 5, 6]
    assert charts.heat(0, 0) == 0


def test_plane_holds_the_largest_variances_of_the_points() -> None:
    random = np.random.default_rng(61)
    points = random.normal(0, 1, (40, 6)) @ random.normal(0, 1, (6, 6))
    plane, explained = charts.principal_plane(points)
    variances = np.linalg.eigvalsh(np.cov(points.T))[::-1]
    np.testing.assert_allclose(plane.var(axis=0, ddof=1), variances[:2])
    np.testing.assert_allclose(np.corrcoef(plane.T)[0, 1], 0, atol=1e-10)
    assert explained == pytest.approx(variances[:2].sum() / variances.sum())


def test_plane_of_points_in_a_plane_keeps_their_distances() -> None:
    random = np.random.default_rng(62)
    flat = random.normal(0, 1, (12, 2))
    turned = flat @ np.linalg.qr(random.normal(0, 1, (5, 5)))[0][:2]
    plane, explained = charts.principal_plane(turned)
    distances = [np.linalg.norm(each[:, None] - each, axis=2) for each in (flat, plane)]
    np.testing.assert_allclose(*distances, atol=1e-9)
    assert explained == pytest.approx(1)
    np.testing.assert_array_equal(plane, charts.principal_plane(turned.copy())[0])


@pytest.mark.parametrize("dimensions", [1, 2, 3, 128])
@pytest.mark.parametrize("count", [1, 2])
def test_plane_of_few_points(count: int, dimensions: int) -> None:
    points = np.arange(count * dimensions, dtype=float).reshape(count, dimensions)
    plane, explained = charts.principal_plane(points)
    assert plane.shape == (count, 2)
    assert np.isfinite(plane).all()
    assert explained is None or explained == pytest.approx(1)


def circles(drawn: Markup) -> np.ndarray:
    places = of_class(drawn, "place")
    return np.array([[float(each.get(name, "")) for name in ("cx", "cy", "r")] for each in places])


def places_of(count: int, name: str = "park") -> list[Place]:
    return [Place(i + 1, name, i % charts.HUES, 20 * (count - i)) for i in range(count)]


@settings(max_examples=examples(40))
@given(st.integers(1, 30), st.integers(0, 10**6), st.booleans())
def test_map_keeps_marks_apart_and_in_the_frame(count: int, seed: int, together: bool) -> None:
    random = np.random.default_rng(seed)
    plane = np.zeros((count, 2)) if together else random.normal(0, 1, (count, 2))
    drawn = charts.environment_map(places_of(count), plane, "Map")
    _, _, width, height = map(float, (parsed(drawn).get("viewBox") or "").split())
    marks = circles(drawn)
    centres, radii = marks[:, :2], marks[:, 2]
    assert (centres - radii[:, None] >= 0).all()
    assert (centres + radii[:, None] <= [width, height]).all()
    distances = np.linalg.norm(centres[:, None] - centres, axis=2)
    np.fill_diagonal(distances, np.inf)
    # A number is about 14 units high and 18 wide.
    assert distances.min() > 18


def test_map_keeps_the_shape_of_what_has_room() -> None:
    plane = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 2.0]])
    marks = circles(charts.environment_map(places_of(3), plane, "Map"))
    origin, right, up = marks[:, :2]
    assert right[0] - origin[0] == pytest.approx(2 * (origin[1] - up[1]), rel=0.01)
    assert right[1] == pytest.approx(origin[1], abs=0.2)


def test_map_names_and_numbers_its_marks_by_size() -> None:
    plane = np.array([[0.0, 0.0], [9.0, 9.0], [9.0, 0.0]])
    places = [Place(1, "bus", 0, 100), Place(2, "park", 1, 25), Place(3, "no label", 10, -4)]
    drawn = charts.environment_map(places, plane, "Map of 3 environments")
    assert parsed(drawn).get("role") == "img"
    assert parsed(drawn).get("aria-label") == "Map of 3 environments"
    assert [text.text for text in of_class(drawn, "number")] == ["1", "2", "3"]
    assert {text.text for text in of_class(drawn, "name")} == {"bus", "park", "no label"}
    radii = circles(drawn)[:, 2]
    assert radii[0] > radii[1] > radii[2]


def test_map_leaves_out_names_that_have_no_room() -> None:
    plane = np.random.default_rng(63).normal(0, 0.01, (60, 2))
    drawn = charts.environment_map(places_of(60, "public transport"), plane, "Map")
    assert len(of_class(drawn, "number")) == 60
    assert len(of_class(drawn, "name")) < 60


def test_map_escapes_and_shortens_names() -> None:
    name = HOSTILE + "x" * 64 + "\u202e\x00"
    drawn = charts.environment_map([Place(1, name, 0, 1)], np.zeros((1, 2)), HOSTILE)
    assert "<script" not in drawn
    assert parsed(drawn).get("aria-label") == HOSTILE
    (text,) = of_class(drawn, "name")
    assert len(text.text or "") <= 24
    assert "\u202e" not in drawn
    assert "\x00" not in drawn


TEXTS = ChartTexts("Share", "By week", "50 %", "4 Jan 2027", "7 Feb 2027", "new map")
GOOD = WeekMark("a week", 0.25, 0.2, 0.3)


def test_weeks_have_marks_with_intervals_and_missing_ones_are_gaps() -> None:
    late = GOOD._replace(late=True, value=0.5, least=0.4, most=0.9)
    missing = WeekMark("did not begin", None)
    drawn = charts.of_weeks([GOOD, GOOD, missing, late], 0.5, TEXTS)
    intervals = of_class(drawn, "interval")
    assert len(of_class(drawn, "week")) == 2
    assert len(of_class(drawn, "late")) == len(of_class(drawn, "gap")) == 1
    assert len(of_class(drawn, "course")) == 1, "no line over a gap"
    bottom, top = (float(line.get("y1", "")) for line in of_class(drawn, "axis")[::-2])
    middle = (bottom + top) / 2
    assert float(of_class(drawn, "week")[0].get("cy", "")) == pytest.approx(middle)
    assert float(intervals[0].get("y1", "")) == pytest.approx(
        bottom - 0.4 * (bottom - top), abs=0.1
    )
    assert float(intervals[0].get("y2", "")) == pytest.approx(
        bottom - 0.6 * (bottom - top), abs=0.1
    )
    assert float(intervals[2].get("y2", "")) == top, "cut off at the upper edge"
    gap = of_class(drawn, "gap")[0]
    places = [share(mark, "cx") for mark in of_class(drawn, "week")]
    pitch = places[1] - places[0]
    assert share(gap, "x") == pytest.approx(places[1] + pitch / 2, abs=0.02)
    assert share(gap, "width") == pytest.approx(pitch, abs=0.02)
    assert share(of_class(drawn, "late")[0], "x") == pytest.approx(places[1] + 2 * pitch, abs=0.03)


def test_a_break_is_a_line_between_weeks_that_no_course_crosses() -> None:
    drawn = charts.of_weeks([GOOD, GOOD, GOOD._replace(broken=True), GOOD], 0.5, TEXTS)
    (line,) = of_class(drawn, "break")
    marks = [share(mark, "cx") for mark in of_class(drawn, "week")]
    assert share(line, "x1") == pytest.approx((marks[1] + marks[2]) / 2, abs=0.02)
    courses = [(share(each, "x1"), share(each, "x2")) for each in of_class(drawn, "course")]
    assert courses == [(marks[0], marks[1]), (marks[2], marks[3])]
    assert "new map" in drawn


def test_what_is_beside_the_series_is_another_line_through_gaps() -> None:
    weeks = [GOOD._replace(beside=0.2), WeekMark("gap", None, beside=0.3), GOOD]
    drawn = charts.of_weeks(weeks, 0.5, TEXTS)
    assert len(of_class(drawn, "beside")) == 1
    assert of_class(drawn, "beside")[0].get("stroke-dasharray")


def test_a_chart_of_weeks_names_itself_and_needs_no_style_sheet() -> None:
    texts = ChartTexts(*[HOSTILE] * 6)
    drawn = charts.of_weeks([GOOD._replace(told=HOSTILE, broken=True)], 0.5, texts)
    whole = parsed(drawn)
    assert (whole.get("role"), whole.get("width")) == ("img", "100%")
    assert [each.tag for each in whole[:2]] == ["title", "desc"]
    assert whole[0].text == HOSTILE
    assert not any(each.get("style") for each in whole.iter()), "policies forbid inline styles"
    for each in whole.iter():
        if each.tag in ("line", "circle", "rect", "text"):
            assert each.get("fill") or each.get("stroke")
