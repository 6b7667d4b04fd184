from __future__ import annotations

import dataclasses
import math
import re
from typing import Any

import msgspec
import pytest
from support.parameters import learning_parameters, statistics_parameters

from earshot_client.encoder import default_encoder
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.errors import InvalidParametersError, RefusedError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.acceptance import Limits, default_refusals
from earshot_protocol.phases.learning import Budget, Cluster, PhaseParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import CountContacts, StatisticsParameters
from earshot_protocol.privacy.accounting import Expense, Release
from earshot_protocol.privacy.events import Approximate
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.wire import Task

PHASE = learning_parameters(phones=100, dropout=0.1, corrupted=0.05)
SUM = choose(100, (5,), 50, 0.1, 0.05)


def phase(**changes: Any) -> PhaseParameters:
    return msgspec.structs.replace(PHASE, **changes)


def planned(epsilon: float, delta: float = 0.0) -> tuple[Release, ...]:
    return (
        Release("all of it", Unit.RECORDING, epsilon, delta, "some noise"),
        Release("all of it", Unit.PHONE, 1e6, 1.0, "some noise"),
    )


def spent(epsilon: float, delta: float = 0.0) -> Ledger:
    ledger = Ledger()
    expenses = [
        Expense(each, Approximate(each.epsilon, each.delta)) for each in planned(epsilon, delta)
    ]
    ledger.append(bytes(16), expenses)
    return ledger


def just_above(value: float) -> float:
    return value * (1 + 1e-6)


# Per rule: its limit, and what is checked against it, at the limit and just beyond.
PHASE_RULES: dict[str, tuple[float, dict[str, Any], dict[str, Any]]] = {
    "least_phones": (
        100,
        {"parameters": phase(phones=100)},
        {"parameters": phase(phones=99)},
    ),
    "largest_phones": (
        1000,
        {"parameters": phase(phones=1000)},
        {"parameters": phase(phones=1001)},
    ),
    "largest_noise_crowd": (
        85,
        {"parameters": phase(phones=10**6, noise_crowd=85)},
        {"parameters": phase(phones=10**6, noise_crowd=86)},
    ),
    "largest_epsilon": (
        2.5,
        {"releases": planned(2.5)},
        {"releases": planned(just_above(2.5))},
    ),
    "largest_delta": (
        1e-6,
        {"releases": planned(1.0, 1e-6)},
        {"releases": planned(1.0, just_above(1e-6))},
    ),
    "largest_lifetime_epsilon": (
        10.0,
        {"releases": planned(1.0), "ledger": spent(9.0)},
        {"releases": planned(1.0), "ledger": spent(just_above(9.0))},
    ),
    "largest_lifetime_delta": (
        5e-6,
        {"releases": planned(1.0, 1e-6), "ledger": spent(1.0, 4e-6)},
        {"releases": planned(1.0, 1e-6), "ledger": spent(1.0, just_above(4e-6))},
    ),
    "largest_dropout": (
        0.2,
        {"parameters": phase(dropout=0.2)},
        {"parameters": phase(dropout=just_above(0.2))},
    ),
    "least_corrupted": (
        0.05,
        {"parameters": phase(corrupted=0.05)},
        {"parameters": phase(corrupted=0.05 - 1e-6)},
    ),
}
SUM_RULES = {
    "least_statistical_security": 40,
    "least_correctness": 30,
    "least_threshold": SUM.threshold,
}


def check_phase(
    policy: Policy,
    parameters: PhaseParameters = PHASE,
    releases: tuple[Release, ...] = planned(1.0),
    ledger: Ledger | None = None,
) -> None:
    policy.check_phase(parameters, releases, ledger or Ledger())


def test_every_rule_of_the_policy_is_tested() -> None:
    assert {rule.name for rule in dataclasses.fields(Limits)} == {*PHASE_RULES, *SUM_RULES}


@pytest.mark.parametrize("rule", PHASE_RULES)
def test_a_phase_is_accepted_at_the_limit_and_refused_beyond(rule: str) -> None:
    limit, at, beyond = PHASE_RULES[rule]
    policy = Policy(**{rule: limit})  # type: ignore[arg-type]
    check_phase(policy, **at)
    with pytest.raises(RefusedError, match=f"^{rule}: .* (at least|at most) {limit} is accepted"):
        check_phase(policy, **beyond)


@pytest.mark.parametrize("rule", SUM_RULES)
def test_a_sum_is_accepted_at_the_limit_and_refused_beyond(rule: str) -> None:
    policy = Policy(**{rule: SUM_RULES[rule]})  # type: ignore[arg-type]
    policy.check_sum(PHASE, SUM)
    name = rule.removeprefix("least_")
    weaker = msgspec.structs.replace(SUM, **{name: SUM_RULES[rule] - 1})
    with pytest.raises(RefusedError, match=f"^{rule}: {name}={SUM_RULES[rule] - 1}; at least"):
        policy.check_sum(PHASE, weaker)


@pytest.mark.parametrize(
    ("name", "value"), [("phones", 99), ("phones", 101), ("dropout", 0.09), ("corrupted", 0.04)]
)
def test_a_sum_keeps_what_its_phase_agreed_on(name: str, value: float) -> None:
    other = msgspec.structs.replace(SUM, **{name: value})
    with pytest.raises(RefusedError, match=f"{name}={value}; its phase agreed on"):
        Policy().check_sum(PHASE, other)


@pytest.mark.parametrize(
    "weakened",
    [
        msgspec.structs.replace(SUM, threshold=1),
        msgspec.structs.replace(SUM, neighbours=2, threshold=1),
        msgspec.structs.replace(SUM, length=6),
        msgspec.structs.replace(SUM, bound=2**62),
    ],
)
def test_a_sum_that_its_own_conditions_forbid_is_refused(weakened: SumParameters) -> None:
    with pytest.raises(RefusedError, match=r"the sum's parameters are not valid: .+"):
        Policy(least_threshold=1).check_sum(PHASE, weakened)


def test_a_phase_that_its_own_conditions_forbid_is_refused() -> None:
    with pytest.raises(RefusedError, match="the phase's parameters are not valid: delta=2"):
        check_phase(Policy(), phase(delta=2.0))


def test_a_phase_without_honest_survivors_is_refused() -> None:
    check_phase(Policy(), phase(dropout=0.2, corrupted=0.79))
    with pytest.raises(RefusedError, match="no honest phone"):
        check_phase(Policy(), phase(dropout=0.2, corrupted=0.8))


def test_costs_are_added_over_the_steps_of_a_phase() -> None:
    tenths = planned(0.1) * 30
    check_phase(Policy(largest_epsilon=3.0), releases=tenths)
    with pytest.raises(RefusedError, match="largest_epsilon"):
        check_phase(Policy(largest_epsilon=3.0), releases=tenths + planned(1e-6))


@pytest.mark.parametrize("epsilon", [math.inf, math.nan])
def test_what_has_no_bound_is_refused(epsilon: float) -> None:
    with pytest.raises(RefusedError, match="largest_epsilon"):
        check_phase(Policy(), releases=planned(epsilon))


def test_the_refusal_says_what_was_spent() -> None:
    with pytest.raises(RefusedError, match=r"99\.5 already spent=100\.5; at most 100\.0"):
        check_phase(Policy(), releases=planned(1.0), ledger=spent(99.5))


def test_the_default_policy_takes_a_phase_of_the_default_kind() -> None:
    check_phase(Policy(), releases=planned(3.0, 1e-5))
    Policy().check_sum(PHASE, SUM)


@pytest.mark.parametrize("rule", [rule.name for rule in dataclasses.fields(Limits)])
def test_limits_are_numbers(rule: str) -> None:
    for value in (-1, math.nan):
        with pytest.raises(InvalidParametersError, match=rule):
            Policy(**{rule: value})


# ------------------------------------------------------------------- what operators are told of it


def test_every_limit_has_a_name_that_may_cross_the_wire() -> None:
    names = {limit.name for limit in dataclasses.fields(Limits)}
    assert names == {rule.value for rule in Rule if rule.value.startswith(("least_", "largest_"))}


def test_the_encoder_of_a_default_phone_is_the_shipped_one() -> None:
    assert (default_encoder().name, default_encoder().dimensions) == (DEFAULT_ENCODER, DIMENSIONS)


USUAL = learning_parameters(
    geometry=Geometry.SPHERICAL, encoder=DEFAULT_ENCODER, dimensions=8, dropout=0.2
)
REFUSED: dict[str, tuple[Parameters, list[Rule]]] = {
    "nothing is wrong": (USUAL, []),
    "nothing is wrong with statistics": (statistics_parameters(), []),
    "unknown encoder": (msgspec.structs.replace(USUAL, encoder="mine-1"), [Rule.ENCODER]),
    "500 dimensions": (msgspec.structs.replace(USUAL, dimensions=500), [Rule.DIMENSIONS]),
    "few phones": (msgspec.structs.replace(USUAL, phones=50), [Rule.LEAST_PHONES]),
    "too much of everything": (
        msgspec.structs.replace(
            USUAL,
            phones=60,
            dropout=0.35,
            corrupted=0.0,
            delta=1e-4,
            budget=Budget(clustering=3.0, selection=0.25, centroid_vote=0.5, label_vote=0.5),
        ),
        [
            Rule.LEAST_PHONES,
            Rule.LARGEST_DROPOUT,
            Rule.LEAST_CORRUPTED,
            Rule.LARGEST_EPSILON,
            Rule.LARGEST_DELTA,
        ],
    ),
    "statistics that cost too much": (
        statistics_parameters(epsilon=3.5),
        [Rule.LARGEST_EPSILON],
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_default_phones_refuse_is_known_before(name: str) -> None:
    parameters, rules = REFUSED[name]
    foretold = list(default_refusals(parameters))
    assert [refused.rule for refused in foretold] == rules
    for refused in foretold:
        assert re.search(r"accepted|this phone's are of|an embedding has", str(refused))
    phase = b"p" * 16
    if isinstance(parameters, StatisticsParameters):
        part = parameters.plan().parts[0]
        assert isinstance(part, SecureSum)
        sum_parameters = parameters.sum_parameters(part, (len(parameters.labels),))
        advertise = AdvertiseKeys(sum_id=b"s" * 16, index=0, parameters=sum_parameters)
        task: Task = CountContacts(phase=phase, parameters=parameters, advertise=advertise)
    else:
        assert isinstance(parameters, PhaseParameters)
        task = Cluster(phase=phase, index=0, parameters=parameters)
    phone = Phone(MemoryStore(), default_encoder())
    if not rules:
        assert phone.answer(task) is not None
        return
    with pytest.raises(RefusedError) as caught:
        phone.answer(task)
    assert (caught.value.rule, str(caught.value)) == (rules[0], str(foretold[0]))
