"""The audit of votes of ensembles: laws by other ways, what holds, and faults that are caught."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from earshot_models.votes.costs.costs import Method
from earshot_models.votes.rules.against_thresholds import ThresholdRule
from earshot_models.votes.rules.binary import BinaryRule
from earshot_models.votes.rules.confident import ConfidentRule
from earshot_models.votes.rules.gnmax import GNMaxRule
from earshot_models.votes.rules.gnthreshold import GNThresholdRule
from earshot_models.votes.rules.gnthreshold_adaptive import AdaptiveRule, above_widest_gap
from earshot_models.votes.rules.grid_threshold import GridRule
from earshot_models.votes.rules.laws import SIDES, threshold_law, widest_gap_law
from earshot_models.votes.rules.lnmax import LNMaxRule
from earshot_models.votes.rules.powerset import PowersetRule
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.auditing import catalogue, faults
from earshot_simulations.auditing.ensembles import (
    Sets,
    Thresholds,
    audit_several_winners,
    audit_thresholds,
    drawn_labels,
    label_law,
    limit_law,
    winner_law,
)
from earshot_simulations.auditing.findings import Check, Finding, Result
from earshot_simulations.auditing.outcomes import (
    Pair,
    convolved_epsilon,
    moved_labels,
    moved_votes,
    multinomial_law,
)
from earshot_simulations.auditing.plans import Effort
from earshot_simulations.auditing.proofs import DELTA

EFFORT = Effort(trials=4000, draws=20_000, seed=1)


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
        voting = AdaptiveRule(sigma=3.0)
        bound = voting.divergences(np.array([votes]), 50, orders, Method.DEPENDENT).answered
        here = np.log(widest_gap_law(np.array(votes), 3.0))
        worst = np.zeros(len(orders))
        for each in moved_labels(votes, 3):
            there = np.log(widest_gap_law(np.array(each), 3.0))
            power = logsumexp(orders[:, None] * here + (1 - orders)[:, None] * there, axis=1)
            worst = np.maximum(worst, power / (orders - 1))
        assert (worst <= bound[0]).all()
        assert (worst > 0).all()


@pytest.mark.parametrize(
    "voting",
    [
        GNThresholdRule(sigma=4.0, cut=20.0),
        GNThresholdRule(sigma=4.0, cut=20.0, threshold=24.0, check_sigma=6.0),
        AdaptiveRule(sigma=4.0),
        GridRule(sigma=4.0, grid=(8.0, 25.0), scale=3.0),
        GridRule(sigma=4.0, grid=(8.0, 20.0), scale=3.0, threshold=24.0, check_sigma=6.0),
    ],
)
def test_laws_of_labels_against_thresholds_add_up_to_one(
    voting: ThresholdRule,
) -> None:
    assert limit_law(voting, 50, (12.0, 30.0, 21.0)).sum() == pytest.approx(1)


def test_laws_of_labels_are_normal() -> None:
    assert label_law(BinaryRule(sigma=3.0), 50, 12.0).sum() == pytest.approx(1)
    checked = label_law(BinaryRule(sigma=3.0, threshold=30.0, check_sigma=4.0), 50, 12.0)
    assert checked.sum() == pytest.approx(1)
    assert checked[-1] == pytest.approx(stats.norm.sf((38.0 - 30.0) / 4.0))
    wins = threshold_law(np.array([12.0, 30.0, 21.0]), 20.0, 4.0).reshape(2, 2, 2)[:, 1, :].sum()
    assert wins == pytest.approx(stats.norm.cdf(10 / 4))


def test_laws_of_winners_add_up_and_are_those_of_two_classes() -> None:
    confident = ConfidentRule(sigma=8.0, threshold=25.0, check_sigma=12.0)
    for rule in (LNMaxRule(sigma=10.0), GNMaxRule(sigma=8.0), confident):
        assert winner_law(rule, (20, 14, 6)).sum() == pytest.approx(1, abs=1e-12)
    gap, gamma = 9.0, 0.1
    lost = (2 + gamma * gap) / (4 * math.exp(gamma * gap))
    assert winner_law(LNMaxRule(sigma=1 / gamma), (24, 15))[1] == pytest.approx(lost, rel=1e-10)


def test_many_answers_are_a_multinomial_law() -> None:
    chances = np.array([0.5, 0.3, 0.2])
    law = multinomial_law(chances, 6)
    expected = [
        stats.multinomial.pmf([a, b, 6 - a - b], 6, chances) for a in range(7) for b in range(7 - a)
    ]
    np.testing.assert_allclose(law, expected, rtol=1e-12)


def test_neighbours_are_all_there_are() -> None:
    assert sorted(moved_votes((1, 2, 0))) == [(0, 2, 1), (0, 3, 0), (1, 1, 1), (2, 1, 0)]
    assert set(moved_votes((3, 0))) == {(2, 1)}
    assert len(moved_labels((5.0, 5.0, 5.0), 3)) == 26
    assert len(moved_labels((5.0, 5.0, 5.0), 2)) == 18


def test_a_teacher_that_is_left_out_takes_votes_away_and_gives_none() -> None:
    """Its neighbours are fewer, so it pays less, and with v = 1 one label changes."""
    voting, votes = GNThresholdRule(sigma=4.0, cut=20.5, winners=1), (20.0, 21.0, 3.0)
    gone, other = (
        Thresholds("", voting, votes, unit, teachers=50)
        for unit in (Unit.PHONE, Unit.REPLACED_PHONE)
    )
    laws = [limit_law(voting, 50, each) for each in
            ((19.0, 21.0, 3.0), (20.0, 20.0, 3.0), (20.0, 21.0, 2.0))]  # fmt: skip
    found = [pair.there for (pair,) in gone.neighbours()]
    assert len(found) == len(laws)
    assert all(any(np.array_equal(each, law) for law in laws) for each in found)
    assert len(list(other.neighbours())) == 18
    for method in (Method.INDEPENDENT, Method.EXACT):
        assert (gone.proven(method) < other.proven(method)).all()


def test_an_epsilon_is_the_hockey_stick_of_single_queries() -> None:
    p, q = np.array([0.7, 0.2, 0.1]), np.array([0.5, 0.2, 0.3])
    found = convolved_epsilon([Pair(p, q)], 1, 0.05)

    def delta(one: np.ndarray, two: np.ndarray, epsilon: float) -> float:
        return float(np.maximum(one - math.exp(epsilon) * two, 0).sum())

    ways = ((p, q), (q, p))
    assert max(delta(*way, found.low - 1e-3) for way in ways) > 0.05
    assert max(delta(*way, found.high + 1e-3) for way in ways) <= 0.05


def test_the_neighbour_that_tells_most_is_measured() -> None:
    """It is not the one whose outcomes are farthest by χ²."""
    case = Sets("", PowersetRule(sigma=3.0), (8, 7, 0, 0, 0, 0, 0, 0))
    pairs = [pair for (pair,) in case.neighbours()]
    found = [convolved_epsilon([pair], case.queries, DELTA).low for pair in pairs]
    assert len(found) == 14
    assert case.measured.low == max(found)
    apart = [float((np.square(each.here - each.there) / each.there).sum()) for each in pairs]
    assert found[int(np.argmax(apart))] < 0.8 * max(found)


def holding(results: list[Result], tightness: float) -> Iterator[Finding]:
    """All hold; and a bound that is far from what happens would prove little."""
    assert [each for each in results if not each.passed] == []
    findings = [each for each in results if isinstance(each, Finding)]
    for each in findings:
        assert each.proven is not None
        assert each.measured.low <= each.proven <= each.claimed * (1 + 1e-9)
        assert each.measured.low > each.proven / tightness
        yield each
    for one, two in itertools.pairwise(findings):
        alike = one.case.split(";")[0] == two.case.split(";")[0] and one.unit == two.unit
        if alike and "proven" in one.case:
            assert two.proven < one.proven, "outcomes cost less than noise"  # type: ignore[operator]


@pytest.mark.slow
def test_no_rule_with_several_winners_costs_more_than_is_proven() -> None:
    results = list(audit_several_winners(EFFORT.draws, EFFORT.seed))
    assert len(list(holding(results, 2.6))) >= 14


@pytest.mark.slow
def test_no_rule_against_thresholds_costs_more_than_is_proven() -> None:
    results = list(audit_thresholds(EFFORT.draws, EFFORT.seed))
    found = list(holding(results, 3))
    assert {each.unit for each in found} == {Unit.PHONE, Unit.REPLACED_PHONE}
    said = " ".join(each.case for each in found)
    for rule in ("a fixed threshold", "the widest gap of noisy votes", "a threshold from a grid"):
        for kind in (rule + ", v = 1", rule + " with a check, v = 1"):
            assert kind in said
    assert "noisy counts of votes" in said
    assert "noisy counts of probabilities" in said
    assert len(results) - len(found) == 3, "draws of each rule"


def test_no_rule_for_one_winner_costs_more_than_is_proven() -> None:
    results = catalogue.audit("curator-votes", EFFORT)
    assert [each for each in results if not each.passed] == []
    cases = " ".join(each.case for each in results)
    for name in ("LNMax", "GNMax", "Confident", "Interactive", "owners of three budgets"):
        assert name in cases
    for each in results:
        if isinstance(each, Finding):
            assert each.measured.low > 0.3 * (each.proven or math.inf), "nothing far from tight"


def test_faults_are_caught_and_the_same_rules_without_them_are_not() -> None:
    found = list(faults.vote_faults(EFFORT.trials, EFFORT.seed))
    assert len(found) == 9
    for fault in found:
        assert not fault.held if isinstance(fault, Check) else fault.exceeds
    (free,) = faults.free_check()
    assert free.measured.low > 5 * free.claimed > 5 * 0.9 * free.proven  # type: ignore[operator]
    half, unpaid = found[0], found[2]
    for each in (half, unpaid):
        assert isinstance(each, Finding)
        assert each.measured.low > 2 * each.proven  # type: ignore[operator]
    assert drawn_labels("", BinaryRule(sigma=5.0), 51, EFFORT.draws, 1).held
