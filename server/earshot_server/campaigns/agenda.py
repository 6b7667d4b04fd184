"""Agenda of a campaign: which phase opens next, which are over, and which are missed.

It follows from the plan, from what was tried and missed before, and from the time. Nothing that was
opened or missed comes back, whatever the clock does then.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence, Set
from datetime import date, datetime, timedelta
from typing import NamedTuple

import msgspec

from earshot_protocol.privacy.ledger import YEAR
from earshot_server.campaigns.schedule import GATHERING, PhaseKind, PlannedPhase, due_before
from earshot_server.campaigns.slots import SlotState

PUNCTUAL = timedelta(days=1)
"""Time after which a phase that has not opened is late."""
MOST_ATTEMPTS = 2


class PlanPlace(NamedTuple):
    """Place of a phase in its plan.

    Attributes:
        kind: Kind of the phase.
        number: Number of the phase among those of its kind, from 1.
    """

    kind: PhaseKind
    number: int

    @classmethod
    def of(cls, phase: PlannedPhase) -> PlanPlace:
        """Return the place of a planned phase."""
        return cls(phase.kind, phase.number)


class Attempt(msgspec.Struct, frozen=True, kw_only=True):
    """An attempt at a phase.

    Attributes:
        state: `RUNNING`, `PUBLISHED` or `FAILED`.
        opened: Moment at which it opened.
        stopped: Whether an operator ended it.
        spent: Whether a phone may have written its cost into its ledger.
    """

    state: SlotState
    opened: datetime
    stopped: bool = False
    spent: bool = False


class Agenda(NamedTuple):
    """Agenda at one moment.

    Attributes:
        states: State of each planned phase, in the order of the plan.
        missed: Phases that open no more, and were not known to.
        next: Phase that opens now; None for none.
        attempt: Number of that attempt, from 1.
    """

    states: tuple[SlotState, ...]
    missed: tuple[PlannedPhase, ...]
    next: PlannedPhase | None
    attempt: int

    @property
    def over(self) -> bool:
        """Whether nothing more will open, and nothing is open."""
        return not _UNDECIDED.intersection(self.states)


_UNDECIDED = frozenset((SlotState.PLANNED, SlotState.DUE, SlotState.RUNNING))


def agenda(
    phases: Sequence[PlannedPhase],
    tried: Mapping[PlanPlace, Sequence[Attempt]],
    missed: Set[PlanPlace],
    now: datetime,
    *,
    until: date | None = None,
    restored: datetime | None = None,
    retries: int = 0,
) -> Agenda:
    """Return the agenda of a campaign.

    A phase opens when its slot has ended and at most 14 days later, the oldest first, one at a
    time. One that failed may open once more in that time, if no phone may have paid for it or, of a
    discovery, if the plan holds the cost of a repeated one in reserve.

    Args:
        phases: Planned phases, in the order in which they open.
        tried: Attempts at each phase so far, oldest first.
        missed: Phases that are known to open no more.
        now: The present moment.
        until: Day on which another campaign takes over; None for none.
        restored: Moment at which the server was last restored; None if it never was.
        retries: Discoveries in 366 days whose repeated cost is held in reserve.
    """
    left = retries - _repeated(tried, now)

    def untried(phase: PlannedPhase) -> SlotState:
        if PlanPlace.of(phase) in missed:
            return SlotState.MISSED
        if until is not None and not due_before(until, phase.kind, phase.opens.date()):
            return SlotState.STOPPED
        if now > phase.last or is_lost(phase, restored):
            return SlotState.MISSED
        return SlotState.DUE if now >= phase.opens else SlotState.PLANNED

    states, found = [], []
    for phase in phases:
        place = PlanPlace.of(phase)
        attempts = tried.get(place, ())
        again = (
            place not in missed
            and _repeatable(phase.kind, attempts, left)
            and not _repeats_itself(phase, attempts[-1], restored)
        )
        gone = now > phase.last
        state = untried(phase) if not attempts else attempts[-1].state
        states.append(SlotState.DUE if again and not gone else state)
        if place not in missed and ((again and gone) or state is SlotState.MISSED):
            found.append(phase)
    chosen = _first_due(phases, states)
    attempts = tried.get(PlanPlace.of(chosen), ()) if chosen else ()
    # An attempt that a backup does not know is followed by no other one until this has passed.
    if chosen and (now < chosen.opens or (attempts and now < attempts[-1].opened + GATHERING)):
        chosen = None
    return Agenda(tuple(states), tuple(found), chosen, 1 + len(attempts) if chosen else 0)


def _first_due(phases: Sequence[PlannedPhase], states: Sequence[SlotState]) -> PlannedPhase | None:
    """Return the first phase that is due; None while another one is under way."""
    if SlotState.RUNNING in states:
        return None
    pairs = zip(phases, states, strict=True)
    return next((phase for phase, state in pairs if state is SlotState.DUE), None)


def is_lost(phase: PlannedPhase, restored: datetime | None) -> bool:
    """Return whether more than one attempt at a phase may have opened before a restore.

    One that the backup does not know may have failed before any phone paid, and the next one may
    have been published. Phones would then answer the first one now, and pay twice.

    Args:
        phase: A phase that the restored server has not tried.
        restored: Moment at which the server was restored; None if it never was.
    """
    return restored is not None and phase.opens + GATHERING <= restored


def is_late(phase: PlannedPhase, opened: datetime) -> bool:
    """Return whether a phase that opened then was late."""
    return opened - phase.opens >= PUNCTUAL


def _repeats_itself(phase: PlannedPhase, last: Attempt, restored: datetime | None) -> bool:
    """Return whether the last attempt may have opened before a restore as well.

    It may have failed because phones had answered it then; the next one would cost them again.
    """
    return restored is not None and phase.opens <= restored <= last.opened


def _repeatable(kind: PhaseKind, attempts: Sequence[Attempt], left: int) -> bool:
    if not attempts:
        return False
    last = attempts[-1]
    if last.state is not SlotState.FAILED or last.stopped or len(attempts) >= MOST_ATTEMPTS:
        return False
    return not last.spent or (kind is PhaseKind.DISCOVERY and left > 0)


def _repeated(tried: Mapping[PlanPlace, Sequence[Attempt]], now: datetime) -> int:
    """Return how many discoveries of the last 366 days were paid for and opened again."""
    return sum(
        before.spent and abs(now - after.opened) < YEAR
        for place, attempts in tried.items()
        if place.kind is PhaseKind.DISCOVERY
        for before, after in itertools.pairwise(attempts)
    )
