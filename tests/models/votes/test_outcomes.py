"""What outcomes cost exactly, against closed forms, another quadrature and every neighbour."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from support.refusals import refused

from earshot_models.votes.costs.dependent import independent_divergence
from earshot_models.votes.costs.outcomes import (
    ERROR,
    check_divergence,
    log_winning,
    outcome_divergence,
)
from earshot_protocol.errors import InvalidParametersError

ORDERS = np.array([1.2, 2.0, 5.0, 20.0, 60.0])


NODES, WEIGHTS = np.polynomial.legendre.leggauss(600)


def law(votes: list[float], sigma: float) -> list[float]:
    """Pr[class j wins] = ∫ φ((x − n_j)/σ) ∏ Φ((x − n_i)/σ) dx/σ, by Gauss and Legendre."""
    half = (max(votes) - min(votes)) / 2 + 10 * sigma
    points = half * NODES + (max(votes) + min(votes)) / 2
    standard = (points[:, None] - votes) / sigma
    below, density = norm.cdf(standard), norm.pdf(standard) / sigma
    return [
        float(half * np.sum(WEIGHTS * density[:, j] * np.delete(below, j, axis=1).prod(axis=1)))
        for j in range(len(votes))
    ]


@pytest.mark.parametrize(
    ("votes", "sigma"),
    [
        ([200.0, 50.0], 40.0),
        ([0.0, 250.0], 7.0),
        ([83.0, 84.0, 83.0], 40.0),
        ([240.0, 6.0, 4.0, 0.0], 12.0),
        ([90.0, 80.0, 40.0, 40.0, 0.0], 150.0),
    ],
)
def test_the_law_of_the_winner(votes: list[float], sigma: float) -> None:
    expected = np.log(law(votes, sigma))
    np.testing.assert_allclose(log_winning(np.array(votes), sigma), expected, rtol=0, atol=1e-10)


def test_two_classes_have_a_closed_form_however_unlikely_one_is() -> None:
    for gap in (0, 3, 40, 250):
        found = log_winning(np.array([gap, 0]), 6.0)
        with mpmath.workdps(60):
            wrong = mpmath.erfc(mpmath.mpf(gap) / 12) / 2
            expected = [float(mpmath.log(1 - wrong)), float(mpmath.log(wrong))]
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


def by_hand(laws: Sequence[Sequence[mpmath.mpf | float]], order: float) -> float:
    """The largest divergence between the first law and any other, in both directions."""

    def one(here: Sequence[mpmath.mpf | float], there: Sequence[mpmath.mpf | float]) -> mpmath.mpf:
        pairs = [(mpmath.mpf(p), mpmath.mpf(q)) for p, q in zip(here, there, strict=True)]
        total = mpmath.fsum(p**order * q ** (1 - order) for p, q in pairs)
        return mpmath.log(total) / (order - 1)

    return float(max(max(one(laws[0], each), one(each, laws[0])) for each in laws[1:]))


def neighbours(votes: list[float], weight: float = 1.0) -> list[list[float]]:
    found = [votes]
    for source, target in itertools.permutations(range(len(votes)), 2):
        if votes[source] >= weight:
            moved = list(votes)
            moved[source] -= weight
            moved[target] += weight
            found.append(moved)
    return found


@pytest.mark.parametrize("votes", [[60.0, 20.0], [30.0, 30.0], [100.0, 0.0], [1.0, 0.0]])
@pytest.mark.parametrize("sigma", [5.0, 40.0])
@pytest.mark.parametrize("weight", [1.0, 0.5, 3.0])
def test_two_classes_against_every_neighbour(
    votes: list[float], sigma: float, weight: float
) -> None:
    with mpmath.workdps(60):
        laws = []
        for each in neighbours(votes, weight):
            second = mpmath.erfc((mpmath.mpf(each[0]) - each[1]) / (2 * sigma)) / 2
            laws.append([1 - second, second])
        if len(laws) == 1:
            return
        expected = [by_hand(laws, order) for order in ORDERS]
    found = outcome_divergence(np.array([votes]), sigma, ORDERS, weight)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=2 * ERROR)
    assert (found >= expected).all()


@pytest.mark.parametrize("votes", [[20.0, 12.0, 12.0], [25.0, 3.0, 0.0]])
def test_three_classes_against_every_neighbour(votes: list[float]) -> None:
    sigma = 6.0
    laws = [law(each, sigma) for each in neighbours(votes)]
    expected = [by_hand(laws, order) for order in ORDERS]
    found = outcome_divergence(np.array([votes]), sigma, ORDERS)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=2 * ERROR)


def test_a_vote_of_many_deviations_is_worked_out_too() -> None:
    """Ratios of what is below leave the range of floats there; another way is taken."""
    sigma, votes = 1.5, [60.0, 35.0]
    with mpmath.workdps(400):
        laws = []
        for each in neighbours(votes, 30.0):
            second = mpmath.erfc((mpmath.mpf(each[0]) - each[1]) / (2 * sigma)) / 2
            laws.append([1 - second, second])
        expected = [by_hand(laws, order) for order in ORDERS]
    found = outcome_divergence(np.array([votes]), sigma, ORDERS, 30.0)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-8)


@settings(max_examples=40)
@given(
    st.lists(st.integers(0, 120), min_size=2, max_size=6).filter(any),
    st.sampled_from([2.0, 10.0, 40.0, 300.0]),
    st.randoms(use_true_random=False),
)
def test_it_costs_never_more_than_noisy_counts_and_names_do_not_matter(
    votes: list[int], sigma: float, random: object
) -> None:
    found = outcome_divergence(np.array([votes]), sigma, ORDERS)[0]
    assert (found <= independent_divergence(sigma, ORDERS) * (1 + 1e-9) + 2 * ERROR).all()
    assert (np.diff(found) >= -1e-9).all(), "divergences grow with their order"
    shuffled = list(votes)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    np.testing.assert_array_equal(
        outcome_divergence(np.array([shuffled, votes]), sigma, ORDERS), [found, found]
    )


def test_a_vote_that_stays_among_classes_of_equal_counts_is_a_neighbour_too() -> None:
    """Of three classes that share the votes, every move is between equals."""
    votes = [10.0, 10.0, 10.0]
    expected = by_hand([law(each, 4.0) for each in neighbours(votes)[:2]], 5.0)
    found = outcome_divergence(np.array([votes]), 4.0, [5.0])[0, 0]
    assert found == pytest.approx(expected, rel=1e-7)
    assert found > 1e-3


@pytest.mark.parametrize("most", [0.0, 120.0, 200.0, 201.0, 250.0])
def test_a_check_against_its_closed_form(most: float) -> None:
    with mpmath.workdps(50):
        laws = []
        for each in (most, most - 1, most + 1):
            yes = mpmath.ncdf((mpmath.mpf(each) - 200) / 30)
            laws.append([yes, 1 - yes])
        expected = [by_hand(laws, order) for order in ORDERS]
    found = check_divergence(np.array([most]), 200.0, 30.0, ORDERS)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-8, atol=2 * ERROR)
    assert (found >= expected).all()
    assert (found <= ORDERS / (2 * 30**2) + ERROR).all()


def test_an_answer_of_two_costs_two_thirds_of_the_number_at_most() -> None:
    """At the threshold itself a yes or no tells most: 2/π of the noisy number, in small noise."""
    most = np.linspace(100, 300, 401)
    found = check_divergence(most, 200.0, 150.0, [2.0])[:, 0]
    assert found.max() / (2 / (2 * 150**2)) == pytest.approx(2 / math.pi, rel=0.01)
    assert abs(most[found.argmax()] - 200) < 5


test_what_is_out_of_range_is_named = refused(
    InvalidParametersError,
    ("queries × classes", outcome_divergence, np.ones(3), 1.0, [2.0]),
    ("must not be negative", outcome_divergence, np.array([[1.0, -1.0]]), 1.0, [2.0]),
    ("deviation", outcome_divergence, np.ones((1, 2)), 0.0, [2.0]),
    ("orders", outcome_divergence, np.ones((1, 2)), 1.0, [1.0]),
    ("weight", outcome_divergence, np.ones((1, 2)), 1.0, [2.0], 0.0),
    ("finite", check_divergence, np.array([np.nan]), 1.0, 1.0, [2.0]),
    ("deviation", check_divergence, np.ones(1), 1.0, math.nan, [2.0]),
    ("two classes", log_winning, np.ones(1), 1.0),
)
