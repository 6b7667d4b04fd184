"""Slots of campaigns: seven days each, whatever the calendar does, and phases one after another."""

from __future__ import annotations

import itertools
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.campaigns import campaign, changed

from earshot_client.expiry import KEEP_DAYS
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.campaigns.campaign import MOST_WEEKS, RepeatedDiscovery, SumOptions
from earshot_server.campaigns.plan import planned
from earshot_server.campaigns.schedule import Lengths, PhaseKind, midnight, scheduled

DAY = timedelta(days=1)
BELL = Lengths(statistics=4 * DAY, discovery=8 * DAY)
STATISTICS, DISCOVERY = PhaseKind


@pytest.mark.parametrize(
    ("begins", "number", "since", "until"),
    [
        (date(2026, 12, 28), 1, date(2026, 12, 28), date(2027, 1, 4)),  # 2026 has 53 weeks
        (date(2026, 1, 1), 53, date(2026, 12, 31), date(2027, 1, 7)),
        (date(2028, 2, 28), 1, date(2028, 2, 28), date(2028, 3, 6)),  # a leap year
        (date(2027, 2, 28), 1, date(2027, 2, 28), date(2027, 3, 7)),
        (date(2100, 2, 27), 1, date(2100, 2, 27), date(2100, 3, 6)),  # not a leap year
        (date(2027, 3, 24), 1, date(2027, 3, 24), date(2027, 3, 31)),  # clocks change
    ],
)
def test_a_slot_is_seven_days(begins: date, number: int, since: date, until: date) -> None:
    phases = scheduled(campaign(begins=begins, weeks=53, discovery=None), BELL)
    phase = phases[number - 1]
    assert (phase.kind, phase.number) == (STATISTICS, number)
    assert (phase.since, phase.until) == (since, until)
    assert phase.opens == datetime(until.year, until.month, until.day, tzinfo=UTC)
    assert phase.last == phase.opens + timedelta(days=14)


@given(
    begins=st.dates(date(2000, 1, 1), date(2999, 12, 31)),
    weeks=st.integers(1, MOST_WEEKS),
    every=st.integers(1, MOST_WEEKS),
    retries=st.integers(0, 2),
    mapped=st.booleans(),
    confusion=st.booleans(),
)
def test_days_are_counted_once_and_phases_follow_each_other(
    begins: date, weeks: int, every: int, retries: int, mapped: bool, confusion: bool
) -> None:
    chosen = campaign(
        begins=begins,
        weeks=weeks,
        map="0" * 32 if mapped else "",
        discovery=RepeatedDiscovery(every_weeks=every, retries=retries),
    )
    phases = scheduled(chosen, BELL, confusion=confusion)
    counted = [phase for phase in phases if phase.kind is STATISTICS]
    days = [phase.since + number * DAY for phase in counted if phase.since for number in range(7)]
    assert days == [begins + number * DAY for number in range(7 * weeks)]
    found = [phase.opens.date() for phase in phases if phase.kind is DISCOVERY]
    first = begins + timedelta(weeks=every if mapped else 0)
    assert found == [
        day for n in range(weeks) if (day := first + timedelta(weeks=n * every)) < chosen.ends
    ]
    matched = [phase.number for phase in counted if phase.confusion]
    assert matched == ([1 + n * every for n in range(weeks) if n * every < weeks] * confusion)
    for times, name in ((1, "expected"), (1 + retries, "latest")):
        for one, other in itertools.pairwise(phases):
            length = BELL.of(one.kind) * (times if one.kind is DISCOVERY else 1)
            start, following = getattr(one, name), getattr(other, name)
            assert following == max(other.opens, start + length)
            assert start >= one.opens


@pytest.mark.parametrize("summation", [SummationName.BELL, SummationName.TWO_OPERATORS])
def test_a_phone_still_has_the_contacts_of_the_latest_phase(summation: SummationName) -> None:
    plan = planned(campaign(discovery=None, sum=SumOptions(summation=summation)))
    for phase in plan.phases:
        assert phase.since is not None
        assert plan.lengths.last_day(phase) < phase.since + timedelta(days=KEEP_DAYS)


@pytest.mark.parametrize(
    ("summation", "week", "discovery"),
    [(SummationName.BELL, 4.0, 8.0), (SummationName.TWO_OPERATORS, 2.5, 3.5)],
)
def test_how_long_phases_take(summation: SummationName, week: float, discovery: float) -> None:
    found = planned(changed(campaign(weeks=1), "sum", summation=summation)).lengths
    assert (found.statistics, found.discovery) == (week * DAY, discovery * DAY)


def test_discoveries_that_are_repeated_too_often_make_weeks_miss_their_moment() -> None:
    fitting, missing = (campaign(discovery=RepeatedDiscovery(retries=n)) for n in (1, 2))
    assert not any(phase.missed for phase in scheduled(fitting, BELL))
    missed = [phase for phase in scheduled(missing, BELL) if phase.missed]
    # Three discoveries of eight days come first; later ones follow a week of four days as well.
    assert [phase.number for phase in missed if phase.kind is STATISTICS][:3] == [1, 14, 15]
    assert missed[0].latest == midnight(date(2027, 1, 4)) + 24 * DAY
    assert missed[1].latest == midnight(date(2027, 4, 5)) + 28 * DAY
    assert all(not phase.late for phase in scheduled(campaign(discovery=None), BELL))


def test_phases_are_late_where_others_take_their_longest_time() -> None:
    late = [(each.kind, each.number) for each in scheduled(campaign(), BELL) if each.late]
    weeks = [(STATISTICS, number) for number in (1, 14, 15, 27, 28, 40, 41)]
    assert sorted(late) == sorted([*weeks, *((DISCOVERY, number) for number in (2, 3, 4))])


def test_phases_wait_for_those_of_the_campaign_before() -> None:
    free = midnight(date(2027, 1, 4)) + 3 * DAY
    first, *_ = scheduled(campaign(), BELL, free)
    assert (first.kind, first.expected, first.late) == (DISCOVERY, free, True)
