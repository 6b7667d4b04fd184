"""Bounds that look at votes, against the papers' formulas worked at 50 digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.precision import digits
from support.refusals import refused

from earshot_models.votes.costs.dependent import (
    dependent_divergence,
    independent_divergence,
    log_other_answer,
    log_other_winner,
)
from earshot_protocol.errors import InvalidParametersError

_precise = digits(50)
ORDERS = np.array([1.1, 2.0, 3.0, 8.0, 17.5, 50.0])


def textbook_other_winner(votes: list[float], sigma: float) -> mpmath.mpf:
    """Proposition 7 of Papernot et al. (ICLR 2018)."""
    winner = votes.index(max(votes))
    gaps = [votes[winner] - count for j, count in enumerate(votes) if j != winner]
    q = mpmath.fsum(mpmath.erfc(mpmath.mpf(gap) / (2 * sigma)) for gap in gaps) / 2
    return min(q, 1 - mpmath.mpf(1) / len(votes))


def textbook_divergence(q: mpmath.mpf, sigma: float, order: float) -> mpmath.mpf:
    """Theorem 6 with the orders of Proposition 10, as they stand there."""
    order, usual = mpmath.mpf(order), mpmath.mpf(order) / mpmath.mpf(sigma) ** 2
    mu2 = sigma * mpmath.sqrt(mpmath.log(1 / q))
    mu1 = mu2 + 1
    eps1, eps2 = mu1 / mpmath.mpf(sigma) ** 2, mu2 / mpmath.mpf(sigma) ** 2
    if order > mu1 or mu2 <= 1 or q * mpmath.exp(eps2) >= 1:
        return usual
    if q > mpmath.exp((mu2 - 1) * eps2) / ((mu1 / (mu1 - 1)) * (mu2 / (mu2 - 1))) ** mu2:
        return usual
    a = (1 - q) / (1 - (q * mpmath.exp(eps2)) ** ((mu2 - 1) / mu2))
    b = mpmath.exp(eps1) / q ** (1 / (mu1 - 1))
    total = (1 - q) * a ** (order - 1) + q * b ** (order - 1)
    return min(usual, mpmath.log(total) / (order - 1))


@given(
    st.lists(st.integers(0, 250), min_size=2, max_size=12),
    st.sampled_from([0.5, 5.0, 40.0, 150.0]),
)
def test_another_winner_is_as_unlikely_as_the_paper_says(votes: list[int], sigma: float) -> None:
    with mpmath.workdps(50):
        expected = mpmath.log(textbook_other_winner([float(count) for count in votes], sigma))
        found = log_other_winner(np.array([votes]), sigma)[0]
        assert found == pytest.approx(float(expected), rel=1e-11)


@pytest.mark.parametrize("sigma", [1.0, 7.0, 40.0, 212.13])
@pytest.mark.parametrize(
    "exponent", [-0.31, -1, -3, -9, -30, -300, pytest.param(-4000, marks=pytest.mark.slow)]
)
def test_the_divergence_is_that_of_theorem_6(sigma: float, exponent: float) -> None:
    q = mpmath.mpf(10) ** mpmath.mpf(exponent)
    with mpmath.workdps(50 + int(-exponent)):  # 1 + q needs as many
        expected = [float(textbook_divergence(q, sigma, order)) for order in ORDERS]
    found = dependent_divergence(float(mpmath.log(q)), sigma, ORDERS)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=0)


def test_a_likely_outcome_costs_less_and_a_certain_one_nothing() -> None:
    logs = np.array([-np.inf, -100.0, -30.0, -0.1])
    found = dependent_divergence(logs, 40.0, [2.0, 8.0])
    assert np.all(found[0] == 0)
    assert np.all(np.diff(found, axis=0) >= 0)
    assert np.all(found[1] < 0.01 * independent_divergence(40.0, [2.0, 8.0]))
    np.testing.assert_array_equal(found[3], independent_divergence(40.0, [2.0, 8.0]))


def outcome(gap: float, sigma: float) -> float:
    """How likely the second of two classes wins that lacks so many votes."""
    return float(mpmath.erfc(mpmath.mpf(gap) / (2 * sigma)) / 2)


def divergence(p: float, other: float, order: float) -> float:
    total = p**order * other ** (1 - order) + (1 - p) ** order * (1 - other) ** (1 - order)
    return math.log(total) / (order - 1)


@pytest.mark.parametrize("gap", [10, 30, 50, 90])
@pytest.mark.parametrize("sigma", [7.0, 20.0])
def test_it_holds_for_two_classes(gap: int, sigma: float) -> None:
    """Two classes, where the law of the outcome is known."""
    logs = log_other_winner(np.array([[100 + gap, 100]]), sigma)
    here, there = outcome(gap, sigma), outcome(gap - 2, sigma)
    for order in (2.0, 4.0, 10.0):
        bound = dependent_divergence(logs, sigma, [order])[0, 0]
        assert bound >= divergence(here, there, order) * (1 - 1e-9)


def test_it_does_not_hold_the_other_way() -> None:
    """A neighbour's outcomes may tell more of it than these votes' do: 7.8 for 6.9 · 10⁻⁴."""
    logs = log_other_winner(np.array([[150, 100]]), 7.0)
    bound = dependent_divergence(logs, 7.0, [10.0])[0, 0]
    assert bound == pytest.approx(6.9e-4, rel=0.01)
    assert divergence(outcome(48, 7.0), outcome(50, 7.0), 10.0) == pytest.approx(7.8e-4, rel=0.01)


@pytest.mark.parametrize("most", [120.0, 200.0, 249.0])
def test_a_check_is_a_vote_of_two_that_one_vote_moves_half_as_far(most: float) -> None:
    """One number moves by one, the difference of two counts by two: σ₁ is as √2·σ₁ there."""
    found = log_other_answer(np.array([most]), 200.0, 150.0)[0]
    expected = mpmath.log(mpmath.erfc(abs(most - 200) / (150 * mpmath.sqrt(2))) / 2)
    assert found == pytest.approx(float(expected), rel=1e-12)
    usual = independent_divergence(math.sqrt(2) * 150, [6.0])[0]
    assert usual == pytest.approx(6 / (2 * 150**2))


test_what_is_out_of_range_is_named = refused(
    InvalidParametersError,
    ("queries × classes", log_other_winner, np.ones(4), 1.0),
    ("two classes", log_other_winner, np.ones((4, 1)), 1.0),
    ("finite", log_other_winner, np.array([[1.0, np.nan]]), 1.0),
    ("deviation", log_other_winner, np.ones((1, 2)), 0.0),
    ("finite", log_other_answer, np.array([np.inf]), 1.0, 1.0),
    ("deviation", log_other_answer, np.array([3.0]), 1.0, -1.0),
    ("log_q", dependent_divergence, 0.1, 1.0, [2.0]),
    ("log_q", dependent_divergence, math.nan, 1.0, [2.0]),
    ("orders", dependent_divergence, -1.0, 1.0, [1.0]),
    ("ratio", dependent_divergence, -1.0, math.inf, [2.0]),
)
