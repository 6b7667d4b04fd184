"""The audit of two operators: what one's noise allows, how it is drawn, and faults of it."""

from __future__ import annotations

import itertools
import math
import os
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from earshot_protocol.phases.learning import CENTROID_VOTE
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.prio3.circuit import Circuit
from earshot_protocol.prio3.field import MODULUS
from earshot_protocol.prio3.prio3 import Prio3
from earshot_protocol.prio3.shapes import Counts
from earshot_protocol.privacy.mechanisms import BallotSum, Unit, VectorSum
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_protocol.wire import Answer, Task
from earshot_server.helper.helper import Helper
from earshot_simulations.auditing import (
    catalogue,
    false_inputs,
    operator_faults,
    operators,
    watched_operators,
)
from earshot_simulations.auditing.ballots import all_noise, counted_on
from earshot_simulations.auditing.false_inputs import WeakVerification
from earshot_simulations.auditing.findings import Check, Finding, Result
from earshot_simulations.auditing.operators import (
    audit_operators,
    real_sums,
    sums_of_operators,
)
from earshot_simulations.auditing.plans import PHASES, Effort, audit_mechanism
from earshot_simulations.auditing.routes import phase_losses
from earshot_simulations.auditing.watched_operators import AuditedOperators, WatchedSum

DRAWS = 5000
DISCOVERY = PHASES["secure-sum route, two operators"]
LEARNING = PHASES["local route, points, two operators"]
STATISTICS = "contacts by environment, two operators"
USUAL = ["local route, points, two operators", "votes on samples, two operators", STATISTICS]


def sums_of(parameters: Parameters) -> list[SecureSum]:
    return [part for part in parameters.plan().parts if isinstance(part, SecureSum)]


def gaussian_epsilon(mu: float, delta: float = 1e-6) -> float:
    """Return ε of Gaussian noise: Balle and Wang's formula (ICML 2018, Theorem 8)."""

    def excess(epsilon: float) -> float:
        tail = math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
        return float(norm.cdf(mu / 2 - epsilon / mu) - tail - delta)

    return float(brentq(excess, 0.0, 50.0))


def test_every_kind_of_sum_is_audited_with_operators_noise() -> None:
    kinds = [(type(each.mechanism), each.proved) for each in sums_of_operators()]
    assert set(kinds) == set(itertools.product((BallotSum, VectorSum, VoteSum), (False, True)))
    parts = {part.task for each in PHASES.values() for part in sums_of(each)}
    assert {part.task for each in sums_of_operators() for part in sums_of(each.parameters)} == parts
    audited = {parameters.summation for parameters in PHASES.values()}
    assert audited == set(SummationName)


def test_one_operators_noise_costs_what_normal_noise_does() -> None:
    root = math.sqrt(
        sum(1 / each.noise_multiplier**2 for each in DISCOVERY.plan().mechanisms.values())
    )
    found = phase_losses(DISCOVERY, Unit.PHONE, 1e-4).epsilon(1e-6)
    assert found.low <= gaussian_epsilon(root) <= found.high + 1e-3
    assert found.high == pytest.approx(1.8616, abs=2e-3), "of ε = 2 by zero-concentrated privacy"
    both = gaussian_epsilon(root / math.sqrt(2))
    assert both == pytest.approx(1.28, abs=0.01), "who sees the total alone"


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in USUAL else pytest.mark.slow)
        for name in PHASES
        if "two operators" in name
    ],
)
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
        # Heavy tails hide little of a ballot that is all in one entry.
        most = 1 if isinstance(mechanism, BallotSum) else 0.87
        assert all(each.measured.high < most * (each.proven or 0) for each in both)


def test_laws_are_those_of_one_operator_and_of_both() -> None:
    for mechanism in DISCOVERY.plan().mechanisms.values():
        one, both = counted_on(mechanism, DISCOVERY), all_noise(mechanism, DISCOVERY)
        assert one.law.variance == pytest.approx(mechanism.variance, rel=1e-6)
        assert both.law.variance == pytest.approx(2 * mechanism.variance, rel=1e-6)
    ballots = LEARNING.plan().mechanisms[CENTROID_VOTE]
    law = counted_on(ballots, LEARNING).law
    ratio = law.masses[law.values == 1] / law.masses[law.values == 0]
    assert -1 / math.log(float(ratio[0])) == pytest.approx(ballots.scale)


@pytest.mark.slow
def test_real_operators_hold() -> None:
    checks = list(audit_operators(DRAWS, 0))
    assert [each for each in checks if not each.passed] == []
    noises = {(each.agreed(1).noise, each.proved) for each in sums_of_operators()}
    assert len(checks) == 5 * len(sums_of_operators()) + 2 * len(noises)


@pytest.mark.parametrize("proved", [False, True])
def test_noise_is_what_operators_add_and_nothing_else(proved: bool) -> None:
    ballots = next(
        each
        for each in sums_of_operators()
        if isinstance(each.mechanism, BallotSum) and each.proved == proved
    )
    terms = ballots.agreed(7)
    assert (terms.proof is not None) == proved

    def silent(number: int) -> RandomBytes:
        return bytes

    def seen(**silenced: Callable[[int], RandomBytes]) -> list[WatchedSum]:
        return real_sums(terms, 0, AuditedOperators(**silenced))  # type: ignore[arg-type]

    for each in seen(helper=silent, leader=silent):
        assert not each.helper.any()
        assert not each.leader.any()
        assert len(each.inputs) == len(each.shares) == 3
    for each in seen(helper=silent):
        assert not each.helper.any()
        assert each.leader.any()
    for each in seen(leader=silent):
        assert each.helper.any()
        assert not each.leader.any()
        assert np.array_equal(each.offered, each.helper)
        assert np.array_equal(each.both, each.helper)


def test_operators_are_watched_apart_from_their_sums_before() -> None:
    """Sources begin anew in every sum, at the number that the sum has."""
    numbers: list[int] = []

    def source(number: int) -> RandomBytes:
        numbers.append(number)
        return os.urandom

    real_sums(sums_of_operators()[0].agreed(3), 0, AuditedOperators(helper=source, leader=source))
    assert numbers == [0, 0, 1, 1]


def test_a_helper_that_adds_its_noise_of_the_sum_before_is_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One helper serves all sums that are watched, so what it remembers is seen."""
    kept: dict[Any, Any] = {}

    class Remembering(Helper):
        def answer(self, task: Task) -> Answer:
            noise = type(sums_of_operators()[0].agreed(3).noise)
            drawn = noise.drawn

            def once(self: Any, size: Any, random: Any) -> Any:
                return kept.setdefault(size, drawn(self, size, random))

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(noise, "drawn", once)
                return super().answer(task)

    monkeypatch.setattr(watched_operators, "Helper", Remembering)
    name, parameters = sums_of_operators()[0].words, sums_of_operators()[0].agreed(DRAWS)
    *_, apart, early, added = operators.noise_checks(name, parameters, 0)
    assert not apart.held
    assert early.held
    assert not added.held, "it is not what was drawn for the second sum"


def missed(found: Sequence[Result]) -> list[str]:
    return [
        each.case for each in found if (each.held if isinstance(each, Check) else not each.exceeds)
    ]


def faults_in(found: Sequence[Result]) -> list[str]:
    return [each.case.partition(": ")[0] for each in found]


def test_each_fault_of_sums_is_found_by_its_name() -> None:
    found = list(operator_faults.faults_of_sums(DRAWS, 0))
    assert missed(found) == []
    assert faults_in(found) == [
        "a helper that adds nothing",
        "a leader that adds nothing",
        "a helper with the same noise in two sums",
        "a leader with the same noise in two sums",
        "two operators with the same noise",
        "the noise of a sum of another phase and length",
        "the share of one of n' phones",
        "noise drawn once a list is there",
        "half the noise",
        "a last entry without noise",
        "noise that is cut once it is drawn",
        "noise without its sign in a proved sum",
        *(each.step for each in sums_of_operators() if not each.proved),
        "phones that add zeros where nobody else adds noise",
    ]
    ledgers = [each for each in found if isinstance(each, Finding)]
    assert len(ledgers) == len([each for each in sums_of_operators() if not each.proved])
    assert all(each.measured.low > 1.3 * (each.proven or 0) for each in ledgers)


@pytest.mark.slow
def test_each_fault_of_phases_is_found_by_its_name() -> None:
    found = list(operator_faults.broken_phases())
    assert missed(found) == []
    assert [each.case for each in found] == [
        "a helper silent in one sum: what the helper adds",
        "a leader silent in one sum: what the leader adds",
        "a helper's noise of the phase before: two sums' noise",
        "a leader's noise of the phase before: two sums' noise",
        "one source for both operators: two operators' noise",
        *(
            f"half the noise, {name}: what operators add of what they draw"
            for name in (STATISTICS, "secure-sum route, choices, two operators")
        ),
    ]
    both, sitting = operator_faults.charged_less()
    assert both.measured.low > 1.3 * (both.proven or 0)
    assert sitting.measured.low > 1.8 * (sitting.proven or 0)


def test_each_list_that_tells_more_is_found_by_its_name() -> None:
    found = list(operator_faults.hostile_lists())
    assert missed(found) == []
    assert [each.found for each in found] == [
        "not a report twice, an identifier twice",
        "not a second list in another order, a second list of one report less",
    ]


def test_noise_that_ends_is_found_by_reading_its_sampler() -> None:
    found = list(operator_faults.cut_samplers())
    assert missed(found) == []
    assert [each.case.partition(", ")[2] for each in found] == 2 * [
        f"{how}: what its sampler decides" for how in ("by its last value", "drawn again")
    ]


def test_proofs_hide_what_they_are_about_from_either_operator() -> None:
    checks = catalogue.audit("proved-ballots")
    assert [each for each in checks if not each.passed] == []
    assert len(checks) == 5


def test_each_fault_of_proofs_is_found_by_its_name() -> None:
    """Without what hides it, a vote counts if it was guessed rightly, and only then."""
    found = list(operator_faults.weak_proofs())
    assert missed(found) == []
    assert faults_in(found) == [
        *["proofs that hide nothing"] * 3,
        *["the same randomness in all reports"] * 2,
    ]
    told = "[100, 100] unaltered; [100, 0] and [0, 100] by the vote that is guessed"
    assert [each.found for each in found[:2]] == [told] * 2


def test_more_than_one_phone_s_weight_counts_only_where_nothing_is_checked() -> None:
    """Two of the checks below, quickly: of ballots, and of votes on samples."""
    everything = {"decide": lambda self, verifiers, field: np.ones(len(verifiers), dtype=bool)}
    only = false_inputs.LONGER, (Counts,)
    sound = list(false_inputs.audit_false_inputs(false_inputs.SOUND, *only))
    broken = list(false_inputs.audit_false_inputs(WeakVerification(Circuit, everything), *only))
    assert [each.held for each in (*sound, *broken)] == [True, True, False, False]
    assert [each.found for each in (*sound, *broken)] == [
        *["none of 100 counts, and the total is that of the others"] * 2,
        *["100 of 100 counts"] * 2,
    ]


def test_a_total_that_is_not_that_of_honest_phones_is_found() -> None:
    """Here operators refuse every false report, and then add up honest shares twice."""
    aggregate = Prio3.aggregate

    def twice(self: Prio3, shares: Any) -> Any:
        found = aggregate(self, shares)
        return self.arithmetic.add(found, found)

    weakness = WeakVerification(Prio3, {"aggregate": twice})
    found = list(false_inputs.audit_false_inputs(weakness, false_inputs.LONGER, (Counts,)))
    assert [each.found for each in found] == ["none of 100 counts, and the total is off"] * 2
    assert not any(each.held for each in found)


@pytest.mark.slow
def test_no_phone_gets_a_false_input_counted() -> None:
    checks = catalogue.audit("false-inputs")
    assert [each for each in checks if not each.passed] == []
    assert Counter(each.case.partition(": ")[2] for each in checks) == {
        false_inputs.LONGER: 3,
        false_inputs.WRAPPED: 1,
        false_inputs.GUESSED_SIGNS: 1,
        false_inputs.GUESSED_WEIGHTS: 3,
        false_inputs.GUESSED_KEY: 3,
    }, "of ballots, vectors, and votes on samples"


@pytest.mark.slow
def test_each_fault_of_verification_is_found_by_its_name() -> None:
    """Every attack succeeds each time, but for a single check of signs, which half evade."""
    found = list(operator_faults.weak_verification())
    assert missed(found) == []
    assert faults_in(found) == [
        *["operators that check nothing"] * 3,
        "vectors of twice the length",
        "one check of a wrap-around",
        "signs that no share fixes",
        *["weights that no share fixes"] * 3,
        *["a verify key that phones know"] * 3,
    ]
    checks = [each for each in found if isinstance(each, Check)]
    counted = {int(each.found.split()[0]) for each in checks if "one check" not in each.case}
    assert counted == {100}
    (evaded,) = (int(each.found.split()[0]) for each in checks if "one check" in each.case)
    assert 20 < evaded < 80


def test_the_arithmetic_of_attacks_is_that_of_the_field() -> None:
    source = random.Random(5)
    no_square = next(x for x in range(2, 99) if pow(x, MODULUS // 2, MODULUS) == MODULUS - 1)
    for _ in range(20):
        number = source.randrange(1, MODULUS)
        root = false_inputs._square_root(number * number)
        assert root in (number, MODULUS - number)
        assert false_inputs._square_root(no_square * number * number) is None
    assert false_inputs._square_root(0) == 0
    rows = [[source.choice([-1, 0, 1]) for _ in range(12)] for _ in range(9)]
    rows += [rows[0], [a + b for a, b in zip(rows[1], rows[2], strict=True)]]
    kernel = list(false_inputs._kernel(rows))
    assert len(kernel) == 12 - 9
    for vector, row in itertools.product(kernel, rows):
        assert sum(a * b for a, b in zip(vector, row, strict=True)) % MODULUS == 0
