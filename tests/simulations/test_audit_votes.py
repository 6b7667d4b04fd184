"""The audit of a curator's votes: laws of outcomes by other ways, what it proves and catches."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.thresholds import threshold_divergences
from earshot_models.votes.rules.binary import BinaryVoting
from earshot_models.votes.rules.gnthreshold_adaptive import AdaptiveThreshold, above_widest_gap
from earshot_models.votes.rules.grid_threshold import GridThreshold
from earshot_models.votes.rules.laws import SIDES, threshold_law, widest_gap_law
from earshot_simulations.auditing import printed_votes, several_winners, vote_faults
from earshot_simulations.auditing.findings import Finding, Role
from earshot_simulations.auditing.outcome_laws import (
    Pair,
    farthest,
    label_law,
    measured,
    moved_labels,
    moved_votes,
)


@pytest.mark.parametrize("votes", [(30.0, 20.0, 10.0), (40.0, 22.0, 9.0), (3.0, 3.0, 3.0)])
def test_an_angle_is_the_law_of_the_widest_gap(votes: tuple[float, ...]) -> None:
    law = widest_gap_law(np.array(votes), 4.0)
    assert law.sum() == pytest.approx(1, abs=1e-12)
    noise = np.random.default_rng(1).standard_normal((200_000, 3))
    found = above_widest_gap(np.array(votes) + 4.0 * noise)
    observed = [int((found == side).all(axis=1).sum()) for side in np.array(SIDES, dtype=bool)]
    assert sum(observed) == len(noise)
    common = law * len(noise) > 5
    expected = np.append(law[common], law[~common].sum() + 1e-12) * len(noise)
    counted = np.append(np.array(observed)[common], np.array(observed)[~common].sum())
    if expected[-1] < 5:
        expected, counted = expected[:-1], counted[:-1]
        expected *= counted.sum() / expected.sum()
    assert stats.chisquare(counted, expected).pvalue > 1e-4


def test_one_wide_gap_is_found_and_equal_ones_have_no_side() -> None:
    law = dict(zip(SIDES, widest_gap_law(np.array([50.0, 50.0, 0.0]), 2.0), strict=True))
    assert law[1, 1, 0] > 1 - 1e-12
    even = dict(zip(SIDES, widest_gap_law(np.array([20.0, 10.0, 0.0]), 2.0), strict=True))
    assert even[1, 0, 0] == pytest.approx(even[1, 1, 0], rel=1e-9)


def test_a_bound_by_votes_holds_from_votes_to_neighbours() -> None:
    """Theorem 6 for the widest gap, order by order, for every neighbour, in its direction."""
    orders = np.array([1.5, 2.0, 4.0, 8.0])
    for votes in ((50.0, 3.0, 1.0), (48.0, 47.0, 2.0), (30.0, 12.0, 9.0)):
        voting = AdaptiveThreshold(3.0, 50)
        bound = threshold_divergences(voting, np.array([votes]), orders, Method.DEPENDENT).answered
        here = np.log(widest_gap_law(np.array(votes), 3.0))
        worst = np.zeros(len(orders))
        for each in moved_labels(votes, 3):
            there = np.log(widest_gap_law(np.array(each), 3.0))
            power = logsumexp(orders[:, None] * here + (1 - orders)[:, None] * there, axis=1)
            worst = np.maximum(worst, power / (orders - 1))
        assert (worst <= bound[0]).all()
        assert (worst > 0).all()


def test_laws_of_labels_and_thresholds_add_up_to_one() -> None:
    votes = np.array([12.0, 30.0, 21.0])
    grid = GridThreshold((8.0, 25.0), 3.0, 4.0, 50)
    for law in (
        threshold_law(votes, 20.0, 4.0),
        grid.law(votes),
        label_law(BinaryVoting(50, 3.0), 12.0),
    ):
        assert law.sum() == pytest.approx(1)
    wins = threshold_law(votes, 20.0, 4.0).reshape(2, 2, 2)[:, 1, :].sum()
    assert wins == pytest.approx(stats.norm.cdf(10 / 4))


def test_neighbours_are_all_there_are() -> None:
    assert sorted(moved_votes((1, 2, 0))) == [(0, 2, 1), (0, 3, 0), (1, 1, 1), (2, 1, 0)]
    assert len(moved_labels((5.0, 5.0, 5.0), 3)) == 26
    assert len(moved_labels((5.0, 5.0, 5.0), 2)) == 18


def test_what_is_measured_is_the_hockey_stick_of_single_queries() -> None:
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.5, 0.2, 0.3])
    found = measured([Pair(p, q)], 1, 0.05)

    def delta(one: np.ndarray, two: np.ndarray, epsilon: float) -> float:
        return float(np.maximum(one - math.exp(epsilon) * two, 0).sum())

    ways = ((p, q), (q, p))
    assert max(delta(*way, found.low - 1e-3) for way in ways) > 0.05
    assert max(delta(*way, found.high + 1e-3) for way in ways) <= 0.05
    assert (farthest(p, [p, q]) == q).all()


def test_no_rule_costs_more_than_is_proven_and_outcomes_less_than_noise() -> None:
    results = list(several_winners.audit_several_winners(20_000, 1))
    assert [each for each in results if not each.passed] == []
    findings = [each for each in results if isinstance(each, Finding)]
    assert len(findings) >= 14
    for each in findings:
        assert each.proven is not None
        assert each.measured.low <= each.proven <= each.claimed * (1 + 1e-9)
        # A bound that is far from what happens would prove little.
        assert each.measured.low > each.proven / 2.6
    for one, two in itertools.pairwise(findings):
        if one.case.split(";")[0] == two.case.split(";")[0]:
            assert two.proven < one.proven  # type: ignore[operator]


def test_faults_are_caught_and_the_same_rules_without_them_are_not() -> None:
    faults = list(vote_faults.audit_vote_faults(20_000, 1))
    assert [each.verdict for each in faults] == ["caught"] * 5
    for fault in faults:
        if isinstance(fault, Finding):
            assert fault.measured.low > 2 * fault.proven  # type: ignore[operator]
    sound = several_winners.drawn_labels(
        "", vote_faults._VOTING, (20.0, 23.0, 31.0), 20_000, 1, Role.FAULT
    )
    assert sound.verdict == "MISSED"


def test_printed_claims_are_refuted_by_as_much_as_is_known() -> None:
    first, bits, sums, l1, sample, raw = printed_votes.audit_printed_votes()
    assert [each.verdict for each in (first, bits, sums, sample, raw)] == ["claim is wrong"] * 5
    # ε 20 of τ voting: 33 to whoever sees the winners, 46 to whoever sees the noisy sums.
    assert bits.claimed == sums.claimed == pytest.approx(20, abs=0.05)
    assert bits.measured.low == pytest.approx(33.1, abs=0.05)
    assert sums.measured.low == pytest.approx(45.7, abs=0.05)
    assert first.claimed == pytest.approx(19.9, abs=0.05)
    assert first.measured.low > first.claimed
    assert l1.verdict == "claim holds"
    assert l1.proven is not None
    assert l1.proven < 0.65 * l1.claimed, "charged by its length in L1"
    assert sample.measured.low > 2.4 * sample.claimed
    assert (raw.claimed, raw.measured.low) == pytest.approx((2.8, 91.8), abs=0.05)
