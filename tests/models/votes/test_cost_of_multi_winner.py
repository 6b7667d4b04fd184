"""What votes with several winners cost: figures of the paper, and every pair of ballots."""

from __future__ import annotations

import itertools
import math
from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from earshot_models.votes.costs.bits import bit_divergence
from earshot_models.votes.costs.claims import (
    claimed_binary,
    claimed_clipped,
    claimed_powerset,
    classic_rho,
    printed_deviation,
)
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.dependent import dependent_divergence, log_other_answer
from earshot_models.votes.costs.multi_winner import gaussian_divergence, squared_change
from earshot_models.votes.costs.outcomes import ERROR, check_divergence
from earshot_models.votes.electorate import PollForm
from earshot_models.votes.label_ballots import Approval, Clipped
from earshot_models.votes.rules.binary import BinaryRule
from earshot_models.votes.rules.label_votes import LabelRule
from earshot_models.votes.rules.powerset import PowersetRule
from earshot_models.votes.rules.tau import TauRule
from earshot_models.votes.subsets import SubsetVotes
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit

ORDERS = np.array([1.2, 2.0, 5.0, 20.0, 60.0])
PUBLISHED = np.arange(2, 100, 0.5)
"""The orders of the published program."""
SEVEN = 7.0 / math.sqrt(2.0)
"""Their program draws noise of σ = 7 both on votes for a label and on votes against it."""
NOBODY = SubsetVotes(np.zeros((1, 20), dtype=np.int8), np.array([50]), np.array([0]))
"""One query: fifty teachers find none of twenty labels."""


def answers(divergences: Any, orders: Any, epsilon: float, delta: float = 1e-5) -> int:
    """How many queries of this cost fit into ε, as the papers convert."""
    room = epsilon - math.log(1 / delta) / (orders - 1)
    return math.floor(max((room / divergences).max(), 0.0))


def test_figure_1_left_random_votes_answer_12_queries_against_241() -> None:
    rho = classic_rho(20.0, 1e-5)
    binary = gaussian_divergence(Approval(20), SEVEN, [1.0 + 1e-9])[0]
    powerset = PowersetRule(sigma=7.0).divergences(NOBODY, [2.0], Method.INDEPENDENT)[1][0, 0]
    assert (math.floor(rho / binary), math.floor(rho / (powerset / 2))) == (12, 241)
    fine = np.linspace(1.5, 10, 5001)
    assert answers(gaussian_divergence(Approval(20), SEVEN, fine), fine, 20.0) == 12
    assert answers(fine / 49, fine, 20.0) == 241
    # Votes at random are bound by nothing but the noise: the votes' own bound is the same.
    random = np.full((1, 20), 25.0)
    found = BinaryRule(sigma=SEVEN).divergences(random, 50, fine, Method.DEPENDENT)[1][0]
    assert answers(found, fine, 20.0) in (18, 19), "0.64 of it: only bits leave"


def test_figure_1_right_unanimous_votes_answer_204_queries_against_3() -> None:
    none = np.zeros((1, 20))
    binary = BinaryRule(sigma=SEVEN).divergences(none, 50, PUBLISHED, Method.DEPENDENT)[1][0]
    powerset = PowersetRule(sigma=7.0).divergences(NOBODY, PUBLISHED, Method.DEPENDENT)[1][0]
    assert answers(binary, PUBLISHED, 2.0) == 204
    assert answers(powerset, PUBLISHED, 2.0) == 3


def test_exact_outcomes_of_the_same_votes() -> None:
    """Theorem 6 looks one way only for labels, and gives up a million sets too soon."""
    none = np.zeros((1, 20))
    binary = BinaryRule(sigma=SEVEN).divergences(none, 50, PUBLISHED, Method.EXACT)[1][0]
    powerset = PowersetRule(sigma=7.0).divergences(NOBODY, PUBLISHED, Method.EXACT)[1][0]
    assert answers(binary, PUBLISHED, 2.0) == 141
    assert answers(powerset, PUBLISHED, 2.0) == 21


@pytest.mark.parametrize(
    ("sigma", "tau", "delta", "queries"), [(9.0, 1.8, 1e-5, 123), (10.0, 3.0, 1e-6, 48)]
)
def test_f_9_of_the_paper(sigma: float, tau: float, delta: float, queries: int) -> None:
    """⌊ρ(20)σ²/τ²⌋ by its own claim; 4 times the cost from the noise that it prints."""
    rho = classic_rho(20.0, delta)
    with mpmath.workdps(50):
        log = mpmath.log(1 / mpmath.mpf(delta))
        expected = (mpmath.sqrt(log + 20) - mpmath.sqrt(log)) ** 2
        assert math.floor(expected * sigma**2 / tau**2) == queries
        assert rho == pytest.approx(float(expected), rel=1e-12)
    claimed = claimed_clipped(tau, 2, sigma, [1.0])[0]
    assert math.floor(rho / claimed) == queries
    true = gaussian_divergence(Clipped(20, tau), printed_deviation(sigma), [2.0])[0] / 2
    assert true / claimed == pytest.approx(4.0, rel=2e-3)


def test_claims_of_the_paper_beside_what_its_printed_noise_costs() -> None:
    orders = np.array([2.0, 8.0])
    sigma = 7.0
    binary = gaussian_divergence(Approval(20), printed_deviation(sigma), orders)
    np.testing.assert_allclose(binary, 2 * claimed_binary(20, sigma, orders))
    program = gaussian_divergence(Approval(20), SEVEN, orders)
    np.testing.assert_allclose(program, claimed_binary(20, sigma, orders))
    found = PowersetRule(sigma=sigma).divergences(NOBODY, orders, Method.INDEPENDENT)[1][0]
    np.testing.assert_allclose(found, claimed_powerset(sigma, orders))
    with pytest.raises(InvalidParametersError, match="1 or 2"):
        claimed_clipped(1.0, 3, sigma, orders)


@pytest.mark.parametrize(
    ("labels", "tau", "norm", "gain"),
    [
        (20, 1.8, 2, 3.09),  # Pascal VOC, said to gain more than 6
        (11, 3.0, 2, 1.0),  # MIMIC, by the number in the text
        (13, 3.0, 2, 1.0),  # and by its list
        (11, 2.8, 2, 1.0),  # CheXpert
        (15, 2.7, 2, 1.05),  # PadChest
        (20, 3.4, 1, 3.33),  # Pascal VOC in L1, more than in L2 at 1.8
    ],
)
def test_what_clipping_gains_over_binary_voting(
    labels: int, tau: float, norm: int, gain: float
) -> None:
    clipped = squared_change(Clipped(labels, tau, norm))
    assert labels / clipped == pytest.approx(gain, abs=0.005)
    assert clipped <= min(labels, 2 * tau**2) if norm == 2 else clipped <= 2 * tau


def ballots(rule: LabelRule) -> np.ndarray:
    """Every ballot on four labels that there is, in votes."""
    rows = np.array(list(itertools.product((0, 1), repeat=4)))
    ballot = rule.ballot(FOUR)
    return np.asarray(ballot.cast(rows) / ballot.vote)


FOUR = PollForm(4, 9)
RULES: list[LabelRule] = [
    BinaryRule(sigma=3.0),
    TauRule(sigma=3.0, tau=1.3, norm=2),
    TauRule(sigma=3.0, tau=0.6, norm=2),
]
RULES += [TauRule(sigma=3.0, tau=1.5, norm=1), TauRule(sigma=3.0, tau=1.9, norm=2)]


@pytest.mark.parametrize("voting", RULES)
def test_neighbours_are_no_farther_than_every_pair_of_ballots(voting: LabelRule) -> None:
    each, ballot = ballots(voting), voting.ballot(FOUR)
    apart = ((each[:, None] - each) ** 2).sum(axis=-1).max()
    assert squared_change(ballot) == pytest.approx(apart, rel=1e-12)
    alone = (each**2).sum(axis=-1).max()
    assert squared_change(ballot, Unit.PHONE) == pytest.approx(alone, rel=1e-12)


def two_outcomes(here: Any, there: Any, order: float) -> Any:
    """Of [x + N(0, 1) > 0] and its neighbour, the larger of both directions."""
    from scipy.special import log_ndtr

    worst = np.zeros(np.broadcast(here, there).shape)
    for a, b in ((here, there), (there, here)):
        parts = [order * log_ndtr(s * a) + (1 - order) * log_ndtr(s * b) for s in (1, -1)]
        worst = np.maximum(worst, np.logaddexp(*parts) / (order - 1))
    return worst


@settings(max_examples=25, deadline=None)
@given(
    st.sampled_from(RULES),
    st.lists(st.floats(0, 9), min_size=4, max_size=4),
    st.sampled_from([1.5, 4.0, 20.0]),
    st.sampled_from([Unit.REPLACED_PHONE, Unit.PHONE]),
)
@example(RULES[0], [0.0, 9.0, 4.5, 2.5], 1.5, Unit.PHONE)
def test_no_pair_of_ballots_costs_more_than_exact_outcomes_say(
    voting: LabelRule, votes: list[float], order: float, unit: Unit
) -> None:
    each = ballots(voting)
    pairs = each[:, None] - (np.zeros((1, 4)) if unit is Unit.PHONE else each)
    pairs = np.concatenate([pairs, -pairs])
    distances = (np.array(votes) - 4.5) / voting.sigma
    cost = two_outcomes(distances, distances + pairs / voting.sigma, order).sum(axis=-1).max()
    found = voting.divergences(np.array([votes]), 9, [order], Method.EXACT, unit)[1][0, 0]
    usual = voting.divergences(np.array([votes]), 9, [order], Method.INDEPENDENT, unit)[1][0, 0]
    gaussian = gaussian_divergence(voting.ballot(FOUR), voting.sigma, [order], unit)[0]
    assert cost - 1e-9 <= found <= usual <= gaussian * (1 + 1e-12)
    if isinstance(voting, BinaryRule):
        steps = np.array([[1.0], [-1.0]]) / voting.sigma
        alone = two_outcomes(distances, distances + steps, order).max(axis=0).sum()
        assert found == pytest.approx(alone, rel=1e-6, abs=1e-9)
        # A ballot that is replaced may raise some labels and lower others; one that comes or goes
        # moves all one way, which need not be the worst for each.
        if unit is Unit.REPLACED_PHONE:
            assert found == pytest.approx(cost, rel=1e-6, abs=1e-9)


def test_binary_votes_add_up_the_bounds_of_labels() -> None:
    voting, votes = BinaryRule(sigma=SEVEN), np.array([[0.0, 3.0, 50.0, 25.0]])
    dependent = voting.divergences(votes, 50, ORDERS, Method.DEPENDENT)[1][0]
    exact = voting.divergences(votes, 50, ORDERS, Method.EXACT)[1][0]
    usual = bit_divergence(SEVEN, ORDERS)
    expected = sum(
        np.minimum(dependent_divergence(log_q, 7.0, ORDERS)[0], usual)
        for log_q in log_other_answer(votes[0], 25.0, SEVEN)
    )
    np.testing.assert_allclose(dependent, np.minimum(expected, 4 * usual))
    each = check_divergence(votes[0], 25.0, SEVEN, ORDERS).sum(axis=0)
    np.testing.assert_allclose(exact, np.minimum(each, 4 * usual), rtol=1e-6)


def test_one_way_is_cheaper_than_the_other() -> None:
    """The published bound is of the real votes against neighbours: σ = 7, a gap of 50, λ = 10."""
    one, none = [10.0], np.zeros((1, 1))
    voting = BinaryRule(sigma=SEVEN)
    dependent = voting.divergences(none, 50, one, Method.DEPENDENT)[1][0, 0]
    exact = voting.divergences(none, 50, one, Method.EXACT)[1][0, 0]
    assert dependent == pytest.approx(6.9e-4, abs=5e-6)
    assert exact == pytest.approx(7.8e-4, abs=5e-6)


@pytest.mark.parametrize("method", Method)
def test_checks_are_paid_by_every_query_and_answers_where_they_were_given(method: Method) -> None:
    plain = BinaryRule(sigma=9.0)
    asking = BinaryRule(sigma=9.0, threshold=40.0, check_sigma=12.0)
    votes = np.array([[3.0, 30.0], [25.0, 50.0]])
    answered = np.array([[True, False], [False, False]])
    asked, paid = asking.divergences(votes, 50, ORDERS, method, answered=answered)
    assert (plain.divergences(votes, 50, ORDERS, method)[0] == 0).all()
    first = plain.divergences(votes[:, :1], 50, ORDERS, method)[1][0]
    np.testing.assert_allclose(paid, [first, np.zeros(len(ORDERS))], rtol=1e-9, atol=1e-10)
    # Of max{V, n − V} = 47 and 30 against 40, and so on: checks are of labels too.
    numbers = BinaryRule(sigma=12.0)
    same = numbers.divergences(np.maximum(votes, 50 - votes) - 15, 50, ORDERS, method)[1]
    np.testing.assert_allclose(asked, same, rtol=1e-9, atol=1e-10)
    assert (asked <= 2 * ORDERS / (2 * 144) + 1e-9).all()


@pytest.mark.parametrize("method", Method)
def test_a_powerset_checks_the_largest_count_once(method: Method) -> None:
    voting = PowersetRule(sigma=7.0, threshold=40.0, check_sigma=12.0)
    asked, paid = voting.divergences(NOBODY, ORDERS, method)
    assert (asked <= ORDERS / (2 * 144)).all()
    assert (paid <= ORDERS / 49).all()
    left_out = voting.divergences(NOBODY, ORDERS, method, Unit.PHONE)[1]
    assert (left_out <= ORDERS / 98 + ERROR).all()


def test_clipping_never_costs_more_than_not_clipping_and_answered_labels_bound_it() -> None:
    votes = np.full((1, 20), 25.0)
    binary = BinaryRule(sigma=7.0).divergences(votes, 50, ORDERS, Method.INDEPENDENT)[1]
    clipped = TauRule(sigma=7.0, tau=1.8, norm=2)
    usual = clipped.divergences(votes, 50, ORDERS, Method.INDEPENDENT)[1]
    assert (usual < binary / 3).all()
    one = np.zeros((1, 20), dtype=np.bool_)
    one[0, 3] = True
    alone = clipped.divergences(votes, 50, ORDERS, Method.INDEPENDENT, answered=one)[1]
    np.testing.assert_allclose(alone[0], bit_divergence(7.0, ORDERS), rtol=1e-6)


def test_what_is_out_of_range_is_named() -> None:
    with pytest.raises(InvalidInputError, match="from 0 to 50"):
        BinaryRule(sigma=1.0).divergences(np.full((1, 2), 51), 50, ORDERS, Method.EXACT)
    with pytest.raises(InvalidParametersError, match="an Approval"):
        TauRule(sigma=1.0, tau=2.0).divergences(np.ones((1, 4)), 9, ORDERS, Method.EXACT)
    with pytest.raises(InvalidParametersError, match="orders"):
        BinaryRule(sigma=1.0).divergences(np.ones((1, 2)), 50, [1.0], Method.EXACT)
    with pytest.raises(InvalidParametersError, match="epsilon"):
        classic_rho(0.0, 1e-5)
