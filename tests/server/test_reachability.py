"""OPTICS in a small part of scikit-learn's time, and to the last bit what scikit-learn finds."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from sklearn.cluster import compute_optics_graph

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_server.discovery import prim
from earshot_server.discovery import reachability as plots
from earshot_server.discovery.reachability import Reachability, reachability

KINDS = ("grid", "copies", "scales", "crowds", "line")


def points_of(kind: str, seed: int) -> np.ndarray:
    """From 2 to 300 points in 1 to 40 dimensions, most of them with ties on purpose."""
    random = np.random.default_rng([seed, KINDS.index(kind)])
    count, dimensions = int(random.integers(2, 300)), int(random.integers(1, 40))
    normal = random.standard_normal((count, dimensions))
    match kind:
        case "grid":  # distances are roots of few whole numbers
            return random.integers(0, 4, (count, dimensions)).astype(np.float64)
        case "copies":
            return normal[random.integers(0, -(-count // 3), count)]
        case "scales":  # lengths that float32 cannot hold, and some that do not differ in it
            return 1 + normal * 10.0 ** random.integers(-12, 30)
        case "line":
            return np.arange(count)[:, None] * np.ones(dimensions)
        case _:
            centres = random.standard_normal((5, dimensions))
            crowds = centres[random.integers(0, 5, count)] + 0.3 * normal
            return crowds.astype(np.float32).astype(np.float64)


def by_scikit_learn(points: np.ndarray, least: int) -> Reachability:
    ordering, core, reach, before = compute_optics_graph(
        points, min_samples=least, max_eps=np.inf, metric="minkowski", p=2, metric_params=None,
        algorithm="auto", leaf_size=30, n_jobs=None,
    )  # fmt: skip
    return Reachability(ordering, core, reach, before)


def same(found: Reachability, expected: Reachability) -> None:
    np.testing.assert_array_equal(found.ordering, expected.ordering)
    np.testing.assert_array_equal(found.core, expected.core)
    np.testing.assert_array_equal(found.reach, expected.reach)
    np.testing.assert_array_equal(found.before, expected.before)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seeds", [range(3), pytest.param(range(3, 40), marks=pytest.mark.slow)])
def test_two_hundred_plots_are_those_of_scikit_learn_to_the_last_bit(
    kind: str, seeds: range
) -> None:
    for seed in seeds:
        points = points_of(kind, seed)
        least = 2 + seed % min(20, len(points) - 1)
        same(reachability(points, least), by_scikit_learn(points, least))


def test_inputs_really_tie() -> None:
    """Else the choice among ties would not be tested."""
    for kind in ("grid", "copies", "line"):
        found = [reachability(points_of(kind, seed), 2) for seed in range(10)]
        tied = [len(np.unique(plot.reach)) < len(plot.reach) for plot in found]
        assert np.mean(tied) > 0.7


def test_with_room_for_few_inner_products_and_more_points_than_are_kept_in_one_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(prim, "MEMORY", 0)
    monkeypatch.setattr(plots, "FEW", 200)
    random = np.random.default_rng(3)
    points = random.standard_normal((900, 3)).round(1)
    same(reachability(points, 8), by_scikit_learn(points, 8))


def test_a_bar_is_never_above_what_a_nearer_point_comes_to() -> None:
    """In float32, for any lengths: else float32 would decide which point is reached from where."""
    random = np.random.default_rng(4)
    for seed in range(300):
        dimensions = int(random.integers(1, 200))
        points = random.standard_normal((2, dimensions)) * random.uniform(0, 1, (2, 1)) ** 3
        points[1] = points[0] + (points[1] - points[0]) * 10.0 ** random.uniform(-6, 0)
        points /= max(1.0, np.linalg.norm(points, axis=1).max())
        singles = points.astype(np.float32)
        nothing = np.zeros(2)
        left = prim.begun(np.arange(2), points, nothing, nothing, nothing, singles, 1.0)
        apart = float(np.linalg.norm(points[0] - points[1]))
        beyond = np.nextafter(apart, np.inf)
        product = (singles[0] * singles[1]).sum()
        assert product - left.norms[0] >= prim.bar(left.norms[1], beyond, 1.0, dimensions), seed


def test_rows_of_length_one_come_in_the_order_of_their_angles() -> None:
    random = np.random.default_rng(5)
    points = random.standard_normal((400, 20))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    found = reachability(points, 7)
    ordering, core, reach, _ = compute_optics_graph(
        points, min_samples=7, max_eps=np.inf, metric="cosine", p=2, metric_params=None,
        algorithm="brute", leaf_size=30, n_jobs=None,
    )  # fmt: skip
    # Half a squared chord is a cosine distance; who ties to the last bit is another matter.
    np.testing.assert_allclose(found.core**2 / 2, core, atol=1e-12)
    np.testing.assert_allclose(found.reach**2 / 2, reach, atol=1e-12)
    both = found.reach[found.ordering] ** 2 / 2, reach[ordering]
    np.testing.assert_allclose(*both, atol=1e-12)
    assert (found.ordering == ordering).mean() > 0.95


@pytest.mark.parametrize("seed", range(6))
def test_a_weight_is_so_many_points_at_one_place(seed: int) -> None:
    random = np.random.default_rng(seed)
    points, weights = random.standard_normal((60, 2)), random.integers(1, 5, 60)
    found = reachability(points, 6, weights)
    copies = np.repeat(np.arange(60), weights)
    whole = by_scikit_learn(points[copies], 6)
    places = np.sort(np.unique(copies[whole.ordering], return_index=True)[1])
    visited = whole.ordering[places]  # the first of each place
    np.testing.assert_array_equal(found.ordering, copies[visited])
    np.testing.assert_array_equal(found.core[found.ordering], whole.core[visited])
    np.testing.assert_array_equal(found.reach[found.ordering], whole.reach[visited])
    np.testing.assert_array_equal(
        found.before[found.ordering[1:]], copies[whole.before[visited[1:]]]
    )


@pytest.mark.parametrize("weighted", [False, True])
def test_without_numba_scikit_learn_does_it(
    monkeypatch: pytest.MonkeyPatch, weighted: bool
) -> None:
    points = np.random.default_rng(8).integers(0, 30, (80, 3)).astype(np.float64)
    points = np.unique(points, axis=0)
    weights = np.arange(len(points)) % 3 + 1 if weighted else None
    expected = reachability(points, 6, weights)
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "numba" else find(name)
    )
    monkeypatch.setattr(prim, "advance", None)
    found = reachability(points, 6, weights)
    np.testing.assert_array_equal(found.core, expected.core)
    np.testing.assert_array_equal(np.sort(found.reach), np.sort(expected.reach))
    if not weighted:
        same(found, expected)


@pytest.mark.parametrize("weights", [[1, 2], [1, 0, 1], [1.0, 1.0, 1.0], [1, -1, 1]])
def test_weights_that_are_no_counts_are_refused(weights: list[float]) -> None:
    with pytest.raises(InvalidInputError, match="whole number above 0 for each of 3 points"):
        reachability(np.eye(3), 2, np.asarray(weights))


@pytest.mark.parametrize("least", [1, 4])
def test_neighbours_that_there_are_not_are_refused(least: int) -> None:
    with pytest.raises(InvalidParametersError, match="least"):
        reachability(np.eye(3), least)


def test_points_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(InvalidInputError, match="not finite"):
        reachability(np.array([[0.0], [np.nan]]), 2)
