"""The agenda of a campaign: one phase at a time, the oldest first, and nothing comes back."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, date, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.campaigns import campaign

from earshot_server.campaigns.agenda import Agenda, Attempt, PlanPlace, agenda, is_late
from earshot_server.campaigns.schedule import (
    LATEST,
    Lengths,
    PhaseKind,
    PlannedPhase,
    scheduled,
)
from earshot_server.campaigns.slots import SlotState

DAY = timedelta(days=1)
LENGTHS = Lengths(statistics=4 * DAY, discovery=8 * DAY)
BEGINS = datetime(2027, 1, 4, tzinfo=UTC)
PHASES = scheduled(campaign(weeks=6, discovery=None), LENGTHS)
WITH_MAPS = scheduled(campaign(weeks=30), LENGTHS)
FIRST = PlanPlace(PhaseKind.STATISTICS, 1)


def at(days: float, phases: tuple[PlannedPhase, ...] = PHASES, **told: object) -> Agenda:
    """The agenda so many days after the campaign's first one."""
    usual: dict[str, object] = {"tried": {}, "missed": frozenset()}
    return agenda(phases, now=BEGINS + days * DAY, **(usual | told))  # type: ignore[arg-type]


def failed(*, spent: bool = False, stopped: bool = False) -> Attempt:
    opened = BEGINS + 7 * DAY
    return Attempt(state=SlotState.FAILED, opened=opened, spent=spent, stopped=stopped)


def running() -> Attempt:
    return Attempt(state=SlotState.RUNNING, opened=BEGINS + 7 * DAY)


@pytest.mark.parametrize(
    ("days", "state"),
    [
        (6.999, SlotState.PLANNED),
        (7, SlotState.DUE),
        (21, SlotState.DUE),
        (21.001, SlotState.MISSED),
    ],
)
def test_a_slot_opens_from_its_end_until_14_days_later(days: float, state: SlotState) -> None:
    found = at(days)
    assert found.states[0] is state
    assert (found.next is PHASES[0]) == (state is SlotState.DUE)
    assert (found.missed[:1] == PHASES[:1]) == (state is SlotState.MISSED)


def test_the_oldest_opens_first_and_alone() -> None:
    assert at(15).next is PHASES[0]
    assert at(15, tried={FIRST: [running()]}).next is None
    assert at(15, tried={FIRST: [failed(spent=True)]}).next is PHASES[1]


def test_a_campaign_that_takes_over_leaves_the_last_week() -> None:
    found = at(25, until=date(2027, 1, 25))
    assert found.states[:4] == (SlotState.MISSED, SlotState.DUE, SlotState.DUE, SlotState.STOPPED)
    taken = agenda(
        WITH_MAPS, {}, frozenset(), BEGINS + 7 * DAY, until=date(2027, 1, 4) + 13 * 7 * DAY
    )
    left = [p for p, s in zip(WITH_MAPS, taken.states, strict=True) if s is not SlotState.STOPPED]
    assert [each.number for each in left if each.kind is PhaseKind.DISCOVERY] == [1]
    assert [each.number for each in left if each.kind is PhaseKind.STATISTICS][-1] == 13


@pytest.mark.parametrize(
    ("attempts", "again"),
    [
        ([failed()], True),
        ([failed(spent=True)], False),
        ([failed(stopped=True)], False),
        ([failed(), failed()], False),
    ],
)
def test_a_week_is_repeated_once_if_nobody_paid(attempts: list[Attempt], again: bool) -> None:
    found = at(9, tried={FIRST: attempts})
    assert found.states[0] is (SlotState.DUE if again else SlotState.FAILED)
    assert found.attempt == (len(attempts) + 1 if again else 0)
    assert at(22, tried={FIRST: attempts}).states[0] is SlotState.FAILED


def test_an_attempt_follows_another_after_a_gathering_at_the_earliest() -> None:
    attempts = {FIRST: [failed()]}
    before = at(8.999, tried=attempts)
    assert (before.next, before.states[0]) == (None, SlotState.DUE)
    assert at(9, tried=attempts).next is PHASES[0]


def test_too_late_to_be_repeated_is_noted_for_good() -> None:
    attempts = {FIRST: [failed()]}
    late = at(21.001, tried=attempts)
    assert (late.states[0], late.missed) == (SlotState.FAILED, PHASES[:1])
    back = at(10, tried=attempts, missed={FIRST})
    assert (back.states[0], back.missed, back.next) == (SlotState.FAILED, (), None)


@pytest.mark.parametrize(("days", "state"), [(8.999, SlotState.DUE), (9, SlotState.MISSED)])
def test_what_may_have_been_repeated_before_a_restore_is_missed(
    days: float, state: SlotState
) -> None:
    restored = BEGINS + days * DAY
    assert at(10, restored=restored).states[0] is state
    assert at(10, restored=restored, tried={FIRST: [running()]}).states[0] is SlotState.RUNNING


def test_an_attempt_that_may_have_been_made_before_a_restore_is_not_repeated() -> None:
    attempts = {FIRST: [msgspec.structs.replace(failed(), opened=BEGINS + 8 * DAY)]}
    states = [
        at(11, tried=attempts, restored=restored).states[0]
        for restored in (None, BEGINS + 6.9 * DAY, BEGINS + 8 * DAY, BEGINS + 8.1 * DAY)
    ]
    assert states == [SlotState.DUE, SlotState.DUE, SlotState.FAILED, SlotState.DUE]


def test_a_discovery_that_phones_paid_for_is_repeated_from_the_reserve() -> None:
    first, second = PlanPlace(PhaseKind.DISCOVERY, 1), PlanPlace(PhaseKind.DISCOVERY, 2)
    tried = {first: [failed(spent=True)]}
    assert at(8, WITH_MAPS, tried=tried).states[0] is SlotState.FAILED
    assert at(9, WITH_MAPS, tried=tried, retries=1).next is WITH_MAPS[0]
    place = WITH_MAPS.index(next(p for p in WITH_MAPS if PlanPlace.of(p) == second))
    used = {first: [failed(spent=True), running()], second: [failed(spent=True)]}
    assert at(95, WITH_MAPS, tried=used, retries=1).states[place] is SlotState.FAILED
    assert at(95, WITH_MAPS, tried=used, retries=2).states[place] is SlotState.DUE
    free = {first: [failed(), running()], second: [failed(spent=True)]}
    assert at(95, WITH_MAPS, tried=free, retries=1).states[place] is SlotState.DUE


def test_a_campaign_is_over_when_everything_is_decided() -> None:
    assert not at(7).over
    assert at(100).over
    last = {PlanPlace.of(PHASES[-1]): [running()]}
    assert not at(100, tried=last).over


def test_late_is_a_day_after_the_slot_has_ended() -> None:
    assert not is_late(PHASES[0], PHASES[0].opens + 0.999 * DAY)
    assert is_late(PHASES[0], PHASES[0].opens + DAY)


@given(
    st.lists(
        st.tuples(
            st.floats(-40, 40).map(lambda days: days * DAY),
            st.sampled_from([None, "published", "failed", "spent", "stopped"]),
        ),
        max_size=80,
    )
)
def test_whatever_the_clock_does(turns: list[tuple[timedelta, str | None]]) -> None:
    """It jumps and is set back; phases end or stay; each turn obeys what it finds."""
    tried: defaultdict[PlanPlace, list[Attempt]] = defaultdict(list)
    missed: set[PlanPlace] = set()
    opened: list[tuple[PlannedPhase, datetime]] = []
    now, under_way = BEGINS, None
    for step, came in turns:
        now += step
        if under_way is not None and came is not None:
            state = SlotState.PUBLISHED if came == "published" else SlotState.FAILED
            spent, stopped = came in ("spent", "published"), came == "stopped"
            last = Attempt(state=state, opened=now, spent=spent, stopped=stopped)
            tried[under_way][-1] = last
            under_way = None
        found = agenda(WITH_MAPS, tried, missed, now, retries=1)
        assert not missed.intersection(map(PlanPlace.of, found.missed))
        missed.update(map(PlanPlace.of, found.missed))
        chosen = found.next
        if chosen is None:
            continue
        place = PlanPlace.of(chosen)
        assert under_way is None
        assert place not in missed
        assert chosen.opens <= now <= chosen.opens + LATEST
        before = tried[place]
        assert found.attempt == len(before) + 1 <= 2
        for each in before:
            assert not each.stopped
            assert not each.spent or place.kind is PhaseKind.DISCOVERY
        older = WITH_MAPS[: WITH_MAPS.index(chosen)]
        assert all(tried[PlanPlace.of(p)] or PlanPlace.of(p) in missed for p in older)
        before.append(Attempt(state=SlotState.RUNNING, opened=now))
        opened.append((chosen, now))
        under_way = place
    counted = [PlanPlace.of(phase) for phase, _ in opened]
    assert all(counted.count(place) <= 2 for place in counted)
