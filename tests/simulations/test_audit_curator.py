"""The audit of a curator's votes: what holds, what is caught, and what is printed wrong."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from earshot_models.votes.rules.confident import ConfidentGNMax
from earshot_models.votes.rules.gnmax import GNMax
from earshot_models.votes.rules.lnmax import LNMax
from earshot_simulations.auditing import catalogue, curator, curator_faults
from earshot_simulations.auditing.curator import CURATOR, audit_curator, neighbours, outcomes
from earshot_simulations.auditing.curator_printed import one_way, smooth_release
from earshot_simulations.auditing.findings import Finding


def test_all_holds_and_every_aggregator_is_there() -> None:
    results = list(audit_curator(4000, 0))
    assert [each for each in results if not each.passed] == []
    cases = " ".join(each.case for each in results)
    for name in ("LNMax", "GNMax", "Confident", "Interactive", "owners of three budgets"):
        assert name in cases
    for each in results:
        if isinstance(each, Finding):
            assert each.measured.low > 0.3 * (each.proven or math.inf), "nothing far from tight"
    assert CURATOR in catalogue.SUBJECTS


def test_planted_faults_are_caught() -> None:
    results = list(curator_faults.curator_faults(4000, 0))
    assert [each.verdict for each in results] == ["caught"] * 5


def test_what_is_printed_is_refuted_by_as_much_as_is_known() -> None:
    one, release = one_way(), smooth_release()
    assert one.claimed == pytest.approx(6.9e-4, rel=0.01)
    assert one.measured.low == pytest.approx(7.8e-4, rel=0.01)
    assert release.claimed == pytest.approx(0.24, abs=0.005)
    assert release.measured.low == pytest.approx(0.50, abs=0.005)
    for each in (one, release):
        assert each.passed
        assert each.verdict == "claim is wrong"


def test_neighbours_are_all() -> None:
    assert set(neighbours((2, 1, 0))) == {(1, 2, 0), (1, 1, 1), (3, 0, 0), (2, 0, 1)}
    assert set(neighbours((3, 0))) == {(2, 1)}


def test_laws_of_outcomes_add_up_and_are_those_of_two_classes() -> None:
    for aggregator in (LNMax(0.1), GNMax(8.0), ConfidentGNMax(25.0, 12.0, 8.0)):
        law = outcomes(aggregator, (20, 14, 6))
        assert sum(law.values()) == pytest.approx(1, abs=1e-12)
    gap, gamma = 9.0, 0.1
    lost = (2 + gamma * gap) / (4 * math.exp(gamma * gap))
    assert outcomes(LNMax(gamma), (24, 15))[1,] == pytest.approx(lost, rel=1e-10)


def test_many_answers_are_a_multinomial_law() -> None:
    chances = np.array([0.5, 0.3, 0.2])
    law = curator._divided(chances, 6)
    expected = [
        stats.multinomial.pmf([a, b, 6 - a - b], 6, chances) for a in range(7) for b in range(7 - a)
    ]
    np.testing.assert_allclose(law, expected, rtol=1e-12)
