"""The noise of sums of votes, and what they cost."""

from __future__ import annotations

import math

import numpy as np
import pytest

from earshot_protocol.privacy.divergences import renyi
from earshot_protocol.privacy.mechanisms import SumMechanism, Unit
from earshot_protocol.voting.teacher_ballots import Agreement, OneHot, Weighted
from earshot_protocol.voting.vote_sums import VoteSum


def test_it_is_a_mechanism_of_sums() -> None:
    mechanism: SumMechanism = VoteSum(OneHot(10), 200, 40.0, 1e-6, 225)
    assert mechanism.least_entry == 0
    assert mechanism.largest_entry == 1
    assert mechanism.largest_sum == 200
    assert mechanism.share_bound(1e-12) > 1


@pytest.mark.parametrize(
    ("ballot", "unit", "per_query"),
    [
        (OneHot(10), Unit.PHONE, 1.0),
        (OneHot(10), Unit.REPLACED_PHONE, 2.0),
        (OneHot(10), Unit.RECORDING, 2.0),
        (Agreement(), Unit.PHONE, 1.0),
        (Agreement(), Unit.REPLACED_PHONE, 1.0),
        (Weighted(OneHot(10), 3), Unit.PHONE, 9.0),
    ],
)
def test_a_query_costs_what_gaussian_noise_would(
    ballot: object, unit: Unit, per_query: float
) -> None:
    """λ B Δ² / 2σ², and a little more for Skellam noise, which vanishes as noise grows."""
    deviation, queries = 400.0, 7
    mechanism = VoteSum(ballot, queries, deviation, 1e-6, 100)  # type: ignore[arg-type]
    for order in (2.0, 8.0):
        gaussian = order * queries * per_query / (2 * deviation**2)
        spent = float(renyi(mechanism.event(unit), np.array([order]))[0])
        assert gaussian <= spent <= gaussian * 1.01


def test_the_shares_add_up_to_the_noise_that_is_claimed() -> None:
    mechanism = VoteSum(OneHot(4), 500, 6.0, 1e-6, 30)
    random = np.random.default_rng(5).bytes
    shape = mechanism.shape
    total = sum(mechanism.noise_share(shape, random) for _ in range(30))
    assert total.shape == (500, 4)
    values, law = np.asarray(total).ravel(), mechanism.noise(30)
    # Kolmogorov and Smirnov against the exact law; 1.63 is its 1 % point.
    from scipy.stats import skellam

    grid = np.arange(-40, 41)
    exact = skellam(18.0, 18.0).cdf(grid)
    found = np.searchsorted(np.sort(values), grid, side="right") / values.size
    assert np.abs(found - exact).max() * math.sqrt(values.size) < 1.63
    assert law.deviation == pytest.approx(6.0)
    # Fewer phones than are counted on add less, and more add more.
    assert mechanism.noise(60).deviation == pytest.approx(6.0 * math.sqrt(2))


def test_a_teacher_that_vanishes_costs_nothing() -> None:
    event = VoteSum(Weighted(OneHot(10), 0), 5, 40.0, 1e-6, 100).event(Unit.REPLACED_PHONE)
    assert event.l1 == event.l2 == 0.0
    assert not renyi(event, np.array([2.0, 64.0])).any()
