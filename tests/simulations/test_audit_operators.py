"""The audit of two operators: what one's noise allows, how it is drawn, and faults of it."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from earshot_protocol.phases.learning import CENTROID_VOTE
from earshot_protocol.privacy.mechanisms import BallotSum, Unit, VectorSum
from earshot_protocol.privacy.sum_noise import WholeLaplace
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_simulations.auditing import operator_faults, operators, whole_phones
from earshot_simulations.auditing.ballots import all_noise, counted_on
from earshot_simulations.auditing.findings import Check, Finding
from earshot_simulations.auditing.operators import (
    added_noise,
    audit_operators,
    sums_of_operators,
)
from earshot_simulations.auditing.plans import PHASES, Effort, audit_mechanism
from earshot_simulations.auditing.routes import phase_losses

DRAWS = 5000
DISCOVERY = PHASES["secure-sum route, two operators"]
LEARNING = PHASES["local route, points, two operators"]


def gaussian_epsilon(mu: float, delta: float = 1e-6) -> float:
    """Return ε of Gaussian noise: Balle and Wang's formula (ICML 2018, Theorem 8)."""

    def excess(epsilon: float) -> float:
        tail = math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        return float(norm.cdf(mu / 2 - epsilon / mu) - tail - delta)

    return float(brentq(excess, 0.0, 50.0))


def test_every_kind_of_sum_is_audited_with_operators_noise() -> None:
    kinds = {type(mechanism) for _, mechanism, _ in sums_of_operators()}
    assert kinds == {BallotSum, VectorSum, VoteSum}
    audited = {parameters.summation for parameters in PHASES.values()}
    assert audited == {SummationName.BELL, SummationName.TWO_OPERATORS}
    assert len(whole_phones.PLAYED) == len(PHASES) - 3


def test_one_operators_noise_costs_what_normal_noise_does() -> None:
    root = math.sqrt(
        sum(1 / each.noise_multiplier**2 for each in DISCOVERY.plan().mechanisms.values())
    )
    found = phase_losses(DISCOVERY, Unit.PHONE, 1e-4).epsilon(1e-6)
    assert found.low <= gaussian_epsilon(root) <= found.high + 1e-3
    assert found.high == pytest.approx(1.8616, abs=2e-3), "of ε = 2 by zero-concentrated privacy"
    both = gaussian_epsilon(root / math.sqrt(2))
    assert both == pytest.approx(1.28, abs=0.01), "who sees the total alone"


@pytest.mark.parametrize("name", [name for name in PHASES if "two operators" in name])
def test_no_sum_of_operators_tells_more_than_is_promised_and_hardly_less(name: str) -> None:
    parameters = PHASES[name]
    for step, mechanism in parameters.plan().mechanisms.items():
        if getattr(mechanism, "honest_survivors", 0) is not None:
            continue
        results = list(audit_mechanism(step, mechanism, parameters, Effort(100, 100, 0)))
        assert [each for each in results if not each.passed] == []
        findings = [each for each in results if isinstance(each, Finding)]
        one = [each for each in findings if "one operator" in each.case]
        assert {Unit.PHONE, Unit.RECORDING} <= {each.unit for each in one}
        assert all(each.measured.low > 0.9 * (each.proven or 0) for each in one)
        both = [each for each in findings if "both operators" in each.case]
        assert both
        assert all(each.measured.high < 0.87 * (each.proven or 0) for each in both)


def test_laws_are_those_of_one_operator_and_of_both() -> None:
    for mechanism in DISCOVERY.plan().mechanisms.values():
        one, both = counted_on(mechanism, DISCOVERY), all_noise(mechanism, DISCOVERY)
        assert one.law.variance == pytest.approx(mechanism.variance, rel=1e-6)
        assert both.law.variance == pytest.approx(2 * mechanism.variance, rel=1e-6)
    ballots = LEARNING.plan().mechanisms[CENTROID_VOTE]
    law = counted_on(ballots, LEARNING).law
    ratio = law.masses[law.values == 1] / law.masses[law.values == 0]
    assert -1 / math.log(float(ratio[0])) == pytest.approx(ballots.scale)


def test_real_operators_hold() -> None:
    checks = list(audit_operators(DRAWS, 0))
    assert [each for each in checks if not each.passed] == []
    assert len(checks) == 4 * len(sums_of_operators())


def test_noise_is_what_operators_add_and_nothing_else() -> None:
    terms = LEARNING.sum_parameters(LEARNING.plan().part(CENTROID_VOTE), (7,))  # type: ignore[arg-type]
    still = msgspec.structs.replace(terms, phones=3, least=3, noise=WholeLaplace.of(5.0))
    silent = operators.AuditedOperators(helper=lambda number: bytes, leader=lambda number: bytes)
    found = added_noise(still, 0, 0, silent)
    assert not found.helper.any()
    assert not found.leader.any()
    found = added_noise(still, 0, 0, operators.AuditedOperators(helper=lambda number: bytes))
    assert not found.helper.any()
    assert found.leader.any()
    found = added_noise(still, 0, 0, operators.AuditedOperators(leader=lambda number: bytes))
    assert found.helper.any()
    assert not found.leader.any()
    assert np.array_equal(found.offered, found.helper)


def test_each_fault_of_operators_is_found_by_its_name() -> None:
    found = list(operator_faults.operator_faults(DRAWS, 0))
    assert [each.held if isinstance(each, Check) else not each.exceeds for each in found] == [
        False
    ] * len(found)
    assert [each.case.partition(": ")[0] for each in found] == [
        "a helper that adds nothing",
        "a leader that adds nothing",
        "a helper with the same noise in two sums",
        "a leader with the same noise in two sums",
        "two operators with the same noise",
        "the noise of a sum of another phase and length",
        "the share of one of n' phones",
        "noise drawn once a list is there",
        "centroid vote",
        "cells 1",
        "labels",
        "votes",
        "check",
        "phones that add zeros where nobody else adds noise",
    ]
    ledgers = [each for each in found if isinstance(each, Finding)]
    assert len(ledgers) == 5
    assert all(each.measured.low > 1.3 * (each.proven or 0) for each in ledgers)
