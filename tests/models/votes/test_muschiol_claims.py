"""Costs that Muschiol (2021) claims: its table to the printed digit, its theorems at 50 digits."""

from __future__ import annotations

import math
from typing import Any

import mpmath
import numpy as np
import pytest
from support.muschiol_theorem import theorem

from earshot_models.votes.costs import muschiol
from earshot_models.votes.costs.costs import epsilon
from earshot_models.votes.costs.muschiol import PrintedRule as Rule
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

VOTES = [[45.0, 1.5, 0.25, 3, 0], [30.0, 12, 9.5, 0, 0], [2.0, 1, 0, 0, 1.5], [50.0, 49, 0, 0, 0]]
ORDERS = [2.0, 3.0, 7.0]


@pytest.mark.parametrize(
    ("answered", "printed", "best"), [(2000, 418.4, 321.4), (5000, 1018.4, 691.9)]
)
def test_the_data_independent_column_to_the_printed_digit(
    answered: int, printed: float, best: float
) -> None:
    rule = Rule(0.2)
    assert round(muschiol.independent(rule, answered, answered), 1) == printed
    with mpmath.workdps(50):
        slope, log = mpmath.mpf(3 * answered) / 30, mpmath.log(mpmath.mpf(10) ** 8)
        exact = 2 * slope + log
        # No order of the grid is better, as ε grows with λ from 1 + √(ln(1/δ)/slope) < 2 on.
        assert mpmath.sqrt(log / slope) < 1
        assert muschiol.independent(rule, answered, answered) == pytest.approx(float(exact))
        assert round(float(slope + 2 * mpmath.sqrt(slope * log)), 1) == best
    fine = np.linspace(1.001, 4, 40_001)
    spent = answered * muschiol.claimed_threshold(rule.sigma, fine)
    assert round(epsilon(spent, fine, muschiol.DELTA, classic=True)[0], 1) == best


@pytest.mark.parametrize(
    ("asked", "answered", "printed"),
    [
        (3111, 2000, 522.1),
        (4494, 2000, 568.2),
        (3180, 2000, 524.4),
        (4446, 2000, 566.6),
        (7779, 5000, 1277.7),
        (10974, 5000, 1384.2),
    ],
)
def test_a_check_of_every_sample_that_was_asked(asked: int, answered: int, printed: float) -> None:
    """For a number of samples that the table does not give, about 64 % and 45 % answered."""
    assert round(muschiol.independent(Rule(0.2, 0.4), asked, answered), 1) == printed
    assert round(muschiol.independent(Rule(None, 0.6), asked, answered), 1) == printed


def threshold(row: list[float], share: float | None) -> Any:
    if share is not None:
        return mpmath.mpf(share) * 50
    ordered = sorted(row, reverse=True)
    gaps = [ordered[i] - ordered[i + 1] for i in range(len(row) - 1)]
    at = gaps.index(max(gaps))
    return mpmath.mpf(ordered[at] + ordered[at + 1]) / 2


@pytest.mark.parametrize("share", [0.2, 0.4, 0.6, None])
def test_costs_by_votes_at_50_digits(share: float | None) -> None:
    rule = Rule(share, 0.6)
    answers = muschiol.claimed_answers(rule, np.array(VOTES), ORDERS)
    asked = muschiol.claimed_checks(rule, np.array(VOTES), ORDERS)
    log_q = rule.log_q(np.array(VOTES))
    cheaper = 0
    with mpmath.workdps(50):
        variance, check_variance = mpmath.mpf("0.3") * 50, mpmath.mpf("0.6") * 50
        for place, row in enumerate(VOTES):
            none = mpmath.mpf(1)
            for each in row:
                none *= mpmath.ncdf(abs(each - threshold(row, share)) / mpmath.sqrt(variance))
            beyond = abs(max(row) - mpmath.mpf("0.6") * 50) / mpmath.sqrt(check_variance)
            assert log_q[place] == pytest.approx(float(mpmath.log(1 - none)), rel=1e-9)
            for column, order in enumerate(ORDERS):
                expected = theorem(1 - none, 3, variance, order)
                assert answers[place, column] == pytest.approx(float(expected), rel=1e-7)
                cheaper += expected < order / 10
                of_check = theorem(mpmath.ncdf(-beyond), 1, check_variance, order)
                assert asked[place, column] == pytest.approx(float(of_check), rel=1e-7)
    assert cheaper or share == 0.2, "no votes here are cheaper than their noise"


def test_a_claim_adds_up_checks_of_all_and_answers_of_some() -> None:
    votes, rule = np.array(VOTES * 20), Rule(0.4, 0.6)
    answered = votes[:, 0] > 25
    found = muschiol.claim(rule, votes, answered)
    divergences = muschiol.claimed_checks(rule, votes).sum(axis=0)
    divergences += muschiol.claimed_answers(rule, votes)[answered].sum(axis=0)
    log = math.log(1e8)
    each = [d + log / (o - 1) for d, o in zip(divergences, muschiol.ORDERS, strict=True)]
    assert found.dependent == pytest.approx(min(each))
    assert found.dependent <= found.independent == muschiol.independent(rule, 80, 60)
    assert found.q == pytest.approx(np.exp(rule.log_q(votes[answered])).mean())
    plain = muschiol.claim(Rule(0.4), votes)
    assert plain.independent == muschiol.independent(Rule(0.4), 80, 80)


def test_the_threshold_of_votes_without_noise_jumps_with_one_of_them() -> None:
    moved = muschiol.raw_thresholds(
        np.array([[50, 25, 0, 0, 0], [50, 26, 0, 0, 0], [20, 10, 0, 0, 0]])
    )
    assert moved.tolist() == [37.5, 13.0, 15.0]


def test_what_is_out_of_range_is_named() -> None:
    with pytest.raises(InvalidInputError, match="two labels"):
        muschiol.raw_thresholds(np.ones((3, 1)))
    with pytest.raises(InvalidParametersError, match="variance"):
        muschiol.deviation(0.0, 50)
    with pytest.raises(InvalidParametersError, match="teachers"):
        _ = Rule(0.2, teachers=0).sigma
    with pytest.raises(InvalidParametersError, match="answered"):
        muschiol.claim(Rule(0.2, 0.6), np.array(VOTES), np.zeros(4, dtype=bool))
