"""The best of several private runs: its law, what it costs, and how well it scores."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from earshot_client import private_runs
from earshot_client.clustering import GRID, DPLloyd, SphericalDPLloyd
from earshot_client.private_runs import BestOfRuns, clustering_by, quality
from earshot_protocol.geometry import Geometry, unit_rows
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.divergences import renyi
from earshot_protocol.privacy.events import Pure, SelectedRuns, ZeroConcentrated
from earshot_protocol.privacy.local_mechanisms import (
    QUALITY_SHARE,
    BestGaussianLloyd,
    BestLaplaceLloyd,
    GaussianLloyd,
    LaplaceLloyd,
)
from earshot_protocol.privacy.mechanisms import Unit

LIMIT = 1e-4  # the probability with which a right sampler would fail; seeds are fixed
Law = npt.NDArray[np.float64]


def best_law(one: Law, runs: int) -> Law:
    """Of the best of geometrically many draws, by the formula; outcomes in the order of scores."""
    gamma = 1 / runs
    above = np.append(np.cumsum(one[::-1])[::-1], 0.0)
    return gamma * one / ((gamma + (1 - gamma) * above[1:]) * (gamma + (1 - gamma) * above[:-1]))


def summed_law(one: Law, runs: int, most: int = 4000) -> Law:
    """The same, by the law of the largest of j draws for every j."""
    below = np.append(0.0, np.cumsum(one))
    numbers = np.arange(1, most)[:, None]
    chances = stats.geom.pmf(numbers, 1 / runs)
    return np.asarray((chances * np.diff(below**numbers, axis=1)).sum(axis=0))


# ---------------------------------------------------------------------------------------- privacy


@pytest.mark.parametrize("runs", [2, 5, 16])
def test_the_best_run_loses_at_most_three_times_one_run(runs: int) -> None:
    """Every pair of ε₀-close laws of three outcomes whose likelihood ratios are extreme."""
    epsilon, largest = 0.7, 0.0
    for ratios in itertools.product([-epsilon, 0.0, epsilon], repeat=3):
        for first in itertools.product(np.linspace(0.02, 0.9, 12), repeat=2):
            one = np.array([*first, 1 - sum(first)])
            other = one * np.exp(ratios)
            if one.min() <= 0 or abs(other.sum() - 1) > 0.2:
                continue
            other /= other.sum()
            base = float(np.abs(np.log(other / one)).max())
            loss = float(np.abs(np.log(best_law(other, runs) / best_law(one, runs))).max())
            assert loss <= 3 * base * (1 + 1e-9)
            largest = max(largest, loss / max(base, 1e-9))
    assert largest > 1.2, "one run's loss would do, and nothing is shown"


def test_the_formula_of_the_law() -> None:
    one = np.array([0.2, 0.5, 0.05, 0.25])
    for runs in (2, 5, 16):
        np.testing.assert_allclose(best_law(one, runs), summed_law(one, runs), rtol=1e-9)


def test_whoever_knows_the_number_of_runs_learns_more_than_is_paid_for() -> None:
    """Why as many runs are computed whatever their number: of 40 draws, known to be 40."""
    epsilon = 0.2
    one = np.array([1 / (1 + math.exp(epsilon)), 0.0])
    one[1] = 1 - one[0]
    loss = 40 * math.log(one[1] / one[0])  # that all of them were the lower outcome
    assert loss > 3 * epsilon * 10


@pytest.mark.parametrize("runs", [2, 5])
@pytest.mark.parametrize("rho", [0.01, 0.1, 1.0])
def test_runs_with_gaussian_noise_cost_no_more_than_their_event(rho: float, runs: int) -> None:
    """One run that releases a whole number with discrete Gaussian noise, which is its score too."""
    variance, orders = 1 / (2 * rho), np.array([1.2, 2.0, 5.0, 20.0])
    reach = math.ceil(30 * math.sqrt(variance)) + 2
    numbers = np.arange(-reach, reach + 1)
    laws = []
    for centre in (0, 1):
        weights = np.exp(-np.square(numbers - centre) / (2 * variance))
        laws.append(best_law(weights / weights.sum(), runs))
    allowed = renyi(SelectedRuns(rho, runs), orders)
    for one, other in itertools.permutations(laws):
        seen = (one > 1e-250) & (other > 1e-250)
        logs = np.log(one[seen]), np.log(other[seen])
        spent = [
            np.logaddexp.reduce(order * logs[0] + (1 - order) * logs[1]) / (order - 1)
            for order in orders
        ]
        assert (np.array(spent) <= allowed).all()
        assert spent[1] > rho, "more than one run alone"


def test_the_curve_of_runs_is_that_of_the_library() -> None:
    from dp_accounting.rdp import rdp_privacy_accountant as library

    orders = 1 + np.geomspace(1e-3, 1e4, 1500)
    for rho, runs in ((0.003, 2), (0.05, 7), (2.0, 16)):
        theirs = library._compute_rdp_repeat_and_select(orders, orders * rho, runs, 1)
        ours = renyi(SelectedRuns(rho, runs), orders)
        assert (ours <= np.array(theirs) * (1 + 1e-9)).all()
        np.testing.assert_allclose(ours, theirs, rtol=1e-3)
    one = renyi(SelectedRuns(0.2, 1), orders)
    np.testing.assert_allclose(one, renyi(ZeroConcentrated(0.2), orders))


@given(epsilon=st.floats(0.05, 20), runs=st.integers(2, 16), recordings=st.integers(1, 300))
def test_the_budget_covers_all_runs(epsilon: float, runs: int, recordings: int) -> None:
    pure = BestLaplaceLloyd(epsilon, recordings, runs)
    score = QUALITY_SHARE * epsilon / 3
    assert 3 * (pure.each.epsilon + score) == pytest.approx(epsilon, rel=1e-12)
    assert pure.event(Unit.RECORDING) == Pure(epsilon)
    assert pure.cost(Unit.PHONE).epsilon == recordings * epsilon
    best = BestGaussianLloyd(epsilon, 1e-6, recordings, runs)
    event = SelectedRuns(best.each.rho + QUALITY_SHARE * best.rho, runs)
    assert composed_epsilon((event,), 1e-6) <= epsilon
    assert composed_epsilon((event,), 1e-6) >= 0.99 * epsilon
    assert best.event(Unit.PHONE).rho == pytest.approx(best.rho * recordings**2)
    assert best.cost(Unit.PHONE).epsilon >= 0.99 * epsilon


def test_the_noise_on_a_score() -> None:
    random = np.random.default_rng(1).bytes
    drawn = [BestLaplaceLloyd(1.2, 9, 2).quality_noise(5, random) for _ in range(20_000)]
    alpha = math.exp(-0.1 / 5)  # a quarter of a third of 1.2
    assert np.var(drawn) == pytest.approx(2 * alpha / (1 - alpha) ** 2, rel=0.06)
    best = BestGaussianLloyd(1.2, 1e-6, 9, 2)
    drawn = [best.quality_noise(5, random) for _ in range(3000)]
    assert np.var(drawn) == pytest.approx(25 / (2 * 0.25 * best.rho), rel=0.12)


# ---------------------------------------------------------------------------------------- scores


@given(
    count=st.integers(0, 12),
    centroids=st.integers(1, 5),
    dimensions=st.integers(1, 4),
    geometry=st.sampled_from(Geometry),
    seed=st.integers(0, 2**32 - 1),
)
def test_one_recording_moves_a_score_by_one_at_most(
    count: int, centroids: int, dimensions: int, geometry: Geometry, seed: int
) -> None:
    random = np.random.default_rng(seed)
    points = random.normal(size=(count + 1, dimensions))
    places = random.uniform(-1, 1, (centroids, dimensions))
    if geometry is Geometry.SPHERICAL:
        places = unit_rows(places)
    places = places.astype(np.float32)
    whole, rest = (quality(rows, places, geometry) for rows in (points, points[:-1]))
    assert whole - rest == quality(points[-1:], places, geometry)
    assert 0 <= whole - rest <= GRID


def test_scores_by_hand() -> None:
    box = np.array([[0.5, 0.0], [-0.5, 0.0]], dtype=np.float32)  # reach² = 1/2 for two in a plane
    assert quality([[0.5, 0.0]], box, Geometry.EUCLIDEAN) == GRID
    assert quality([[0.5, 0.5]], box, Geometry.EUCLIDEAN) == GRID // 2
    assert quality([[0.5, 1.0]], box, Geometry.EUCLIDEAN) == 0
    sphere = np.array([[1.0, 0.0]], dtype=np.float32)
    turned = [[3.0, 0.0], [1.0, math.sqrt(3)], [0.0, 1.0], [-1.0, 0.0]]
    each = [quality([row], sphere, Geometry.SPHERICAL) for row in turned]
    assert each == pytest.approx([GRID, GRID / 2, 0, 0], abs=2)


# ------------------------------------------------------------------------------------------ runs


class Numbered:
    """Stands in for a clustering: its n-th run has its one centroid at n."""

    def __init__(self) -> None:
        self.runs = 0

    def cluster(self, points: object, random: Callable[[int], bytes]) -> npt.NDArray[np.float32]:
        self.runs += 1
        return np.full((1, 1), self.runs, dtype=np.float32)


@pytest.mark.parametrize(("wanted", "best"), [(1, 1), (3, 3), (10, 7), (200, 150)])
def test_the_best_of_the_runs_that_count(
    wanted: int, best: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Scores rise to the seventh run, and once more at the 150th, beyond what counts as a rule."""

    def score(points: object, centroids: np.ndarray, geometry: object) -> int:
        number = int(centroids[0, 0])
        return 10**9 if number == 150 else min(number, 7) * 10**6

    monkeypatch.setattr(private_runs, "geometric", lambda mean, random: wanted)
    monkeypatch.setattr(private_runs, "quality", score)
    each = Numbered()
    runs = BestOfRuns(each, BestLaplaceLloyd(1e7, 9, 4))
    found = runs.cluster(np.zeros((0, 1)), np.random.default_rng(2).bytes)
    assert found[0, 0] == best
    assert each.runs == max(wanted, runs.computed), "the work tells of the number of runs"
    assert (1 - 1 / 4) ** runs.computed <= 2.0**-40 < (1 - 1 / 4) ** (runs.computed - 1)


def test_the_law_of_the_best_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that end at one of three places; the score tells them apart, its noise is negligible."""
    one = np.array([0.5, 0.3, 0.2])

    class Chosen:
        def cluster(
            self, points: object, random: Callable[[int], bytes]
        ) -> npt.NDArray[np.float32]:
            place = np.searchsorted(np.cumsum(one), random(1)[0] / 256, side="right")
            return np.full((1, 1), place, dtype=np.float32)

    monkeypatch.setattr(BestOfRuns, "computed", 1)
    monkeypatch.setattr(private_runs, "quality", lambda p, c, g: int(c[0, 0]) * 10**6)
    one = np.array([128, 77, 51]) / 256
    random = np.random.default_rng(3).bytes
    runs = BestOfRuns(Chosen(), BestLaplaceLloyd(1e7, 9, 3))
    found = [int(runs.cluster(np.zeros((0, 1)), random)[0, 0]) for _ in range(5000)]
    observed = np.bincount(found, minlength=3)
    assert stats.chisquare(observed, best_law(one, 3) * 5000).pvalue > LIMIT
    assert stats.chisquare(observed, one * 5000).pvalue < LIMIT


def test_what_a_mechanism_pays_for() -> None:
    points = np.random.default_rng(4).uniform(-1, 1, (50, 3))
    pure, gaussian = BestLaplaceLloyd(3.0, 50, 2), BestGaussianLloyd(3.0, 1e-6, 50, 2)
    assert clustering_by(pure.each, 4) == DPLloyd(4, LaplaceLloyd(0.75, 50))
    assert isinstance(clustering_by(GaussianLloyd(1.0, 1e-6, 9), 4), SphericalDPLloyd)
    for mechanism in (pure, gaussian):
        runs = clustering_by(mechanism, 4)
        assert isinstance(runs, BestOfRuns)
        assert runs.each == clustering_by(mechanism.each, 4)
        same = [runs.cluster(points, np.random.default_rng(seed).bytes) for seed in (5, 5, 6)]
        np.testing.assert_array_equal(same[0], same[1])
        assert same[0].shape == (4, 3)
        assert (same[0] != same[2]).any()
