"""What winners cost, query by query: sums of this file, and figures of the papers."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from support.refusals import refused

from earshot_models.votes.costs import costs, laplace
from earshot_models.votes.costs.costs import (
    Method,
    epsilon,
    epsilons,
    event,
    spent,
)
from earshot_models.votes.costs.dependent import (
    dependent_divergence,
    log_other_answer,
    log_other_winner,
)
from earshot_models.votes.costs.outcomes import check_divergence, outcome_divergence
from earshot_models.votes.rules.confident import ConfidentRule
from earshot_models.votes.rules.gnmax import GNMaxRule
from earshot_models.votes.rules.interactive import InteractiveRule
from earshot_models.votes.rules.lnmax import LNMaxRule
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.divergences import ORDERS as PHONE_ORDERS
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_server.accounting.accountant import composed

ORDERS = np.array([1.5, 2.0, 5.0, 20.0])
VOTES = np.array([[230.0, 20.0, 0.0], [100.0, 90.0, 60.0], [140.0, 60.0, 50.0], [0.0, 20.0, 230.0]])
CONFIDENT = ConfidentRule(sigma=40.0, threshold=150.0, check_sigma=80.0)
INTERACTIVE = InteractiveRule(sigma=40.0, threshold=150.0, check_sigma=80.0, confidence=0.9)
METHODS = list(Method)


def test_noise_alone_costs_a_check_half_and_an_answer_all_of_it() -> None:
    found = CONFIDENT.divergences(VOTES, ORDERS, weight=2.0)
    np.testing.assert_allclose(found.asked, np.tile(4 * ORDERS / (2 * 80.0**2), (4, 1)))
    np.testing.assert_allclose(found.answered, np.tile(4 * ORDERS / 40.0**2, (4, 1)))
    alone = GNMaxRule(sigma=40.0).divergences(VOTES, ORDERS)
    assert not alone.asked.any()
    np.testing.assert_allclose(alone.answered, np.tile(ORDERS / 40.0**2, (4, 1)))


@pytest.mark.parametrize("weight", [0.5, 1.0, 3.0])
def test_each_method_is_that_of_its_own_module(weight: float) -> None:
    exact = CONFIDENT.divergences(VOTES, ORDERS, Method.EXACT, weight)
    most = VOTES.max(axis=1)
    np.testing.assert_allclose(
        exact.answered, outcome_divergence(VOTES, 40.0, ORDERS, weight), rtol=1e-9
    )
    np.testing.assert_allclose(exact.asked, check_divergence(most, 150.0, 80.0, ORDERS, weight))
    theirs = CONFIDENT.divergences(VOTES, ORDERS, Method.DEPENDENT, weight)
    np.testing.assert_allclose(
        theirs.answered, dependent_divergence(log_other_winner(VOTES, 40.0), 40 / weight, ORDERS)
    )
    logs = log_other_answer(most, 150.0, 80.0)
    np.testing.assert_allclose(
        theirs.asked, dependent_divergence(logs, math.sqrt(2) * 80 / weight, ORDERS)
    )
    independent = CONFIDENT.divergences(VOTES, ORDERS, weight=weight)
    for method in (exact, theirs):
        assert (method.asked <= independent.asked * (1 + 1e-9) + 1e-9).all()
        assert (method.answered <= independent.answered * (1 + 1e-9) + 1e-9).all()


def test_a_students_check_looks_at_what_the_student_did_not_expect() -> None:
    scores = np.array([[0.5, 0.25, 0.25]] * 4)
    found = INTERACTIVE.divergences(VOTES, ORDERS, Method.EXACT, scores=scores)
    expected = check_divergence(
        np.array([230 - 125.0, 90 - 62.5, 140 - 125.0, 230 - 62.5]), 150.0, 80.0, ORDERS
    )
    np.testing.assert_allclose(found.asked, expected)
    alone = CONFIDENT.divergences(VOTES, ORDERS, Method.EXACT)
    np.testing.assert_allclose(found.answered, alone.answered)


def test_checks_are_paid_by_all_and_answers_by_those_that_were_given() -> None:
    voted = np.array([True, False, False, True])
    for method in METHODS:
        each = CONFIDENT.divergences(VOTES, ORDERS, method)
        total = spent(each, voted)
        by_hand = each.asked[0] + each.answered[0]
        np.testing.assert_allclose(total[0], by_hand)
        by_hand = by_hand + each.asked[1] + each.asked[2]
        np.testing.assert_allclose(total[2], by_hand)
        np.testing.assert_allclose(total[3], by_hand + each.asked[3] + each.answered[3])
        only = CONFIDENT.divergences(VOTES, ORDERS, method, voted=voted)
        assert not only.answered[~voted].any(), "what was not answered is not worked out"
        np.testing.assert_allclose(only.answered[voted], each.answered[voted], rtol=1e-9)


def test_both_conversions_are_those_of_the_papers() -> None:
    with mpmath.workdps(50):
        order, divergence, delta = mpmath.mpf(5), mpmath.mpf("0.3"), mpmath.mpf("1e-5")
        classic = divergence + mpmath.log(1 / delta) / (order - 1)
        tight = (
            divergence
            + mpmath.log((order - 1) / order)
            - (mpmath.log(delta) + mpmath.log(order)) / (order - 1)
        )
    curve = np.array([0.09, 0.12, 0.3, 1.2])
    at = ORDERS == 5.0
    assert epsilon(curve[at], ORDERS[at], 1e-5, classic=True)[0] == pytest.approx(float(classic))
    assert epsilon(curve[at], ORDERS[at], 1e-5)[0] == pytest.approx(float(tight))
    assert epsilon(curve, ORDERS, 1e-5) < epsilon(curve, ORDERS, 1e-5, classic=True)
    several = epsilons(np.stack([curve, 2 * curve]), ORDERS, 1e-5)
    assert several[1] == epsilon(2 * curve, ORDERS, 1e-5)[0]
    assert epsilons(np.zeros(4), ORDERS, 0.9999) == 0


def test_the_closed_form_of_the_classic_conversion() -> None:
    """R = λρ at the best order is ε = ρ + 2√(ρ ln 1/δ)."""
    orders = np.geomspace(1.01, 1000, 20_000)
    rho = 0.0123
    expected = rho + 2 * math.sqrt(rho * math.log(1e5))
    found, order = epsilon(rho * orders, orders, 1e-5, classic=True)
    assert found == pytest.approx(expected, rel=1e-6)
    assert order == pytest.approx(1 + math.sqrt(math.log(1e5) / rho), rel=1e-2)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("classic", [False, True])
def test_few_orders_first_and_then_more_around_the_best_find_it(
    method: Method, classic: bool
) -> None:
    generator = np.random.default_rng(1)
    votes = generator.multinomial(250, [0.8, 0.1, 0.05, 0.05], 120).astype(float)
    voted = CONFIDENT.outcomes(votes, generator.bytes) != NONE
    found, _ = CONFIDENT.spent_epsilon(votes, voted, 1e-5, method, classic=classic)
    orders = np.geomspace(1.5, 250, 400)
    each = CONFIDENT.divergences(votes, orders, method, voted=voted)
    best, _ = epsilon((each.asked + each.answered).sum(axis=0), orders, 1e-5, classic=classic)
    assert best * (1 - 1e-6) <= found <= best * 1.005


@pytest.mark.parametrize("method", METHODS)
def test_ledger_and_library_know_what_votes_cost(method: Method) -> None:
    each = CONFIDENT.divergences(VOTES, PHONE_ORDERS, method)
    one = event((each.asked + each.answered).sum(axis=0), PHONE_ORDERS)
    expected, _ = epsilon(3 * np.array(one.divergences), PHONE_ORDERS, 1e-6)
    assert composed_epsilon([one] * 3, 1e-6) == pytest.approx(expected, rel=1e-9)
    assert composed([one] * 3, 1e-6).epsilon == pytest.approx(expected, rel=1e-9)


# ------------------------------------------------------------------------------------ LNMax


@pytest.mark.parametrize("gamma", [0.01, 0.05, 0.3])
@pytest.mark.parametrize("gap", [0, 10, 60, 250])
def test_lnmax_is_the_moments_bound_of_the_paper(gamma: float, gap: int) -> None:
    votes = np.array([[125.0 + gap / 2, 125.0 - gap / 2]])
    with mpmath.workdps(50):
        g = mpmath.mpf(gamma)
        q = min(mpmath.mpf(1), (2 + g * gap) / (4 * mpmath.exp(g * gap)))
        logs = laplace.log_other_winner(votes, gamma)
        assert logs[0] == pytest.approx(float(mpmath.log(q)), abs=1e-12)
        for order in ORDERS:
            mu = mpmath.mpf(order) - 1
            response = 1 / (1 + mpmath.exp(-2 * g))
            flat = mpmath.log(
                response**order * (1 - response) ** (-mu)
                + (1 - response) ** order * response ** (-mu)
            )
            expected = flat / mu
            if q < 1 / (mpmath.exp(2 * g) + 1):
                likely = ((1 - q) / (1 - mpmath.exp(2 * g) * q)) ** mu
                moment = mpmath.log((1 - q) * likely + q * mpmath.exp(2 * g * mu))
                expected = min(expected, moment / mu)
            found = laplace.dependent_divergence(logs, gamma, [order])[0, 0]
            assert found == pytest.approx(float(expected), rel=1e-8, abs=1e-13)


def laplace_law(gap: float, gamma: float) -> list[mpmath.mpf]:
    """Of two classes: the difference of two Laplace variables of scale 1/γ exceeds the gap."""
    lost = (2 + gamma * mpmath.mpf(gap)) / (4 * mpmath.exp(gamma * mpmath.mpf(gap)))
    return [1 - lost, lost]


@pytest.mark.parametrize("gap", [4, 30, 100])
def test_lnmax_of_two_classes_costs_no_more_than_its_bound(gap: int) -> None:
    gamma = 0.05
    here, there = laplace_law(gap, gamma), laplace_law(gap - 2, gamma)
    for order in (2.0, 8.0):
        total = sum(p**order * q ** (1 - order) for p, q in zip(here, there, strict=True))
        exact = float(mpmath.log(total) / (order - 1))
        votes = np.array([[125.0 + gap / 2, 125.0 - gap / 2]])
        bound = (
            LNMaxRule(sigma=1 / gamma).divergences(votes, [order], Method.DEPENDENT).answered[0, 0]
        )
        alone = LNMaxRule(sigma=1 / gamma).divergences(votes, [order]).answered[0, 0]
        assert exact <= bound * (1 + 1e-9)
        assert bound <= alone <= 2 * gamma**2 * order
        assert alone <= 2 * gamma


test_what_is_out_of_range_is_named = refused(
    InvalidParametersError,
    ("must not be negative", GNMaxRule(sigma=1.0).divergences, -VOTES, ORDERS),
    ("weight", lambda: GNMaxRule(sigma=1.0).divergences(VOTES, ORDERS, weight=0.0)),
    ("orders", GNMaxRule(sigma=1.0).divergences, VOTES, [1.0], Method.DEPENDENT),
    ("scores", lambda: GNMaxRule(sigma=1.0).divergences(VOTES, ORDERS, scores=VOTES)),
    ("scores", INTERACTIVE.divergences, VOTES, ORDERS),
    ("method=exact", LNMaxRule(sigma=1.0).divergences, VOTES, ORDERS, Method.EXACT),
    ("voted", lambda: GNMaxRule(sigma=1.0).divergences(VOTES, ORDERS, voted=np.ones(4))),
    ("delta", epsilon, np.ones(4), ORDERS, 0.0),
    ("log_q", laplace.dependent_divergence, 0.1, 1.0, [2.0]),
    ("orders", laplace.dependent_divergence, -1.0, 1.0, [1.0]),
    ("gamma", laplace.log_other_winner, VOTES, 0.0),
)


def test_the_orders_offered_are_ascending() -> None:
    for orders in (costs.ORDERS, costs.COARSE):
        assert (np.diff(orders) > 0).all()
