"""Nearest centroids: against a plain loop, and to the last bit a matter of one row alone."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from support.refusals import refused

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry, counts, finite_rows, nearest, unit_rows

BOTH = list(Geometry)


def matrices(rows: st.SearchStrategy[int], columns: int) -> st.SearchStrategy[np.ndarray]:
    entries = st.floats(-1e6, 1e6, width=32)
    shape = st.tuples(rows, st.just(columns))
    return shape.flatmap(lambda shape: hnp.arrays(np.float32, shape, elements=entries))


def distance(geometry: Geometry, point: list[float], centroid: list[float]) -> float:
    if geometry is Geometry.EUCLIDEAN:
        return math.dist(point, centroid)
    inner = math.fsum(x * y for x, y in zip(point, centroid, strict=True))
    lengths = math.hypot(*point) * math.hypot(*centroid)
    return 1.0 - inner / lengths if lengths else 1.0


@pytest.mark.parametrize("geometry", BOTH)
@pytest.mark.parametrize("dimensions", [1, 2, 3, 16, 128])
def test_nearest_is_the_plain_loop(geometry: Geometry, dimensions: int) -> None:
    generator = np.random.default_rng(dimensions)
    points = generator.standard_normal((60, dimensions)).astype(np.float32)
    centroids = generator.standard_normal((7, dimensions)).astype(np.float32)
    found = nearest(points, centroids, geometry)
    assert found.dtype == np.int64
    for point, index in zip(points.tolist(), found, strict=True):
        each = [distance(geometry, point, centroid) for centroid in centroids.tolist()]
        assert each[index] <= min(each) + 1e-6
        if sorted(each)[1] - min(each) > 1e-6:
            assert index == each.index(min(each))


@pytest.mark.parametrize("geometry", BOTH)
@given(points=matrices(st.integers(1, 40), 5), centroids=matrices(st.integers(1, 6), 5))
def test_a_row_is_assigned_whatever_the_others_are(
    geometry: Geometry, points: np.ndarray, centroids: np.ndarray
) -> None:
    together = nearest(points, centroids, geometry)
    alone = [nearest(points[i : i + 1], centroids, geometry)[0] for i in range(len(points))]
    np.testing.assert_array_equal(together, alone)
    backwards = nearest(np.asfortranarray(points[::-1]), centroids, geometry)
    np.testing.assert_array_equal(together, backwards[::-1])


@pytest.mark.parametrize("geometry", BOTH)
def test_near_ties_do_not_depend_on_the_number_of_rows(geometry: Geometry) -> None:
    """Points within rounding of the border, where a matrix product's order of sums would show."""
    generator = np.random.default_rng(3)
    left = generator.standard_normal(37)
    right = generator.standard_normal(37)
    right *= np.linalg.norm(left) / np.linalg.norm(right)
    centroids = np.array([left, right])
    noise = 1e-16 * generator.standard_normal((500, 37))
    points = (left + right) * generator.uniform(0.4, 0.6, (500, 1)) + noise
    together = nearest(points, centroids, geometry)
    for rows in (1, 2, 3, 17, 64):
        parts = [nearest(points[i : i + rows], centroids, geometry) for i in range(0, 500, rows)]
        np.testing.assert_array_equal(together, np.concatenate(parts))


@pytest.mark.parametrize("geometry", BOTH)
@given(points=matrices(st.integers(0, 20), 3), centroids=matrices(st.integers(1, 5), 3))
def test_one_more_point_raises_one_count_by_one(
    geometry: Geometry, points: np.ndarray, centroids: np.ndarray
) -> None:
    before = counts(points[1:], centroids, geometry)
    after = counts(points, centroids, geometry)
    assert after.dtype == np.int64
    assert after.shape == (len(centroids),)
    assert after.sum() == len(points)
    assert sorted(after - before)[:-1] == [0] * (len(centroids) - 1)
    assert (after - before).max() == min(len(points), 1)


@pytest.mark.parametrize("geometry", BOTH)
def test_the_first_of_equals(geometry: Geometry) -> None:
    centroids = np.array([[0.0, -1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    assert nearest([[3.0, 0.0]], centroids, geometry) == [1]
    assert nearest([[2.0, 2.0]], centroids, geometry) == [1]


def test_cosine_ignores_lengths_and_euclid_does_not() -> None:
    centroids = np.array([[100.0, 0.0], [1.0, 1.0]])
    assert nearest([[1.0, 0.1]], centroids, Geometry.SPHERICAL) == [0]
    assert nearest([[1.0, 0.1]], centroids, Geometry.EUCLIDEAN) == [1]
    assert nearest([[0.0, 0.0]], centroids, Geometry.SPHERICAL) == [0]


@given(matrices(st.integers(0, 10), 4))
def test_unit_rows(rows: np.ndarray) -> None:
    lengths = np.linalg.norm(unit_rows(rows.astype(np.float64)), axis=1)
    np.testing.assert_allclose(lengths, np.any(rows != 0, axis=1), rtol=1e-12)


def test_unit_rows_at_the_ends_of_the_range() -> None:
    rows = np.array([[5e-324, 0.0], [3e-320, 4e-320], [3e149, 4e149]])
    expected = [[1.0, 0.0], [0.6, 0.8], [0.6, 0.8]]
    np.testing.assert_allclose(unit_rows(rows), expected, rtol=1e-3)


BAD = [
    *([1.0, 2.0], [[[1.0]]], np.empty((3, 0)), [["a"]], [[1j]]),
    *([[math.nan]], [[-math.inf]], [[1e200]]),
]

test_what_is_not_a_finite_matrix_is_refused = refused(
    InvalidInputError,
    *[("thing", finite_rows, "thing", bad) for bad in BAD],
    *[("points", nearest, bad, [[1.0]], Geometry.EUCLIDEAN) for bad in BAD],
    *[
        ("centroids of shape", nearest, np.ones((4, 2)), np.ones(shape), Geometry.EUCLIDEAN)
        for shape in ((2, 3), (0, 2))
    ],
    ("euclidean, spherical", nearest, np.ones((4, 2)), np.ones((1, 2)), "manhattan"),
)
