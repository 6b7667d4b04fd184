"""What votes against thresholds cost: the table of Muschiol, its theorem, and real neighbours."""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr
from support.examples import examples
from support.muschiol_theorem import theorem

from earshot_models.votes.costs.bits import bit_divergence
from earshot_models.votes.costs.costs import Method, epsilon
from earshot_models.votes.costs.muschiol import claimed_threshold
from earshot_models.votes.costs.outcomes import ERROR
from earshot_models.votes.costs.thresholds import (
    changed_labels,
    gaussian_divergence,
    grid_divergence,
    log_other_gap,
    log_other_labels,
)
from earshot_models.votes.rules.gnthreshold import GNThresholdRule
from earshot_models.votes.rules.gnthreshold_adaptive import AdaptiveRule, above_widest_gap
from earshot_models.votes.rules.grid_threshold import GridRule, room
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit

ORDERS = np.array([1.2, 2.0, 5.0, 20.0])
TEACHERS = 50
DEVIATION = math.sqrt(0.3 * TEACHERS)
"""Muschiol's noise: its σ² is a variance, in teachers votes squared."""


@pytest.mark.parametrize(
    ("queries", "table", "best"), [(2000, 418.4, 321.4), (5000, 1018.4, 691.9)]
)
def test_the_data_independent_column_of_table_5_4(queries: int, table: float, best: float) -> None:
    """Its grid of orders ends at 2, where the best one is smaller."""
    ends_at_two, fine = np.arange(2.0, 100.0), np.linspace(1.001, 4, 20_001)
    for orders, expected in ((ends_at_two, table), (fine, best)):
        spent = queries * claimed_threshold(DEVIATION, orders)
        assert epsilon(spent, orders, 1e-8, classic=True)[0] == pytest.approx(expected, abs=0.05)


def test_what_the_same_bits_cost_for_the_number_of_labels_that_is_claimed() -> None:
    orders = np.linspace(1.01, 4, 600)
    spent = 2000 * 3 * bit_divergence(DEVIATION, orders)
    assert epsilon(spent, orders, 1e-8, classic=True)[0] == pytest.approx(224, abs=1)


def test_how_many_labels_one_teacher_changes() -> None:
    for unit, labels in ((Unit.PHONE, 3), (Unit.REPLACED_PHONE, 6), (Unit.RECORDING, 6)):
        assert changed_labels(None, 20, unit) == 20
        assert changed_labels(3, 20, unit) == labels
        assert changed_labels(3, 4, unit) == min(labels, 4)
    orders = np.array([2.0])
    assert gaussian_divergence(1.0, 3, orders) == claimed_threshold(1.0, orders)
    assert gaussian_divergence(1.0, 6, orders) == 2 * claimed_threshold(1.0, orders)


@pytest.mark.parametrize("most", [None, 3])
@pytest.mark.parametrize(
    "votes", [[50.0, 0, 0, 0, 1, 2], [30.0, 12, 9, 0, 0, 0], [48.0, 49, 1, 0, 0, 2]]
)
@pytest.mark.parametrize("unit", [Unit.PHONE, Unit.REPLACED_PHONE])
def test_the_data_dependent_bound_at_50_digits(
    most: int | None, votes: list[float], unit: Unit
) -> None:
    sigma, limit = 4.0, 20.0
    voting = GNThresholdRule(sigma=sigma, cut=limit, winners=most)
    with mpmath.workdps(50):
        none = mpmath.mpf(1)
        for each in votes:
            none *= mpmath.ncdf(abs(mpmath.mpf(each) - limit) / sigma)
        q = 1 - none
        changed = changed_labels(most, 6, unit)
        expected = np.array(
            [float(theorem(q, changed, mpmath.mpf(sigma) ** 2, order)) for order in ORDERS]
        )
        assert log_other_labels(np.array([votes]), limit, sigma)[0] == pytest.approx(
            float(mpmath.log(q)), rel=1e-9
        )
    found = voting.divergences(np.array([votes]), 50, ORDERS, Method.DEPENDENT, unit)
    bits = changed * bit_divergence(sigma, ORDERS)
    np.testing.assert_allclose(found.answered[0], np.minimum(expected, bits), rtol=1e-7)


@settings(max_examples=examples(40), deadline=None)
@given(
    st.lists(st.integers(0, 50), min_size=4, max_size=4),
    st.sampled_from([None, 1, 2]),
    st.sampled_from([Unit.PHONE, Unit.REPLACED_PHONE]),
)
def test_exact_outcomes_are_of_the_labels_that_cost_most(
    votes: list[int], most: int | None, unit: Unit
) -> None:
    """Every way to move so many labels by one vote, in both directions of the divergence."""
    order, sigma, limit = 6.0, 3.0, 22.0
    voting = GNThresholdRule(sigma=sigma, cut=limit, winners=most)
    changed = changed_labels(most, 4, unit)
    here = (np.array(votes) - limit) / sigma
    worst = 0.0
    for moves in itertools.product((-1, 0, 1), repeat=4):
        if sum(map(abs, moves)) > changed:
            continue
        there = here + np.array(moves) / sigma
        for a, b in ((here, there), (there, here)):
            parts = [order * log_ndtr(s * a) + (1 - order) * log_ndtr(s * b) for s in (1, -1)]
            worst = max(worst, float(np.logaddexp(*parts).sum()) / (order - 1))
    table = np.array([votes], dtype=np.float64)
    exact = voting.divergences(table, 50, [order], Method.EXACT, unit).answered[0, 0]
    usual = voting.divergences(table, 50, [order], Method.INDEPENDENT, unit).answered[0, 0]
    assert worst - 1e-9 <= exact <= usual + 4 * ERROR <= order * changed / (2 * sigma**2) + 1e-9
    # A largest sum may mix directions, which no one neighbour does: it is close, not equal.
    assert exact <= worst * 1.5 + 1e-9


@pytest.mark.parametrize("votes", [[50.0, 45, 3, 0], [31.0, 20, 10], [12.0, 4.0]])
def test_noise_changes_the_side_of_a_gap_as_seldom_as_is_said(votes: list[float]) -> None:
    sigma, generator = 2.5, np.random.default_rng(1)
    noisy = np.array(votes) + sigma * generator.standard_normal((200_000, len(votes)))
    usual = above_widest_gap(np.array([votes]))[0]
    changed = (above_widest_gap(noisy) != usual).any(axis=1).mean()
    bound = math.exp(log_other_gap(np.array([votes]), sigma)[0])
    assert changed <= bound + 5e-3
    ordered = sorted(votes, reverse=True)
    gaps = sorted((a - b for a, b in itertools.pairwise(ordered)), reverse=True)
    second = gaps[1] if len(gaps) > 1 else -gaps[0]
    with mpmath.workdps(50):
        inner = 2 * mpmath.ncdf(mpmath.mpf(gaps[0] - second) / (4 * sigma)) - 1
        assert bound == pytest.approx(float(1 - inner ** len(votes)), rel=1e-9)


def test_equal_gaps_are_bound_by_nothing() -> None:
    assert log_other_gap(np.array([[20.0, 10.0, 0.0]]), 3.0)[0] == 0
    voting = AdaptiveRule(sigma=3.0)
    found = voting.divergences(np.array([[20.0, 10.0, 0.0]]), 50, ORDERS, Method.DEPENDENT)
    np.testing.assert_allclose(found.answered[0], 3 * ORDERS / 18)


def test_an_adaptive_threshold_costs_its_noise_and_less_where_one_gap_is_wide() -> None:
    voting = AdaptiveRule(sigma=3.0, winners=1)
    votes = np.array([[50.0, 1, 0, 0, 0], [20.0, 14, 9, 5, 0]])
    usual, exact = (
        voting.divergences(votes, 50, ORDERS, method).answered
        for method in (Method.INDEPENDENT, Method.EXACT)
    )
    np.testing.assert_allclose(usual, np.tile(2 * ORDERS / 18, (2, 1)))
    np.testing.assert_array_equal(exact, usual)  # no exact laws: what holds stands in
    dependent = voting.divergences(votes, 50, ORDERS, Method.DEPENDENT).answered
    assert (dependent[0, :2] < usual[0, :2] / 10).all()
    assert (dependent <= usual).all()


def test_a_grid_costs_the_exponential_mechanism_beside_its_worst_threshold() -> None:
    scale = 5.0
    np.testing.assert_allclose(grid_divergence(scale, [1.5, 2.0]), [1.5 / 50, 2 / 50])
    assert grid_divergence(scale, [1e6])[0] <= 2 / scale
    votes = np.array([[48.0, 20.0, 0.0]])
    for method in Method:
        voting = GridRule(sigma=4.0, grid=(10.0, 35.0), scale=scale)
        found = voting.divergences(votes, 50, ORDERS, method).answered
        each = [
            GNThresholdRule(sigma=4.0, cut=limit).divergences(votes, 50, ORDERS, method).answered
            for limit in (10.0, 35.0)
        ]
        np.testing.assert_allclose(found, np.maximum(*each) + grid_divergence(scale, ORDERS))


def test_the_exponential_mechanism_costs_no_more_than_is_said_on_real_neighbours() -> None:
    """The whole law of the threshold, for votes that one teacher changes as it likes."""
    grid, scale = (5.0, 15.0, 25.0, 45.0), 2.0
    generator = np.random.default_rng(2)
    worst = np.zeros(len(ORDERS))
    for _ in range(2000):
        votes = generator.integers(0, 51, 4).astype(np.float64)
        moved = np.clip(votes + generator.integers(-1, 2, 4), 0, 50)
        logs = []
        for each in (votes, moved):
            apart = room(np.array(grid), each[None], 50)[0] / scale
            logs.append(apart - np.logaddexp.reduce(apart))
        power = ORDERS[:, None] * logs[0] + (1 - ORDERS[:, None]) * logs[1]
        worst = np.maximum(worst, np.logaddexp.reduce(power, axis=1) / (ORDERS - 1))
    bound = grid_divergence(scale, ORDERS)
    assert (worst <= bound).all()
    assert worst[0] > bound[0] / 4


@pytest.mark.parametrize("method", Method)
def test_answered_samples_pay_for_their_check_too(method: Method) -> None:
    votes = np.array([[50.0, 2, 1], [29.0, 3, 0]])
    for plain, asking in (
        (
            GNThresholdRule(sigma=4, cut=20),
            GNThresholdRule(sigma=4, cut=20, threshold=30, check_sigma=5),
        ),
        (AdaptiveRule(sigma=4), AdaptiveRule(sigma=4, threshold=30, check_sigma=5)),
    ):
        without, found = (
            voting.divergences(votes, 50, ORDERS, method) for voting in (plain, asking)
        )
        assert (without.asked == 0).all()
        np.testing.assert_array_equal(found.answered, without.answered)
        assert (found.asked <= ORDERS / 50 + ERROR).all()
        assert (found.asked[1] > 0).all()


def test_what_is_out_of_range_is_named() -> None:
    voting = GNThresholdRule(sigma=1, cut=10, winners=4)
    with pytest.raises(InvalidParametersError, match="the number of labels"):
        voting.divergences(np.ones((1, 3)), 50, ORDERS, Method.EXACT)
    with pytest.raises(InvalidInputError, match="0 to 50"):
        GNThresholdRule(sigma=1, cut=10).divergences(
            np.full((1, 3), 51.0), 50, ORDERS, Method.EXACT
        )
    with pytest.raises(InvalidInputError, match="at least two labels"):
        log_other_gap(np.ones((1, 1)), 1.0)
    with pytest.raises(InvalidParametersError, match="scale"):
        grid_divergence(0.0, ORDERS)
    with pytest.raises(InvalidParametersError, match="orders"):
        gaussian_divergence(1.0, 6, [1.0])
