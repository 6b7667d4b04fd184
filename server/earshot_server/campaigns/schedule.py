"""Schedule of a campaign: when each phase is due, may open and must have opened.

A slot of a week is from the campaign's first day + 7k days to seven days later, in UTC. Its phase
opens when the slot has ended, at most 14 days later. A phone is in one phase at a time, so phases
run one after another, those that have been due for longest first.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from datetime import UTC, date, datetime, time, timedelta

import msgspec

from earshot_protocol.phases.plan import Plan
from earshot_protocol.secure_sum.interface import Asks
from earshot_server.campaigns.campaign import WEEK, Campaign

LATEST = timedelta(days=14)
"""Time after which a phase that has not opened is missed."""
GATHERING = timedelta(days=2)
"""Time in which phones may join a phase."""
STEP = timedelta(hours=12)
"""Time for which a step waits for phones."""


class PhaseKind(enum.StrEnum):
    """Kind of a campaign's phase."""

    STATISTICS = "statistics"
    DISCOVERY = "discovery"


class Lengths(msgspec.Struct, frozen=True, kw_only=True):
    """Longest times from a phase's opening to its end, if a helper answers immediately.

    Attributes:
        statistics: Of a phase that counts the contacts of a week.
        discovery: Of a discovery phase; None without any.
    """

    statistics: timedelta
    discovery: timedelta | None

    def of(self, kind: PhaseKind) -> timedelta:
        """Return the longest time of a phase of this kind."""
        if kind is PhaseKind.DISCOVERY and self.discovery is not None:
            return self.discovery
        return self.statistics

    def last_day(self, phase: PlannedPhase) -> date:
        """Return the last day on which phones may send something for a phase, in UTC."""
        return (phase.last + self.of(phase.kind)).date()


def length(plan: Plan) -> timedelta:
    """Return the longest time from a phase's opening to its end, if a helper answers at once."""
    asked = sum(step.asks is not Asks.HELPER for step in plan.steps)
    return GATHERING + asked * STEP


class PlannedPhase(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of a campaign.

    Attributes:
        kind: Kind of the phase.
        number: Number of the phase among those of its kind, from 1.
        since: First day (UTC) whose contacts it counts; None for a discovery.
        until: Day after the last one; None for a discovery.
        opens: Moment from which it may open.
        last: Last moment at which it may open.
        expected: Moment at which it opens if every phase before it takes its longest time.
        latest: The same if every discovery before it is repeated as often as the plan allows.
        confusion: Whether its sum also has a confusion matrix of the map that names contacts then.
    """

    kind: PhaseKind
    number: int
    since: date | None
    until: date | None
    opens: datetime
    last: datetime
    expected: datetime
    latest: datetime
    confusion: bool = False

    @property
    def late(self) -> bool:
        """Whether phases before it make it open later than it may."""
        return self.expected > self.opens

    @property
    def missed(self) -> bool:
        """Whether phases before it, and their repetitions, may make it open too late."""
        return self.latest > self.last


FREE = datetime.min.replace(tzinfo=UTC)
"""Moment at which phones were in no phase yet."""


def scheduled(
    campaign: Campaign,
    lengths: Lengths,
    free: datetime = FREE,
    further_weeks: int = 0,
    confusion: bool = False,
) -> tuple[PlannedPhase, ...]:
    """Return all phases of a campaign in the order in which they open.

    Args:
        campaign: The campaign.
        lengths: Longest times of phases.
        free: Moment at which the last phase before the campaign has ended.
        further_weeks: Weeks after the last one for which the campaign goes on likewise.
        confusion: Whether the first sum after each map has a confusion matrix.
    """
    due = list(_due(campaign, campaign.weeks + further_weeks))
    retries = campaign.discovery.retries if campaign.discovery else 0
    expected = _openings(due, lengths, free, retries=0)
    latest = _openings(due, lengths, free, retries)
    phases, new_map = [], False
    for (kind, number, day), start, last_start in zip(due, expected, latest, strict=True):
        counts = kind is PhaseKind.STATISTICS
        # A campaign that follows likewise begins with a map of its file as well.
        new_map = new_map or (bool(campaign.map) and (number - 1) % campaign.weeks == 0)
        phases.append(
            PlannedPhase(
                kind=kind,
                number=number,
                since=day - WEEK if counts else None,
                until=day if counts else None,
                opens=midnight(day),
                last=midnight(day + LATEST),
                expected=start,
                latest=last_start,
                confusion=confusion and counts and new_map,
            )
        )
        new_map = not counts
    return tuple(phases)


_Due = tuple[PhaseKind, int, date]


def _due(campaign: Campaign, weeks: int) -> Iterable[_Due]:
    """Return kind, number and day of every phase, in order; on one day the week's sum is first."""
    due = [
        (campaign.begins + number * WEEK, 0, PhaseKind.STATISTICS, number)
        for number in range(1, weeks + 1)
    ]
    if campaign.discovery is not None:
        # Without a map to begin with, the first discovery is before the first week's end.
        first, every = int(bool(campaign.map)), campaign.discovery.every_weeks
        due += [
            (campaign.begins + every * place * WEEK, 1, PhaseKind.DISCOVERY, place - first + 1)
            for place in range(first, math.ceil(weeks / every))
        ]
    return [(kind, number, day) for day, _, kind, number in sorted(due)]


def _openings(
    due: Iterable[_Due], lengths: Lengths, free: datetime, retries: int
) -> list[datetime]:
    """Return when each phase opens if each takes its longest time and discoveries are repeated."""
    found = []
    for kind, _, day in due:
        found.append(max(midnight(day), free))
        times = 1 + retries if kind is PhaseKind.DISCOVERY else 1
        free = found[-1] + times * lengths.of(kind)
    return found


def due_before(day: date, kind: PhaseKind, due: date) -> bool:
    """Return whether a phase is due before another campaign takes over on a day.

    On that day itself the last week is counted, but no discovery is made.
    """
    return due < day or (due == day and kind is PhaseKind.STATISTICS)


def midnight(day: date) -> datetime:
    """Return the moment at which a day begins, in UTC."""
    return datetime.combine(day, time(), UTC)
