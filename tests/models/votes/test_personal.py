"""Budgets of their own: the tables of Mühl (2021), and nobody beyond what it has."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.refusals import refused

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.dependent import dependent_divergence, log_other_winner
from earshot_models.votes.costs.personal import (
    OwnerGroup,
    OwnersAccount,
    QueryCost,
    concentration,
    copies,
    expected_labels,
    frequencies,
    weights,
)
from earshot_models.votes.rules.confident import ConfidentRule
from earshot_models.votes.rules.gnmax import GNMaxRule
from earshot_models.votes.rules.lnmax import LNMax
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import ZeroConcentrated

TABLES = {
    # Tables 6.4 and 6.5 of Mühl 2021: upsampled and weighted, by R and the share of R.
    ("MNIST", 221, 0.03): {
        (1.5, 25): (271, 267), (1.5, 50): (338, 340), (1.5, 75): (412, 408),
        (2, 25): (335, 329), (2, 50): (477, 481), (2, 75): (655, 655),
        (3, 25): (462, 459), (3, 50): (820, 819), (3, 75): (1258, 1264),
        (5, 25): (775, 758), (5, 50): (1683, 1682),
    },
    ("Adult", 195, 0.07): {
        (1.5, 25): (239, 242), (1.5, 50): (296, 299), (1.5, 75): (359, 360),
        (2, 25): (292, 294), (2, 50): (419, 418), (2, 75): (561, 564),
        (3, 25): (404, 408), (3, 50): (706, 706), (3, 75): (1080, 1079),
        (5, 25): (668, 671), (5, 50): (1426, 1427),
    },
}  # fmt: skip
CONFIDENT = ConfidentRule(sigma=40.0, threshold=200.0, check_sigma=150.0)


def cost_of(sigma: float, check: float | None = None) -> QueryCost:
    """Return what a query costs by this noise, and behind a check of that."""
    return QueryCost.of(sigma, None if check is None else ConfidentCheck(25.0, check))


@pytest.mark.parametrize("table", TABLES)
def test_labels_of_the_thesis_are_a_closed_form(table: tuple[str, int, float]) -> None:
    _, base, tolerance = table
    for (ratio, percent), (upsampled, weighted) in TABLES[table].items():
        groups = [OwnerGroup(1.0, 4 * (100 - percent)), OwnerGroup(ratio, 4 * percent)]
        by_weight = expected_labels(base, groups, weights(groups), 1e-5)
        assert by_weight == pytest.approx(weighted, rel=tolerance)
        times = copies(groups)
        mean = float(times @ [1 - percent / 100, percent / 100])
        by_copies = expected_labels(base, groups, times, 1e-5, mean)
        assert by_copies == pytest.approx(by_weight), "both are as loud for their noise"
        assert by_copies == pytest.approx(upsampled, rel=tolerance)


def test_weights_are_one_on_average_and_in_the_ratio_of_budgets() -> None:
    groups = [OwnerGroup(1.0, 150), OwnerGroup(1.5, 60), OwnerGroup(4.0, 40)]
    found = weights(groups)
    assert found @ [150, 60, 40] == pytest.approx(250)
    np.testing.assert_allclose(found / found[0], [1, 1.5, 4])
    half = weights([OwnerGroup(1.0, 125), OwnerGroup(5.0, 125)])
    np.testing.assert_allclose(half, [1 / 3, 5 / 3])


def test_copies_are_the_smallest_that_have_the_ratio() -> None:
    assert copies([OwnerGroup(1.0, 10), OwnerGroup(1.5, 10)]).tolist() == [2, 3]
    assert copies([OwnerGroup(0.2, 10), OwnerGroup(0.6, 10), OwnerGroup(1.0, 2)]).tolist() == [
        1,
        3,
        5,
    ]
    with pytest.raises(InvalidParametersError, match="ratios of whole numbers"):
        copies([OwnerGroup(1.0, 10), OwnerGroup(math.pi, 10)])


def test_the_one_who_may_spend_more_votes_twice_the_square_as_often() -> None:
    np.testing.assert_allclose(frequencies([OwnerGroup(1.0, 9), OwnerGroup(3.0, 9)]), [1 / 18, 1.0])
    np.testing.assert_allclose(frequencies([OwnerGroup(2.0, 9), OwnerGroup(2.0, 9)]), [1.0, 1.0])


def test_noise_and_threshold_grow_with_the_votes() -> None:
    assert CONFIDENT.times(2.5) == ConfidentRule(sigma=100.0, threshold=500.0, check_sigma=375.0)
    assert GNMaxRule(sigma=40.0).times(0.5) == GNMaxRule(sigma=20.0)


def test_a_groups_bound_takes_real_noise_for_the_outcome_and_its_own_for_the_rest() -> None:
    """By the formula of section 5.2.2: μ₂ = (σ/Δ)√ln(1/q), ε_i = μ_i Δ²/σ²."""
    votes, sigma, delta, order = np.array([[180.0, 40.0, 30.0]]), 40.0, 1.6, 5
    found = GNMaxRule(sigma=sigma).divergences(votes, [order], Method.DEPENDENT, delta).answered
    with mpmath.workdps(50):
        q = sum(mpmath.erfc(mpmath.mpf(gap) / (2 * sigma)) for gap in (140, 150)) / 2
        mu2 = sigma / mpmath.mpf(delta) * mpmath.sqrt(mpmath.log(1 / q))
        mu1 = mu2 + 1
        eps1, eps2 = (mu * mpmath.mpf(delta) ** 2 / sigma**2 for mu in (mu1, mu2))
        a = (1 - q) / (1 - (q * mpmath.exp(eps2)) ** (1 - 1 / mu2))
        b = mpmath.exp(eps1) / q ** (1 / (mu1 - 1))
        total = (1 - q) * a ** (order - 1) + q * b ** (order - 1)
        expected = min(mpmath.log(total) / (order - 1), order * mpmath.mpf(delta) ** 2 / sigma**2)
    assert found[0, 0] == pytest.approx(float(expected), rel=1e-9)
    logs = log_other_winner(votes, sigma)
    assert found[0, 0] == dependent_divergence(logs, sigma / delta, [order])[0, 0]


def test_what_noise_may_spend_is_the_inverse_of_what_it_costs() -> None:
    for epsilon in (0.1, 1.0, 20.0):
        rho = float(concentration(epsilon, 1e-5))
        assert rho + 2 * math.sqrt(rho * math.log(1e5)) == pytest.approx(epsilon, rel=1e-12)


# ------------------------------------------------------------------------------- owners' accounts


@settings(max_examples=examples(60), deadline=None)
@given(
    st.lists(st.floats(0.05, 6), min_size=1, max_size=6),
    st.lists(st.floats(0, 4), min_size=6, max_size=6),
    st.lists(st.booleans(), min_size=1, max_size=60),
    st.sampled_from([cost_of(9.0, 12.0), cost_of(7.0)]),
)
def test_no_owner_spends_more_than_its_own_budget(
    budgets: list[float],
    loud: list[float],
    answers: list[bool],
    cost: QueryCost,
) -> None:
    """Whatever weights are, and whatever is answered; reckoned anew from every query's event."""
    account = OwnersAccount(np.array(budgets), 1e-5)
    psi = np.array(loud[: len(budgets)])
    paid = np.zeros(len(budgets))
    for answered in answers:
        voting = account.willing(cost, psi)
        account.pay(cost, voting, answered)
        paid += voting**2 * (cost.check + cost.answer * answered)
    assert (account.spent <= budgets).all()
    for rho, budget, spent in zip(paid.tolist(), budgets, account.spent.tolist(), strict=True):
        by_phone = composed_epsilon([ZeroConcentrated(rho)], 1e-5)
        assert by_phone <= budget * 1.002, "a coarser grid of orders"
        # The phone's orders end, and the best one for next to nothing lies beyond them.
        assert spent - 1e-12 <= by_phone <= spent * 1.002 + 1e-8


def test_who_is_spent_vanishes_and_others_go_on() -> None:
    account = OwnersAccount(np.array([0.5, 0.5, 2.0]), 1e-5, records=1000)
    cost, voted = cost_of(20.0), []
    for _ in range(100):
        voting = account.willing(cost, np.array([1.0, 2.0, 2.0]))
        account.pay(cost, voting, answered=True)
        voted.append(voting > 0)
    times = np.sum(voted, axis=0)
    assert times[0] == pytest.approx(4 * times[1], abs=4), "half as loud is four times as cheap"
    assert times[2] > 10 * times[1]
    assert (np.diff(np.array(voted).astype(int), axis=0) <= 0).all()
    assert account.spent[2] <= 2.0


def test_a_check_that_fails_costs_no_answer_but_both_must_be_affordable() -> None:
    cost = cost_of(10.0, 60.0)
    assert cost == (1 / 7200, 1 / 100)
    budget = 1.0
    account = OwnersAccount(np.array([budget]), 1e-5)
    asked = 0
    while account.willing(cost, np.ones(1))[0]:
        account.pay(cost, np.ones(1), answered=False)
        asked += 1
    rho = float(concentration(budget, 1e-5))
    assert asked > (rho - cost.answer) / cost.check, "the tight conversion allows a little more"
    assert account.spent[0] < budget


def test_a_payment_that_an_owner_cannot_make_is_refused_and_not_counted() -> None:
    account = OwnersAccount(np.array([5.0, 0.01]), 1e-5)
    with pytest.raises(InvalidParametersError, match=r"owner 1 of budget 0\.01 cannot pay"):
        account.pay(cost_of(10.0), np.ones(2), answered=True)
    assert not account.spent.any()


test_what_is_out_of_range_is_named = refused(
    InvalidParametersError,
    ("epsilon", OwnerGroup, 0.0, 10),
    ("at least 2", OwnerGroup, 1.0, 1),
    ("at least one", weights, []),
    ("without a budget", OwnersAccount, np.array([1.0, 0.0]), 1e-5),
    ("positive and finite", OwnersAccount, np.array([math.nan]), 1e-5),
    ("every owner", OwnersAccount, np.array([]), 1e-5),
    ("below one in 100 records", lambda: OwnersAccount(np.ones(2), 0.01, records=100)),
    ("delta", OwnersAccount, np.ones(2), 1.0),
    ("weights", OwnersAccount(np.ones(2), 1e-5).willing, cost_of(1.0), np.ones(3)),
    ("weights", OwnersAccount(np.ones(1), 1e-5).willing, cost_of(1.0), -np.ones(1)),
    ("factor", GNMaxRule(sigma=1.0).times, 0.0),
    ("sensitivities", expected_labels, 10, [OwnerGroup(1.0, 5)], np.ones(2), 1e-5),
    ("sensitivities", expected_labels, 10, [OwnerGroup(1.0, 5)], np.zeros(1), 1e-5),
    ("gamma", LNMax, math.inf),
)
