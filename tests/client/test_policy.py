from __future__ import annotations

import dataclasses
import math
import re
from datetime import date, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.parameters import learning_parameters, statistics_parameters

from earshot_client.encoder import default_encoder
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.errors import InvalidParametersError, RefusedError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.acceptance import COUNTED_RECORDINGS, Limits, default_refusals
from earshot_protocol.phases.learning import Budget as PhaseBudget
from earshot_protocol.phases.learning import Cluster, PhaseParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import CountContacts, StatisticsParameters
from earshot_protocol.privacy.accounting import (
    NOTHING,
    Expense,
    Release,
    composed_cost,
    epsilon_at,
    expenses,
)
from earshot_protocol.privacy.budgets import BUDGETS, LedgerBudget, Span
from earshot_protocol.privacy.conversions import zcdp_rho
from earshot_protocol.privacy.events import Approximate, Pure, ZeroConcentrated
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, BallotSum, Unit
from earshot_protocol.rules import Rule
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.secure_sum.parameters import SumParameters, choose
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.wire import Task

PHASE = learning_parameters(phones=100, dropout=0.1, corrupted=0.05)
SUM = choose(100, (5,), 50, 0.1, 0.05)
TODAY = date(2026, 3, 2)
OTHER = b"the second phase"
Expenses = tuple[Expense, ...]


def phase(**changes: Any) -> PhaseParameters:
    return msgspec.structs.replace(PHASE, **changes)


def planned(epsilon: float, delta: float = 0.0, unit: Unit = Unit.RECORDING) -> Expenses:
    """An expense in this unit, and next to nothing in the other."""
    return tuple(
        Expense(Release("all of it", each, *cost, "some noise"), Approximate(*cost))
        for each in LEDGER_UNITS
        for cost in [(epsilon, delta) if each is unit else (1e-3, 0.0)]
    )


def spent(*costs: float, unit: Unit = Unit.RECORDING, day: date = TODAY) -> Ledger:
    ledger = Ledger()
    ledger.append(bytes(16), planned(*costs, unit=unit), day)
    return ledger


def just_above(value: float) -> float:
    return value * (1 + 1e-6)


# Per rule: its limit, and what is checked against it, at the limit and just beyond.
CROWD_RULES: dict[str, tuple[float, dict[str, Any], dict[str, Any]]] = {
    "least_phones": (100, {"phones": 100}, {"phones": 99}),
    "largest_phones": (1000, {"phones": 1000}, {"phones": 1001}),
    "largest_noise_crowd": (
        85,
        {"phones": 10**5, "noise_crowd": 85},
        {"phones": 10**5, "noise_crowd": 86},
    ),
    "largest_dropout": (0.2, {"dropout": 0.2}, {"dropout": just_above(0.2)}),
    "least_corrupted": (0.05, {"corrupted": 0.05}, {"corrupted": 0.05 - 1e-6}),
}
SUM_RULES = {
    "least_statistical_security": 40,
    "least_correctness": 30,
    "least_threshold": SUM.threshold,
}


def check_phase(policy: Policy, parameters: Parameters = PHASE, recordings: int = 0) -> None:
    policy.check_phase(parameters, Ledger(), TODAY, recordings)


def check_release(
    policy: Policy, expenses: Expenses, ledger: Ledger | None = None, phase: bytes = OTHER
) -> None:
    policy.check_release(phase, expenses, ledger or Ledger(), TODAY)


def test_every_rule_of_the_policy_is_tested() -> None:
    budgets = {rule.value for budget in BUDGETS for rule in (budget.epsilon, budget.delta)}
    named = {limit.name for limit in dataclasses.fields(Limits)} - {"any_delta"}
    assert named == {*CROWD_RULES, *budgets, *SUM_RULES}


@pytest.mark.parametrize("rule", CROWD_RULES)
def test_a_phase_is_accepted_at_the_limit_and_refused_beyond(rule: str) -> None:
    limit, at, beyond = CROWD_RULES[rule]
    policy = Policy.per_recording(**{rule: limit})
    check_phase(policy, phase(**at))
    match = f"^{rule}: .* (at least|at most) {limit} is accepted"
    with pytest.raises(RefusedError, match=match) as caught:
        check_phase(policy, phase(**beyond))
    # For people, without identifiers.
    assert str(caught.value) == f"{rule}: {caught.value.reason}"
    assert "_" not in caught.value.reason


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.epsilon.value)
def test_a_budget_is_spent_up_to_its_limit_and_no_further(budget: LedgerBudget) -> None:
    """Per phase, per year and for life, in either unit: and the other unit is not touched."""
    policy = Policy(**{budget.epsilon: 1.5, budget.delta: 5e-6})  # type: ignore[arg-type]
    before = None if budget.span is Span.PHASE else spent(0.5, 4e-6, unit=budget.unit)
    left = (1.5, 5e-6) if before is None else (1.0, 1e-6)
    check_release(policy, planned(*left, unit=budget.unit), before)
    for rule, more in (
        (budget.epsilon, (just_above(left[0]), left[1])),
        (budget.delta, (left[0], just_above(left[1]))),
    ):
        with pytest.raises(RefusedError, match=f"^{rule}: .* per {budget.unit}.*=") as caught:
            check_release(policy, planned(*more, unit=budget.unit), before)
        assert caught.value.rule is rule
        limit = getattr(policy, rule)
        assert f"at most {limit} is accepted" in str(caught.value)


@pytest.mark.parametrize(
    ("days", "counts"),
    [(0, True), (365, True), (366, False), (5000, False), (-1, True), (-5000, True)],
)
def test_a_release_counts_for_a_year(days: int, counts: bool) -> None:
    """One of a day to come counts as made today."""
    policy = Policy(largest_yearly_epsilon=3.0)
    ledger = spent(2.0, day=TODAY - timedelta(days=days))
    check_release(policy, planned(1.0), ledger)
    if not counts:
        check_release(policy, planned(1.5), ledger)
        return
    with pytest.raises(RefusedError, match=r"largest_yearly_epsilon: ε of this year.* the 1\.99"):
        check_release(policy, planned(1.5), ledger)


def test_a_clock_that_is_set_back_frees_nothing() -> None:
    """Nor does one that was set back when a release was made: none is older than the last."""
    ledger = Ledger()
    ledger.append(bytes(16), planned(1.0), TODAY)
    ledger.append(OTHER, planned(1.0), TODAY - timedelta(days=3000))
    policy = Policy(largest_yearly_epsilon=3.0)
    for today in (TODAY, TODAY - timedelta(days=3000), TODAY + timedelta(days=365)):
        with pytest.raises(RefusedError, match="largest_yearly_epsilon"):
            policy.check_release(b"third" + bytes(11), planned(1.5), ledger, today)
    later = TODAY + timedelta(days=366)
    policy.check_release(b"third" + bytes(11), planned(1.5), ledger, later)


def test_what_a_phase_has_spent_counts_when_it_releases_more() -> None:
    policy = Policy(largest_epsilon=3.0)
    check_release(policy, planned(1.0), spent(2.5))
    with pytest.raises(RefusedError, match=r"largest_epsilon: .* the 2\.49\d+ already spent=3\.49"):
        check_release(policy, planned(1.0), spent(2.5), phase=bytes(16))


def test_a_year_is_composed_from_events_and_not_added_up() -> None:
    """Twelve phases of (2, 10⁻⁶) are 24 by adding up, and fit into a year of 8."""
    ledger = Ledger()
    for number in range(12):
        event = ZeroConcentrated(zcdp_rho(2.0, 1e-6))
        release = Release("sum", Unit.PHONE, 2.0, 1e-6, "some noise")
        if number < 11:
            ledger.append(bytes(15) + bytes([number]), [Expense(release, event)], TODAY)
    check_release(Policy(), (Expense(release, event),), ledger)
    assert ledger.spent()[Unit.PHONE].epsilon == 22.0
    pure = (Expense(release, Pure(2.0)),)
    with pytest.raises(RefusedError, match="largest_yearly_phone_epsilon"):
        check_release(Policy(largest_yearly_phone_epsilon=7.0), pure, ledger)


def test_many_phases_of_small_sums_are_no_worse_than_added_up() -> None:
    """How far secure sums are from ideal ones weighs e^ε, of all or of each: the less counts."""
    ledger = Ledger()
    for number in range(60):
        for step in ("one vote", "another"):
            ledger.append(bytes([number]) + bytes(15), expenses(step, BallotSum(0.5, 3, 75)), TODAY)
    standing = {(each.span, each.unit): each for each in Policy().standing(ledger, TODAY)}
    life = standing[Span.LIFE, Unit.RECORDING]
    assert 0 < life.epsilon <= 60.0 + 1e-9
    assert life.left == pytest.approx(100 - life.epsilon)


def test_what_was_spent_years_ago_stands_in_the_life_and_not_in_the_year() -> None:
    ledger = spent(5.0, day=TODAY - timedelta(days=400))
    ledger.append(b"another phase...", planned(1.0), TODAY)
    standing = {(each.span, each.unit): each for each in Policy().standing(ledger, TODAY)}
    assert standing[Span.YEAR, Unit.RECORDING].epsilon == pytest.approx(1.0, rel=1e-3)
    assert standing[Span.LIFE, Unit.RECORDING].epsilon == pytest.approx(6.0, rel=0.05)


def test_rounding_is_no_reason_to_refuse() -> None:
    check_phase(Policy.per_recording(largest_dropout=PHASE.dropout * (1 - 1e-12)))
    with pytest.raises(RefusedError, match="largest_dropout"):
        check_phase(Policy.per_recording(largest_dropout=PHASE.dropout * (1 - 1e-6)))


def check_sum(policy: Policy, proposed: SumParameters) -> None:
    """Check a sum that is the expected one, whatever it is."""
    opening = AdvertiseKeys(sum_id=bytes(16), index=0, parameters=proposed)
    policy.check_opening(PHASE, "votes", opening, proposed, b"", 0.0)


@pytest.mark.parametrize("rule", SUM_RULES)
def test_a_sum_is_accepted_at_the_limit_and_refused_beyond(rule: str) -> None:
    policy = Policy(**{rule: SUM_RULES[rule]})  # type: ignore[arg-type]
    check_sum(policy, SUM)
    name = rule.removeprefix("least_")
    weaker = msgspec.structs.replace(SUM, **{name: SUM_RULES[rule] - 1})
    with pytest.raises(RefusedError, match=f"^{rule}: {name}={SUM_RULES[rule] - 1}; at least"):
        check_sum(policy, weaker)


@pytest.mark.parametrize(
    ("name", "value"), [("phones", 99), ("phones", 101), ("dropout", 0.09), ("corrupted", 0.04)]
)
def test_a_sum_keeps_what_its_phase_agreed_on(name: str, value: float) -> None:
    other = msgspec.structs.replace(SUM, **{name: value})
    with pytest.raises(RefusedError, match=f"{name}={value}; its phase agreed on"):
        check_sum(Policy(), other)


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
        check_sum(Policy(least_threshold=1), weakened)


def test_a_phase_that_its_own_conditions_forbid_is_refused() -> None:
    with pytest.raises(RefusedError, match="the phase's parameters are not valid: delta=2"):
        check_phase(Policy(), phase(delta=2.0))


def test_a_phase_without_honest_survivors_is_refused() -> None:
    check_phase(Policy.per_recording(), phase(dropout=0.2, corrupted=0.79))
    with pytest.raises(RefusedError, match="no honest phone"):
        check_phase(Policy.per_recording(), phase(dropout=0.2, corrupted=0.8))


def test_the_steps_of_a_phase_count_together() -> None:
    check_release(Policy(largest_epsilon=1.0), planned(0.9))
    with pytest.raises(RefusedError, match="largest_epsilon"):
        check_release(Policy(largest_epsilon=1.0), planned(0.9) + planned(0.2))
    # Thirty steps of 0.1 are 3 by adding up, and less at a δ of 10⁻⁵.
    check_release(Policy(largest_epsilon=2.8), planned(0.1) * 30)


@pytest.mark.parametrize("unit", LEDGER_UNITS)
def test_what_has_no_bound_is_refused(unit: Unit) -> None:
    with pytest.raises(RefusedError, match=r"largest_(phone_)?epsilon: .*=inf; at most"):
        check_release(Policy(), planned(math.inf, unit=unit))
    with pytest.raises(InvalidParametersError, match="nan"):
        check_release(Policy(), planned(math.nan, unit=unit))


def test_what_costs_nothing_is_not_refused_to_a_phone_that_has_spent_all() -> None:
    free = tuple(
        Expense(Release("all of it", unit, 0.0, 0.0, "none"), NOTHING) for unit in LEDGER_UNITS
    )
    check_release(Policy(), free, spent(99.5))
    with pytest.raises(RefusedError, match="largest_yearly_epsilon"):
        check_release(Policy(), planned(1.0), spent(99.5))


def test_without_a_limit_of_epsilon_nothing_that_is_spent_is_too_much() -> None:
    for delta in (1.0, 1.5, math.inf):
        policy = Policy(
            **{
                each: limit
                for budget in BUDGETS
                for each, limit in ((budget.epsilon, math.inf), (budget.delta, delta))
            }
        )
        check_release(policy, planned(5.0, 0.9) + planned(5.0, 0.9))
        check_release(policy, planned(math.inf, 1.0))


def test_a_phase_at_the_limit_of_delta_is_refused_for_its_epsilon_alone() -> None:
    ledger = Ledger()
    for delta in (0.5e-5, 1e-5):
        (refused,) = Policy().refusals_of_cost(planned(5.0, delta), ledger, TODAY)
        assert refused.rule == Rule.LARGEST_EPSILON
    rules = [each.rule for each in Policy().refusals_of_cost(planned(5.0, 2e-5), ledger, TODAY)]
    assert rules == [Rule.LARGEST_EPSILON, Rule.LARGEST_DELTA]


def test_a_phase_that_is_too_much_is_told_as_reports_tell_it() -> None:
    """At the smaller of two δ: by the larger one, that of the limit, it would be less."""
    new = planned(0.1, 1e-8) * 400
    told = composed_cost([each for each in new if each.release.unit is Unit.RECORDING]).epsilon
    kept = epsilon_at(1e-5, [each for each in new if each.release.unit is Unit.RECORDING])
    assert told > 1.02 * kept
    with pytest.raises(RefusedError, match=f"largest_epsilon: .*={told:.6g}; at most 3"):
        check_release(Policy(), new)
    # Over phases, what there is of it at the δ of the limit counts.
    ledger = Ledger()
    ledger.append(bytes(16), new, TODAY)
    kept = epsilon_at(1e-4, [each for each in new if each.release.unit is Unit.RECORDING] * 2)
    told = math.floor(kept * 1000) / 1000
    with pytest.raises(RefusedError, match=rf"largest_yearly_epsilon: .*={told:.3f}\d*; at most"):
        check_release(Policy(largest_epsilon=100, largest_yearly_epsilon=kept / 1.1), new, ledger)


def test_the_refusal_says_what_was_spent() -> None:
    with pytest.raises(RefusedError, match=r"99\.49\d+ already spent=100\.49\d+; at most 100\.0"):
        check_release(Policy(largest_yearly_epsilon=200), planned(1.0), spent(99.5))


@pytest.mark.parametrize("delta", [1e-2, 0.5])
def test_a_delta_that_may_expose_a_phone_is_refused_unless_the_policy_forces_it(
    delta: float,
) -> None:
    lenient = dict.fromkeys(
        ("largest_delta", "largest_yearly_delta", "largest_lifetime_delta"), 0.99
    )
    asked = phase(geometry=Geometry.SPHERICAL, delta=delta)
    with pytest.raises(RefusedError, match=r"^delta: .* with 100 phones; below 1/phones") as caught:
        check_phase(Policy.per_recording(**lenient), asked)
    assert caught.value.rule is Rule.DELTA
    check_phase(Policy.per_recording(**lenient, any_delta=True), asked)
    check_phase(Policy.per_recording(**lenient), phase(geometry=Geometry.SPHERICAL, delta=9e-3))


@pytest.mark.parametrize(("recording", "whole", "refused"), [(0.5, 1e-3, 1), (1e-3, 0.5, 0)])
def test_the_delta_that_may_expose_a_phone_is_that_of_its_recordings(
    recording: float, whole: float, refused: int
) -> None:
    planned = [
        Expense(Release("step", unit, 1.0, delta, "noise"), Approximate(1.0, delta))
        for unit, delta in ((Unit.RECORDING, recording), (Unit.PHONE, whole))
    ]
    assert len(list(Policy()._refusals_of_delta(planned, 100))) == refused


def test_a_phone_as_it_comes_refuses_to_be_spent_for_its_recordings() -> None:
    with pytest.raises(RefusedError, match=r"^largest_phone_epsilon: .* per phone=.*at most 2\.0"):
        check_phase(Policy())
    check_phase(Policy.per_recording())
    check_phase(Policy(), statistics_parameters(contacts=8, noise=2.5))
    check_sum(Policy(), SUM)


@given(st.integers(0, COUNTED_RECORDINGS), st.integers(1, 300), st.floats(1e-4, 1))
def test_what_is_agreed_to_does_not_depend_on_what_the_phone_holds(
    held: int, named: int, epsilon: float
) -> None:
    """Or a server could find the number out, by phases that it never begins."""
    budget = PhaseBudget(epsilon, epsilon / 8, 1e-3, 1e-3)
    asked = phase(recordings=named, budget=budget)

    def said(recordings: int) -> list[str]:
        return [
            str(each) for each in Policy().refusals_of_phase(asked, Ledger(), TODAY, recordings)
        ]

    assert said(held) == said(0)


def test_a_server_that_names_fewer_recordings_than_there_are_gains_nothing() -> None:
    """With N = 1 and 200 recordings, 1.25 was believed where 6.0 was measured."""
    one = phase(recordings=1, budget=PhaseBudget(0.5, 0.125, 0.25, 0.25))
    for held in (0, 1, 200, 5000):
        with pytest.raises(
            RefusedError, match=r"^largest_phone_epsilon: .* computed for"
        ) as caught:
            check_phase(Policy(), one, held)
        assert "for at least 1000 recordings" in str(caught.value)


def test_the_published_limits_are_these() -> None:
    """Whoever changes one weakens every phone, or keeps it out of phases that it took part in."""
    published = {
        "least_phones": 100,
        "largest_phones": 10**7,
        "largest_noise_crowd": 10**4,
        "largest_epsilon": 3,
        "largest_delta": 1e-5,
        "largest_yearly_epsilon": 30,
        "largest_yearly_delta": 1e-4,
        "largest_lifetime_epsilon": 100,
        "largest_lifetime_delta": 1e-3,
        "largest_phone_epsilon": 2,
        "largest_phone_delta": 1e-5,
        "largest_yearly_phone_epsilon": 8,
        "largest_yearly_phone_delta": 1e-4,
        "largest_lifetime_phone_epsilon": 30,
        "largest_lifetime_phone_delta": 1e-3,
        "largest_dropout": 0.3,
        "least_corrupted": 0.05,
        "least_threshold": 2,
        "least_statistical_security": 40,
        "least_correctness": 20,
        "any_delta": False,
    }
    assert dataclasses.asdict(Limits()) == published
    nobody: dict[str, object] = {"leaders": (), "helpers": ()}
    assert dataclasses.asdict(Policy()) == published | {"tell_refusals": True} | nobody


@pytest.mark.parametrize("rule", [rule.name for rule in dataclasses.fields(Limits)])
def test_limits_are_numbers(rule: str) -> None:
    for value in (-1, math.nan):
        with pytest.raises(InvalidParametersError, match=rule):
            Policy(**{rule: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", BUDGETS)
def test_a_limit_of_epsilon_needs_a_delta_below_1(budget: LedgerBudget) -> None:
    for delta in (1.0, 2.0, math.inf):
        with pytest.raises(InvalidParametersError, match=f"{budget.delta}.* below 1"):
            Policy(**{budget.delta: delta})
        Policy(**{budget.epsilon: math.inf, budget.delta: delta})


def test_who_protects_recordings_may_still_limit_what_a_phone_spends() -> None:
    policy = Policy.per_recording(largest_yearly_phone_epsilon=50.0)
    assert policy.largest_yearly_phone_delta == Limits.largest_yearly_phone_delta
    assert (policy.largest_phone_epsilon, policy.largest_phone_delta) == (math.inf, math.inf)


def test_what_is_spent_without_a_limit_is_told_at_the_usual_delta() -> None:
    ledger = spent(99.5, unit=Unit.PHONE)
    usual = Policy().standing(ledger, TODAY)
    assert any(each.epsilon > 99 for each in usual)
    deltas = [each.delta for each in BUDGETS if each.unit is Unit.PHONE]
    for policy in (Policy.per_recording(), Policy.per_recording(**dict.fromkeys(deltas, 1.0))):
        unlimited = policy.standing(ledger, TODAY)
        assert [each[:3] + each[4:] for each in unlimited] == [
            each[:3] + each[4:] for each in usual
        ]


# ------------------------------------------------------------------- what operators are told of it


def test_every_limit_has_a_name_that_may_cross_the_wire() -> None:
    names = {limit.name for limit in dataclasses.fields(Limits)} - {"any_delta"}
    assert names == {rule.value for rule in Rule if rule.value.startswith(("least_", "largest_"))}


def test_the_encoder_of_a_default_phone_is_the_shipped_one() -> None:
    assert (default_encoder().name, default_encoder().dimensions) == (DEFAULT_ENCODER, DIMENSIONS)


USUAL = learning_parameters(
    geometry=Geometry.SPHERICAL, encoder=DEFAULT_ENCODER, dimensions=8, dropout=0.2
)
TINY = 1e-6
REFUSED: dict[str, tuple[Parameters, list[Rule]]] = {
    "a phone pays for its recordings": (USUAL, [Rule.LARGEST_PHONE_EPSILON]),
    "nothing is wrong with statistics": (statistics_parameters(), []),
    "unknown encoder": (
        msgspec.structs.replace(USUAL, encoder="mine-1"),
        [Rule.ENCODER, Rule.LARGEST_PHONE_EPSILON],
    ),
    "500 dimensions": (
        msgspec.structs.replace(USUAL, dimensions=500),
        [Rule.DIMENSIONS, Rule.LARGEST_PHONE_EPSILON],
    ),
    "few phones": (
        msgspec.structs.replace(USUAL, phones=50),
        [Rule.LEAST_PHONES, Rule.LARGEST_PHONE_EPSILON],
    ),
    "few recordings, as the server says": (
        msgspec.structs.replace(USUAL, recordings=1, budget=PhaseBudget(0.5, 0.1, 0.5, 0.5)),
        [Rule.LARGEST_PHONE_EPSILON],
    ),
    "next to nothing for a phone": (
        msgspec.structs.replace(
            USUAL, geometry=Geometry.EUCLIDEAN, budget=PhaseBudget(TINY, TINY, 0.5, 0.5)
        ),
        [],
    ),
    "too much of everything": (
        msgspec.structs.replace(
            USUAL,
            phones=60,
            dropout=0.35,
            corrupted=0.0,
            delta=1e-4,
            budget=PhaseBudget(clustering=3.0, selection=0.25, centroid_vote=0.5, label_vote=0.5),
        ),
        [
            Rule.LEAST_PHONES,
            Rule.LARGEST_DROPOUT,
            Rule.LEAST_CORRUPTED,
            Rule.LARGEST_EPSILON,
            Rule.LARGEST_DELTA,
            Rule.LARGEST_PHONE_EPSILON,
            Rule.LARGEST_PHONE_DELTA,
        ],
    ),
    "statistics that cost too much": (
        statistics_parameters(noise=0.8, contacts=1),
        [Rule.LARGEST_EPSILON, Rule.LARGEST_PHONE_EPSILON],
    ),
    "statistics that cost a phone too much": (
        statistics_parameters(noise=2.0, contacts=9),
        [Rule.LARGEST_PHONE_EPSILON],
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
        sum_parameters = parameters.sum_parameters(part, (parameters.entries,))
        advertise = AdvertiseKeys(sum_id=b"s" * 16, index=0, parameters=sum_parameters)
        task: Task = CountContacts(phase=phase, parameters=parameters, opening=advertise)
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


@pytest.mark.parametrize("value", ["no", 1, None])
def test_a_text_is_not_a_yes_to_any_delta(value: Any) -> None:
    with pytest.raises(InvalidParametersError, match=r"any_delta=.*: must be True or False"):
        Policy(any_delta=value)
