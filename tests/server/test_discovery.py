from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn.cluster
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry
from earshot_server.discovery.interface import LEFT_OUT, OUTLIER
from earshot_server.discovery.optics import NothingFoundError, Optics
from earshot_server.discovery.reachability import Neighbours

SPREAD = 0.05


def planted(
    centres: np.ndarray, members: int, seed: int, spread: float = SPREAD
) -> tuple[np.ndarray, np.ndarray]:
    """Points around centres, shuffled, and the centre of each."""
    random = np.random.default_rng(seed)
    truth = random.permutation(np.repeat(np.arange(len(centres)), members))
    points = centres[truth] + random.normal(0, spread, (len(truth), centres.shape[1]))
    return points.astype(np.float32), truth


def corners(count: int, dimensions: int, seed: int) -> np.ndarray:
    """Directions of length one that are at least 60 degrees apart."""
    random = np.random.default_rng(seed)
    chosen: list[np.ndarray] = []
    while len(chosen) < count:
        one = random.normal(size=dimensions)
        one /= np.linalg.norm(one)
        if all(one @ other < 0.5 for other in chosen):
            chosen.append(one)
    return np.array(chosen)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("clusters", "members"), [(2, 25), (5, 60)])
def test_planted_blobs_of_the_plane_are_found(clusters: int, members: int, seed: int) -> None:
    angles = 2 * np.pi * np.arange(clusters) / clusters
    centres = 0.8 * np.stack([np.cos(angles), np.sin(angles)], axis=1)
    points, truth = planted(centres, members, seed)
    found = Optics().discover(points, Geometry.EUCLIDEAN)
    assert found.centroids.dtype == np.float32
    assert found.clusters.dtype == np.int64
    # A blob may fall into parts and lose its rim, but no cluster may hold points of two, and no
    # blob may be missing.
    member = found.clusters >= 0
    nearest = np.linalg.norm(found.centroids[:, None] - centres, axis=2).argmin(axis=1)
    assert set(nearest) == set(range(clusters))
    np.testing.assert_array_equal(nearest[found.clusters[member]], truth[member])


@pytest.mark.parametrize("seed", range(3))
def test_planted_directions_of_the_sphere_are_found_whatever_their_lengths(seed: int) -> None:
    centres = corners(5, 8, seed)
    points, truth = planted(centres, 40, seed, spread=0.03)
    found = Optics().discover(points, Geometry.SPHERICAL)
    np.testing.assert_allclose(np.linalg.norm(found.centroids, axis=1), 1, atol=1e-6)
    nearest = (found.centroids @ centres.T).argmax(axis=1)
    assert set(nearest) == set(range(5))
    assert (found.centroids @ centres.T).max(axis=1).min() > 0.95
    member = found.clusters >= 0
    np.testing.assert_array_equal(nearest[found.clusters[member]], truth[member])
    # Powers of two change lengths without rounding.
    lengths = 2.0 ** np.random.default_rng(seed).integers(-3, 4, (len(points), 1))
    scaled = Optics().discover((points * lengths).astype(np.float32), Geometry.SPHERICAL)
    np.testing.assert_array_equal(scaled.clusters, found.clusters)


@pytest.mark.parametrize("geometry", Geometry)
def test_a_centroid_is_the_mean_of_the_points_nearest_to_its_cluster(geometry: Geometry) -> None:
    points, _ = planted(corners(3, 3, 4), 200, seed=4, spread=0.2)
    found = Optics(nearest_share=0.05).discover(points, geometry)
    rows = points.astype(np.float64)
    if geometry is Geometry.SPHERICAL:
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert len(found.centroids) > 3
    for cluster, centroid in enumerate(found.centroids):
        own = rows[found.clusters == cluster].mean(axis=0)
        nearest = np.argsort(np.linalg.norm(rows - own, axis=1))[:30]  # 5 % of 600
        mean = rows[nearest].mean(axis=0)
        if geometry is Geometry.SPHERICAL:
            mean /= np.linalg.norm(mean)
        np.testing.assert_allclose(centroid, mean, atol=1e-6)
    assert found.clusters.max() == len(found.centroids) - 1
    assert len(found.clusters) == len(points)


@pytest.mark.parametrize("total", [40, 240, pytest.param(1600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("spread", [SPREAD, 0.6])
def test_clusters_are_those_of_scikit_learn_as_fine_as_is_allowed(
    total: int, spread: float
) -> None:
    points, _ = planted(corners(4, 2, 1), total // 4, seed=6, spread=spread)
    allowed = {40: 10, 240: 12, 1600: 80}[total]
    found = Optics().discover(points, Geometry.EUCLIDEAN)
    assert 0 < len(found.centroids) <= allowed

    def clusters(least: int) -> np.ndarray:
        # The library's own default is min_cluster_size = min_samples.
        exact = points.astype(np.float64)
        return np.asarray(sklearn.cluster.OPTICS(min_samples=least, xi=0.005).fit(exact).labels_)

    least = 3
    while not np.array_equal(found.clusters, clusters(least)):
        # All that is finer has too many; chance may hide one value that has not.
        assert clusters(least).max() + 1 > allowed
        least += 1
        assert least < 60


@settings(max_examples=examples(50))
@given(
    counts=st.lists(st.integers(1, 40), min_size=58, max_size=58),
    points=st.integers(2, 60),
)
def test_the_finest_is_the_least_that_gives_few_enough(counts: list[int], points: int) -> None:
    """Where fewer candidates come of larger clusters, as they do but for chance; 10 are allowed."""
    falling = {least: min(count, points) for least, count in enumerate(sorted(counts)[::-1], 3)}
    falling[min(3, points)] = falling[3]
    falling[points] = 1  # all that there are, in one cluster

    class Counted(Optics):
        def _labels(self, rows: np.ndarray, least: int, neighbours: object) -> np.ndarray:
            return np.arange(len(rows)) % falling[least]

    rows = np.zeros((points, 2))
    found = int(Counted()._finest(rows, Neighbours(rows)).max()) + 1
    tried = range(min(3, points), points + 1)
    assert found == falling[next(least for least in tried if falling[least] <= 10)]


def test_a_small_crowd_is_asked_about_few_candidates_and_a_large_one_about_a_hundred() -> None:
    assert [Optics().allowed(points) for points in (2, 200, 400, 1000, 2000, 10**6)] == [
        *(10, 10, 20, 50, 100, 100)
    ]


def test_faint_places_are_found_among_points_that_are_mostly_noise() -> None:
    """More noise than distance between them, as phones publish: many points tell, few do not."""
    centres = corners(6, 16, 3)
    shares = []
    for members in (40, 1300):
        points, _ = planted(centres, members, seed=8, spread=0.45)
        found = Optics().discover(points, Geometry.SPHERICAL).centroids
        shares.append((found @ centres.T).max(axis=0))
    assert shares[1].min() > 0.8
    assert shares[1].mean() > shares[0].mean()


@pytest.mark.parametrize("geometry", Geometry)
@pytest.mark.parametrize("points", [2, 5, 50])
def test_points_that_coincide_are_one_cluster(points: int, geometry: Geometry) -> None:
    corner = np.array([1.0, -1.0], dtype=np.float32)
    found = Optics().discover(np.tile(corner, (points, 1)), geometry)
    assert (found.clusters == 0).all()
    expected = corner / np.sqrt(2) if geometry is Geometry.SPHERICAL else corner
    np.testing.assert_allclose(found.centroids, expected[None], atol=1e-6)


@pytest.mark.parametrize("rest", [0, 40])
def test_centroids_that_were_clipped_to_the_same_corner_are_found(rest: int) -> None:
    random = np.random.default_rng(5)
    corner = np.array([[1.0, 1.0], [-1.0, -1.0]])
    points = np.concatenate([np.repeat(corner, 30, axis=0), random.uniform(-0.9, 0.9, (rest, 2))])
    found = Optics().discover(points.astype(np.float32), Geometry.EUCLIDEAN)
    nearest = np.linalg.norm(found.centroids[:, None] - corner, axis=2).min(axis=0)
    assert nearest.max() < 0.1
    first, second = found.clusters[:30], found.clusters[30:60]
    assert len(set(first)) == len(set(second)) == 1
    assert first[0] != second[0]


def test_coinciding_points_are_why_division_by_zero_is_silenced() -> None:
    """Without care the library warns; if it no longer does, the care can go."""
    points = np.repeat([[1.0, 1.0], [-1.0, -1.0]], 30, axis=0)
    with (
        warnings.catch_warnings(),
        np.errstate(divide="warn", invalid="warn"),
        pytest.warns(RuntimeWarning, match="divi"),
    ):
        sklearn.cluster.OPTICS(min_samples=5, xi=0.02).fit(points)


@settings(max_examples=examples(30))
@given(
    count=st.integers(2, 60),
    dimensions=st.integers(1, 4),
    spread=st.sampled_from([0, 1, 5]),
    geometry=st.sampled_from(Geometry),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_finite_points_are_answered_without_a_warning(
    count: int, dimensions: int, spread: int, geometry: Geometry, seed: int
) -> None:
    """Of few distinct places, so that many coincide. Noise has clusters, too: the vote decides."""
    random = np.random.default_rng(seed)
    points = random.integers(-spread, spread, (count, dimensions), endpoint=True)
    found = Optics().discover(points.astype(np.float32), geometry)
    assert found.clusters.shape == (count,)
    assert set(found.clusters) - {-1} == set(range(len(found.centroids)))
    assert np.isfinite(found.centroids).all()
    sizes = np.bincount(found.clusters[found.clusters >= 0])
    assert sizes.min() >= min(count, 3)


def test_nothing_found_is_an_error_that_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    def outliers(ordering: np.ndarray, **others: object) -> tuple[np.ndarray, None]:
        return np.full(len(ordering), -1), None

    monkeypatch.setattr(sklearn.cluster, "cluster_optics_xi", outliers)
    with pytest.raises(NothingFoundError, match="at least 3 of 30"):
        Optics().discover(np.zeros((30, 2), dtype=np.float32), Geometry.EUCLIDEAN)


@pytest.mark.parametrize("count", [0, 1])
def test_fewer_than_two_points_are_refused(count: int) -> None:
    with pytest.raises(InvalidInputError, match="at least 2"):
        Optics().discover(np.zeros((count, 2), dtype=np.float32), Geometry.EUCLIDEAN)


@pytest.mark.parametrize("geometry", Geometry)
def test_of_too_many_points_a_sample_is_looked_at(geometry: Geometry) -> None:
    points, truth = planted(corners(4, 6, 2), 250, seed=7, spread=0.03)
    whole, part = Optics().discover(points, geometry), Optics(most=400).discover(points, geometry)
    assert (whole.clusters >= OUTLIER).all()
    looked_at = part.clusters != LEFT_OUT
    assert looked_at.sum() == 400
    own = Optics().discover(points[looked_at], geometry)
    np.testing.assert_array_equal(own.clusters, part.clusters[looked_at])
    np.testing.assert_array_equal(own.centroids, part.centroids)
    others = Optics(most=400, seed=1).discover(points, geometry).clusters != LEFT_OUT
    assert (others != looked_at).any()
    # Nothing but chance says who is in it: neither place nor cluster.
    assert set(np.bincount(truth[looked_at]) // 25) <= {2, 3, 4, 5}
    assert 150 < looked_at[:500].sum() < 250
