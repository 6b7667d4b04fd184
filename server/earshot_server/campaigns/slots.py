"""What became of a campaign's phases: the record from which its series is made.

The server makes these records from its tables, and a simulation from the phases that it ran.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterable
from datetime import date, datetime

import msgspec

from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.statistics import Statistics, StatisticsParameters
from earshot_server.campaigns.schedule import PhaseKind, PlannedPhase

_BYTES = 16


class SlotState(enum.StrEnum):
    """State of a planned phase."""

    PLANNED = "planned"
    """Its time has not come."""
    DUE = "due"
    """It may open, and waits for phases before it."""
    RUNNING = "running"
    PUBLISHED = "published"
    FAILED = "failed"
    MISSED = "missed"
    """It did not open in time, and never will."""
    STOPPED = "stopped"
    """The campaign was stopped before it opened."""


class Slot(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one planned phase.

    Attributes:
        planned: The phase as the plan has it.
        state: Its state.
        late: Whether it opened later than it might have.
        attempts: Times that it was started.
        phase: Identifier of the last attempt, in hexadecimal; empty before the first.
        reason: Reason of a failure; empty without one.
        opened: Moment at which the last attempt opened; None before the first.
        ended: Moment at which it ended; None before.
        enrolled: Phones of the campaign's cohorts that were enrolled when it opened.
        map: Identifier of the discovery that named unlabelled contacts, in hexadecimal; empty
            without one.
        mapped: Moment at which that discovery ended; None without one.
        result: Published counts of a week; None without any.
    """

    planned: PlannedPhase
    state: SlotState
    late: bool = False
    attempts: int = 0
    phase: str = ""
    reason: str = ""
    opened: datetime | None = None
    ended: datetime | None = None
    enrolled: int = 0
    map: str = ""
    mapped: datetime | None = None
    result: Statistics | None = None


def next_opening(slots: Iterable[Slot]) -> datetime | None:
    """Return the moment from which the next phase may open; None if none will."""
    waiting = (SlotState.PLANNED, SlotState.DUE)
    return min((slot.planned.opens for slot in slots if slot.state in waiting), default=None)


def phase_identifier(digest: str, kind: PhaseKind, number: int, attempt: int) -> bytes:
    """Return the identifier of an attempt at a phase, 16 bytes.

    It follows from the plan, so that a phone that took part refuses the same phase after the server
    was restored from a backup.

    Args:
        digest: Digest of the plan, in hexadecimal.
        kind: Kind of the phase.
        number: Number of the phase among those of its kind, from 1.
        attempt: Number of the attempt, from 1.
    """
    told = f"earshot campaign {digest} {kind} {number} {attempt}".encode()
    return hashlib.sha256(told).digest()[:_BYTES]


def of_slot(
    week: StatisticsParameters,
    since: date,
    until: date,
    places: AgreedPlaces | None,
    phones: int,
) -> StatisticsParameters:
    """Return the parameters of the phase that counts one slot.

    Args:
        week: Parameters of a week's sum, of the plan (`Planning.week`).
        since: First day of the slot.
        until: Day after the last one.
        places: Places of the newest map; None without one.
        phones: Most phones that may join.
    """
    return msgspec.structs.replace(week, since=since, until=until, places=places, phones=phones)
