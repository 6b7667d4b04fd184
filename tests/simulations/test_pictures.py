"""The pictures of a learning phase: what they show, what they leave out, and their colours."""

from __future__ import annotations

import itertools
import xml.etree.ElementTree as ET
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from earshot_simulations.phases.run import Run
from earshot_simulations.reporting import charts, plane
from earshot_simulations.reporting.drawing import PALETTE, Picture, in_two_lines

MakeRun = Callable[..., Run]


def svg_texts(picture: Picture | None) -> list[str]:
    assert picture is not None
    root = ET.fromstring(picture.svg)  # noqa: S314
    return [element.text or "" for element in root.iter() if element.tag.endswith("}text")]


def test_colours_mean_the_same_scene_in_every_picture(make_run: MakeRun) -> None:
    run = make_run()
    assert run.found.colours().tolist() == [0, 1, 2, 3]
    swapped = make_run(global_centroids=run.found.global_centroids[[2, 0, 1, 3]])
    assert swapped.found.colours().tolist() == [2, 0, 1, 3]


def test_far_centroids_do_not_shrink_the_picture_but_are_counted(make_run: MakeRun) -> None:
    run = make_run()
    frame = plane.frame(run.found.points)
    picture = run.found.steps(frame)[0].picture
    assert picture is not None
    assert picture.remark == "1 lies outside the picture."
    assert float(frame.high.max()) < 20


def test_marks_at_the_edge_are_whole_and_none_lies_beyond_it(make_run: MakeRun) -> None:
    run = make_run()
    frame = plane.frame(run.found.points)
    corners = np.array([frame.low, frame.high, frame.high + 1, frame.low - [0, 1]])
    picture = plane.framed(lambda axes: plane.scatter(axes, corners, "", s=70), frame, "corners")
    assert picture.svg.count("<use ") == 2
    assert "clip-path" not in picture.svg


def test_labels_stand_in_their_own_order_whatever_their_bars(make_run: MakeRun) -> None:
    run = make_run()
    charts_of = [
        charts.histogram(run.found.label_names, np.array(published), run.found.true_histogram)
        for published in ([19, 41, 0], [1, 2, 57])
    ]
    assert [svg_texts(chart)[:3] for chart in charts_of] == [["bus", "park", "office"]] * 2


def test_pictures_name_scenes_and_labels(make_run: MakeRun) -> None:
    run = make_run()
    frame = plane.frame(run.found.points)
    assert set(svg_texts(run.found.heard(frame).picture)) == {"bus", "park", "office"}
    names = svg_texts(run.found.steps(frame)[2].picture)
    assert set(names) == {"park 50", "bus 40", "unnamed 30"}


def test_names_cover_no_other() -> None:
    random = np.random.default_rng(2)
    frame = plane.frame(random.normal(size=(300, 2)).astype(np.float32))
    written = plane.room(frame, random.normal(size=(60, 2)) / 2, ["twelve chars"] * 60, 0.05)
    assert 10 < len(written) < 60
    width, height = (frame.high - frame.low) * (plane._LETTER, plane._LINE_HEIGHT)
    for (x, y, text), (other_x, other_y, _) in itertools.combinations(written, 2):
        apart = abs(x - other_x) >= 0.999 * len(text) * width
        assert apart or abs(y - other_y) >= 0.999 * height


def test_no_picture_before_its_step(cut_short: Callable[[int], Run]) -> None:
    run = cut_short(1)
    frame = plane.frame(run.found.points)
    assert [step.picture for step in run.found.steps(frame)] == [None] * 3
    assert run.found.histogram() is None
    assert charts.bytes_per_step(()) is None
    assert charts.seconds_per_step(()) is None
    assert charts.dropouts(()) is None


def test_pictures_follow_the_theme_of_the_reader(make_run: MakeRun) -> None:
    run = make_run()
    picture = charts.candidates(run.found.centroid_votes, run.found.top, "centroid")
    assert picture is not None
    assert "prefers-color-scheme:dark" in picture.svg
    body = picture.svg.split("</style>", 1)[1]
    assert "var(--ink)" in body
    assert "#1b1e23" not in body
    assert "#000000" not in body


def test_two_dimensions_are_shown_as_they_are() -> None:
    points = np.array([[0.0, 1.0], [4.0, 2.0]], np.float32)
    frame = plane.frame(points)
    np.testing.assert_array_equal(frame.place(points), points)
    assert frame.explained is None


def test_projection_is_the_one_of_scikit_learn() -> None:
    from sklearn.decomposition import PCA

    random = np.random.default_rng(4)
    points = (random.normal(size=(200, 9)) * np.arange(1, 10) + 3).astype(np.float32)
    frame = plane.frame(points)
    other = PCA(2, svd_solver="full").fit(points.astype(np.float64))
    placed = other.transform(points.astype(np.float64))
    np.testing.assert_allclose(np.abs(frame.place(points)), np.abs(placed), atol=1e-3)
    assert frame.explained == pytest.approx(other.explained_variance_ratio_.sum(), abs=1e-5)


@given(
    count=st.integers(0, 4),
    dimensions=st.integers(1, 6),
    constant=st.sampled_from([0.0, 1.0, -1e6]),
)
def test_frame_has_room_for_any_points(count: int, dimensions: int, constant: float) -> None:
    frame = plane.frame(np.full((count, dimensions), constant, np.float32))
    assert frame.directions.shape == (2, dimensions)
    assert (frame.high > frame.low).all()
    placed = frame.place(np.full((count, dimensions), constant, np.float32))
    assert frame.outside(placed) == 0


MACHADO = {  # Machado, Oliveira and Fernandes 2009, severity 1.0, on linear RGB, row by row.
    "none": [1, 0, 0, 0, 1, 0, 0, 0, 1],
    "protan": [
        0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998,
    ],
    "deutan": [
        0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.011820, 0.042940, 0.968881,
    ],
    "tritan": [
        1.255528, -0.076749, -0.178779, -0.078411, 0.930809, 0.147602, 0.004733, 0.691367, 0.303900,
    ],
}  # fmt: skip


def linear(colour: str) -> np.ndarray:
    channels = np.array([int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* under D65."""
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    ratio = np.array(to_xyz) @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    x, y, z = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("vision", MACHADO)
def test_palette_stays_apart_under_colour_vision_deficiency(vision: str) -> None:
    filtered = np.reshape(MACHADO[vision], (3, 3))
    seen = [lab(filtered @ linear(colour)) for colour in PALETTE]
    closest = min(np.linalg.norm(one - other) for one, other in itertools.combinations(seen, 2))
    assert closest > 12


def test_palette_stands_out_on_white_and_on_black() -> None:
    for colour in PALETTE:
        luminance = float(linear(colour) @ [0.2126, 0.7152, 0.0722])
        assert 1.05 / (luminance + 0.05) > 1.9
        assert (luminance + 0.05) / (float(linear("#181b20").mean()) + 0.05) > 2.2


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("", [""]),
        ("office", ["office"]),
        ("shopping centre, indoor", ["shopping centre,", "indoor"]),
        ("x" * 50, ["x" * 22, "x" * 21 + "…"]),
        (f"{'a' * 20} {'b' * 20} {'c' * 20}", ["a" * 20, "b" * 20 + " …"]),
    ],
)
def test_long_names_are_broken_into_two_lines_before_they_are_cut(
    name: str, lines: list[str]
) -> None:
    assert in_two_lines(name).split("\n") == lines
