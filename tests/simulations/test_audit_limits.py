"""Votes against thresholds audited: every rule within its proof, and what is planted is caught."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from earshot_models.votes.confident_check import Check
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.rules.gnthreshold import GNThreshold
from earshot_models.votes.rules.gnthreshold_adaptive import AdaptiveThreshold
from earshot_models.votes.rules.grid_threshold import GridThreshold
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.auditing import limits, vote_faults
from earshot_simulations.auditing.findings import Finding
from earshot_simulations.auditing.printed_votes import raw_threshold_epsilon


def test_no_rule_tells_more_than_is_proven_and_bounds_are_not_far_from_it() -> None:
    results = list(limits.audit_thresholds(20_000, 1))
    assert [each for each in results if not each.passed] == []
    found = [each for each in results if isinstance(each, Finding)]
    for each in found:
        assert each.proven is not None
        assert each.measured.low <= each.proven <= each.claimed * (1 + 1e-9)
        assert each.measured.low > each.proven / 3
        assert each.unit in (Unit.PHONE.value, Unit.REPLACED_PHONE.value)
    for one, two in itertools.pairwise(found):
        alike = one.case.split(";")[0] == two.case.split(";")[0] and one.unit == two.unit
        if alike and "proven" in one.case:
            assert two.proven < one.proven  # type: ignore[operator]
    said = " ".join(each.case for each in found)
    for rule in ("a fixed threshold", "the widest gap of noisy votes", "a threshold from a grid"):
        for kind in (rule + ", v = 1", rule + " with a check, v = 1"):
            assert kind in said
    assert "noisy counts of votes" in said
    assert "noisy counts of probabilities" in said
    assert len(results) - len(found) == 3, "draws of each rule"


@pytest.mark.parametrize(
    "voting",
    [
        GNThreshold(20.0, 4.0, 50, check=Check(24.0, 6.0)),
        AdaptiveThreshold(4.0, 50),
        GridThreshold((8.0, 20.0), 3.0, 4.0, 50, check=Check(24.0, 6.0)),
    ],
)
def test_laws_of_limits_add_up_to_one(
    voting: GNThreshold | AdaptiveThreshold | GridThreshold,
) -> None:
    assert limits.limit_law(voting, (12.0, 30.0, 21.0)).sum() == pytest.approx(1)


def test_a_teacher_that_is_left_out_takes_votes_away_and_gives_none() -> None:
    """Its neighbours are fewer, so it pays less, and with v = 1 one label changes."""
    voting = GNThreshold(20.5, 4.0, 50, most=1)
    votes = (20.0, 21.0, 3.0)
    gone = limits.audited("", voting, votes, Unit.PHONE)
    other = limits.audited("", voting, votes, Unit.REPLACED_PHONE)
    laws = [limits.limit_law(voting, each) for each in
            ((19.0, 21.0, 3.0), (20.0, 20.0, 3.0), (20.0, 21.0, 2.0))]  # fmt: skip
    assert any(np.array_equal(gone.pairs[0].there, law) for law in laws)
    assert not any(np.array_equal(other.pairs[0].there, law) for law in laws)
    for method in (Method.INDEPENDENT, Method.EXACT):
        assert (gone.proven[method] < other.proven[method]).all()


def test_planted_faults_of_thresholds_tell_several_times_what_they_are_sold_for() -> None:
    free = vote_faults.free_check()
    assert free.verdict == "caught"
    assert free.measured.low > 5 * free.claimed > 5 * 0.9 * free.proven  # type: ignore[operator]
    raw = raw_threshold_epsilon((50, 25, 0, 0, 0), (50, 26, 0, 0, 0), 15**0.5, 1e-8)
    assert raw.low == pytest.approx(91.8, abs=0.05)
