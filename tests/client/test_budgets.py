"""A phone refuses by the name of a rule, and its ledger stays what it was."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.examples import examples
from support.parameters import (
    discovery_parameters,
    labelling_parameters,
    learning_parameters,
    statistics_parameters,
)
from support.phase_tasks import OTHER_PHASE, first_task, rounds
from support.points import HeardPoints

from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import InvalidParametersError, RefusedError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.learning import Budget, Cluster, PhaseParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.privacy.accounting import Expense, Release, epsilon_at
from earshot_protocol.privacy.events import Approximate
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Unit
from earshot_protocol.rules import Rule
from earshot_simulations.engine.ideal import IDEAL

OTHER = OTHER_PHASE
NOON = datetime(2026, 3, 2, 12, tzinfo=UTC)
POINTS = np.random.default_rng(4).normal(size=(6, 2)).astype(np.float32)
STATISTICS = statistics_parameters()
DISCOVERY = discovery_parameters()
BY_SUMS = [STATISTICS, DISCOVERY, labelling_parameters()]


def phone(
    store: MemoryStore,
    policy: Policy | None = None,
    when: datetime = NOON,
    runs_until: datetime | None = None,
) -> Phone:
    return Phone(
        store,
        HeardPoints("points", 2),
        policy,
        summation=IDEAL,
        clock=when.timestamp,
        uptime=(runs_until or when).timestamp,
    )


def heard() -> MemoryStore:
    store = MemoryStore(POINTS, ["bus", "park", None] * 2)
    phone(store)  # notes whose embeddings these are
    return store


def spend(store: MemoryStore, epsilon: float, delta: float, unit: Unit, phase: bytes) -> None:
    """What the phone has released before, a hundred days ago."""
    expenses = [
        Expense(Release("before", each, *cost, "some noise"), Approximate(*cost))
        for each in LEDGER_UNITS
        for cost in [(epsilon, delta) if each is unit else (0.0, 0.0)]
    ]
    for entry in Ledger(store.ledger()).append(phase, expenses, NOON.date().replace(month=1)):
        store.append_ledger(entry)


def changed(parameters: Any, **changes: Any) -> Any:
    return msgspec.structs.replace(parameters, **changes)


@pytest.mark.parametrize("unit", LEDGER_UNITS)
@pytest.mark.parametrize(("span", "limit"), [("yearly_", 5.0), ("lifetime_", 9.0)])
def test_an_exhausted_budget_is_refused_by_name_in_either_unit(
    unit: Unit, span: str, limit: float
) -> None:
    whose = "phone_" if unit is Unit.PHONE else ""
    rule = Rule(f"largest_{span}{whose}epsilon")
    policy = Policy(**{f"largest_yearly_{whose}epsilon": 50.0, rule: limit})  # type: ignore[arg-type]
    store = heard()
    spend(store, limit, 0.0, unit, OTHER)
    before = store.to_bytes()
    for task in (first_task(STATISTICS), first_task(DISCOVERY)):
        with pytest.raises(RefusedError, match=f"^{rule}: .*already spent") as caught:
            phone(store, policy).answer(task)
        assert caught.value.rule is rule
        assert store.to_bytes() == before
    # A year after it was spent, that of a year is free again.
    later = NOON.replace(year=2027)
    free = phone(store, policy, later)
    if span == "yearly_":
        assert free.answer(first_task(STATISTICS)) is not None
    else:
        with pytest.raises(RefusedError, match=f"^{rule}"):
            free.answer(first_task(STATISTICS))


@pytest.mark.parametrize("parameters", BY_SUMS, ids=lambda each: each.kind)
def test_what_was_agreed_to_does_not_change_within_a_phase(parameters: Any) -> None:
    store = heard()
    assert phone(store).answer(first_task(parameters)) is not None
    other = DISCOVERY if parameters is STATISTICS else STATISTICS
    for begins, said in (
        (first_task(changed(parameters, phones=150), sum_id=OTHER), "phones of the phase"),
        (first_task(changed(parameters, corrupted=0.06), sum_id=OTHER), "corrupted of the phase"),
        (first_task(other, sum_id=OTHER), "kind of the phase"),
        (first_task(parameters, index=5, sum_id=OTHER), "this phone's number was 0 and is 5"),
    ):
        before = store.to_bytes()
        with pytest.raises(RefusedError, match=f"^changed: .*{said}") as caught:
            phone(store).answer(begins)
        assert caught.value.rule is Rule.CHANGED
        assert store.to_bytes() == before
    # A server that lost its sum may open another one, of the same phase.
    assert phone(store).answer(first_task(parameters, sum_id=OTHER)) is not None


@pytest.mark.parametrize("parameters", BY_SUMS, ids=lambda each: each.kind)
def test_a_phase_that_has_released_is_not_begun_again(parameters: Any) -> None:
    store = heard()
    for task in (first_task(parameters), *rounds()[:2]):
        assert phone(store).answer(task) is not None
    ledger = store.ledger()
    assert len(ledger) == 2
    for forget in (False, True):
        if forget:
            phone(store).leave_phase()
        for begins in (
            first_task(parameters, sum_id=OTHER),
            first_task(changed(parameters, phones=200), sum_id=OTHER),
            first_task(learning_parameters()),  # nor as another kind, under the same name
        ):
            with pytest.raises(
                RefusedError, match="released already; a step is released once"
            ) as caught:
                phone(store, Policy.per_recording()).answer(begins)
            assert caught.value.rule is Rule.REPEATED
            assert store.ledger() == ledger


@pytest.mark.parametrize(
    "stricter",
    [Policy(largest_phone_epsilon=0.1), Policy(largest_yearly_epsilon=0.1)],
    ids=["phase", "year"],
)
def test_a_release_is_weighed_again_when_it_leaves(stricter: Policy) -> None:
    """Whoever tightens the limits in the midst of a phase is obeyed."""
    store = heard()
    phone(store).answer(first_task(STATISTICS))
    share, mask, _ = rounds()
    phone(store, stricter).answer(share)
    before = store.to_bytes()
    with pytest.raises(RefusedError, match=r"largest_(phone|yearly)_epsilon"):
        phone(store, stricter).answer(mask)
    assert store.to_bytes() == before
    assert store.ledger() == ()
    assert phone(store).answer(mask) is not None


def test_a_clock_that_is_put_forward_or_back_gives_no_year_back() -> None:
    store = heard()
    for task in (first_task(STATISTICS), *rounds()[:2]):
        assert phone(store).answer(task) is not None
    spent = epsilon_at(
        Policy.largest_yearly_phone_delta, Ledger(store.ledger()).expenses_of(Unit.PHONE)
    )
    policy, later = Policy(largest_yearly_phone_epsilon=1.1 * spent), NOON + timedelta(days=800)
    again, twin = first_task(STATISTICS, OTHER, sum_id=OTHER), store.to_bytes()
    for clock in (later, NOON, NOON - timedelta(days=800), later):
        with pytest.raises(RefusedError, match="largest_yearly_phone_epsilon"):
            phone(store, policy, clock, runs_until=NOON).answer(again)
    # Another that has run all the while.
    assert phone(MemoryStore.from_bytes(twin), policy, later).answer(again) is not None


@pytest.mark.slow
@settings(max_examples=examples(25))
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["statistics", "discovery"]),
            st.floats(0.05, 1.5),
            st.integers(0, 200),
            st.booleans(),
        ),
        max_size=14,
    )
)
def test_no_series_of_phases_spends_more_than_the_budgets(
    phases: list[tuple[str, float, int, bool]],
) -> None:
    """Whatever a server asks for, and whether or not it lets a phase go on."""
    store, policy = heard(), Policy(largest_yearly_phone_epsilon=3.0, largest_lifetime_epsilon=6.0)
    today = NOON.timestamp()
    for number, (kind, size, days, goes_on) in enumerate(phases):
        today += days * 86_400
        when = datetime.fromtimestamp(today, UTC)
        phase = bytes(15) + bytes([number])
        parameters = (
            changed(STATISTICS, noise=4 / size)
            if kind == "statistics"
            else changed(DISCOVERY, cells_noise=4 / size)
        )
        try:
            for task in (first_task(parameters, phase, sum_id=phase), *rounds(phase))[
                : 1 + 2 * goes_on
            ]:
                phone(store, policy, when).answer(task)
        except RefusedError:
            pass
        ledger = Ledger(store.ledger())
        year = ledger.expenses_of(Unit.PHONE, today=when.date())
        assert epsilon_at(policy.largest_yearly_phone_delta, year) <= 3.0 * (1 + 1e-9)
        life = ledger.expenses_of(Unit.RECORDING)
        assert epsilon_at(policy.largest_lifetime_delta, life) <= 6.0 * (1 + 1e-9)


WHATEVER = st.sampled_from([1e-9, 1e-8, 1e-6, 1e-3, 0.1, 1, 3, 50, 1e3, 1e5, 1e9, 1e100, 1e308])


@settings(max_examples=examples(200))
@given(
    st.one_of(
        st.builds(
            lambda *budget: learning_parameters(budget=Budget(*budget)),
            *(WHATEVER, WHATEVER, WHATEVER, WHATEVER),
        ),
        st.builds(
            lambda delta, *budget: learning_parameters(
                budget=Budget(*budget), geometry=Geometry.SPHERICAL, delta=delta, recordings=10**6
            ),
            st.sampled_from([1e-300, 1e-12, 0.5]),
            *(WHATEVER, WHATEVER, WHATEVER, WHATEVER),
        ),
        st.builds(
            lambda noise, contacts, delta: statistics_parameters(
                noise=noise, contacts=contacts, delta=delta
            ),
            *(WHATEVER, st.sampled_from([1, 5, 10_000]), st.sampled_from([1e-300, 1e-12, 0.5])),
        ),
        st.builds(
            lambda cells, labels, delta: discovery_parameters(
                cells_noise=cells, labels_noise=labels, delta=delta
            ),
            *(WHATEVER, WHATEVER, st.sampled_from([1e-300, 1e-12, 0.5])),
        ),
    ),
    st.sampled_from([Policy(), Policy.per_recording(), Policy.per_recording(largest_epsilon=1e9)]),
)
def test_any_price_that_a_server_names_is_accepted_or_refused_by_name(
    parameters: Parameters, policy: Policy
) -> None:
    """And what a phone as it comes accepts, costs little by a plain reading of its noise."""
    try:
        refused = list(policy.refusals_of_phase(parameters, Ledger(), NOON.date()))
    except InvalidParametersError:  # which a phone says as a refusal
        return
    if not refused and policy == Policy():
        assert not isinstance(parameters, PhaseParameters) or parameters.budget.clustering < 0.01
        if isinstance(parameters, DiscoveryParameters):
            assert min(parameters.cells_noise, parameters.labels_noise) > 1
        if isinstance(parameters, StatisticsParameters):
            assert parameters.noise > 1


HELD = (0, 1, 37, 38, 999, 1000)


def of_points(epsilon: float, geometry: Geometry, phase: int) -> tuple[bytes, PhaseParameters]:
    budget = Budget(clustering=epsilon, selection=epsilon / 4, centroid_vote=0.01, label_vote=0.01)
    named = learning_parameters(geometry=geometry, recordings=5, delta=1e-8, budget=budget)
    return phase.to_bytes(16), named


@pytest.mark.parametrize(
    "geometry", [Geometry.SPHERICAL, pytest.param(Geometry.EUCLIDEAN, marks=pytest.mark.slow)]
)
def test_phones_that_took_part_alike_go_on_alike_however_much_they_hold(
    geometry: Geometry,
) -> None:
    """By what a phone refuses later, a server would learn how many recordings it held."""
    policy = Policy.per_recording(
        largest_phone_epsilon=2.0, largest_yearly_phone_epsilon=3.0, largest_phone_delta=1e-4
    )
    points = {held: np.resize(POINTS, (held, 2)) for held in HELD}
    stores = {}
    for held in HELD:
        stores[held] = MemoryStore(points[held])
        phone(stores[held])
        for number in range(3):
            identifier, parameters = of_points(3e-4, geometry, number)
            task = Cluster(phase=identifier, index=0, parameters=parameters)
            assert phone(stores[held], policy).answer(task) is not None
    assert len({store.ledger() for store in stores.values()}) == 1, "the ledgers differ"

    def said(held: int, epsilon: float) -> str:
        identifier, parameters = of_points(epsilon, geometry, 3)
        # Of a copy, as if the server had not asked.
        copy = MemoryStore.from_bytes(stores[held].to_bytes(), points[held])
        try:
            phone(copy, policy).answer(Cluster(phase=identifier, index=0, parameters=parameters))
        except RefusedError as refused:
            return str(refused)
        return ""

    low, high = 1e-6, 1e-2
    assert not said(37, low)
    for _ in range(12):  # a server that narrows down where phones begin to refuse
        middle = math.sqrt(low * high)
        answers = {said(held, middle) for held in (37, 38)}
        assert len(answers) == 1
        low, high = (low, middle) if answers != {""} else (middle, high)
    assert {said(held, high) for held in HELD} == {said(37, high)} != {""}
    assert {said(held, low) for held in HELD} == {""}
