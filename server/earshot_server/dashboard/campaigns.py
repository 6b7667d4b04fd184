"""Campaigns for people: what became of their phases, what comes next, and what they cost phones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from earshot_protocol.privacy.accounting import TOLD_DELTA, epsilon_at
from earshot_protocol.privacy.ledger import YEAR
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.campaigns.plan import CampaignPlan
from earshot_server.campaigns.schedule import PhaseKind, PlannedPhase
from earshot_server.campaigns.series import Series
from earshot_server.campaigns.slots import Slot, SlotState
from earshot_server.dashboard import series
from earshot_server.dashboard.languages import gettext as _
from earshot_server.dashboard.languages import ngettext
from earshot_server.dashboard.wording import NOTHING, sentence, whole, window
from earshot_server.phases.spending import expenses_of, released
from earshot_server.records import PhaseRecord

_DAY = timedelta(days=1)


class SlotTexts(NamedTuple):
    """Row of a table of a campaign's phases.

    Attributes:
        name: Name of the phase.
        state: Its state, in English.
        days: Days that it counts, or from when a discovery may open.
        phones: Phones that took part, of those that were enrolled.
        note: What else has to be known of it.
        reason: Reason of a failure, in English; empty without one.
        phase: Identifier of its last attempt, in hexadecimal; empty before the first.
    """

    name: str
    state: str
    days: str
    phones: str
    note: str
    reason: str
    phase: str


class NewestMap(NamedTuple):
    """Map that names unlabelled contacts.

    Attributes:
        phase: Identifier of the discovery, in hexadecimal.
        mapped: Time at which it ended, in seconds since 1970; None if it is unknown here.
    """

    phase: str
    mapped: float | None


def rows(slots: Iterable[Slot]) -> list[SlotTexts]:
    """Return the rows of a table of a campaign's phases, in the order of the plan."""
    return [
        SlotTexts(
            name=_name(slot.planned),
            state=slot.state.value,
            days=_days(slot.planned),
            phones=_phones(slot),
            note=_note(slot),
            reason=slot.reason,
            phase=slot.phase,
        )
        for slot in slots
    ]


def headline(of: Series, status: str) -> list[str]:
    """Return sentences on the newest week that was counted, the most important first.

    Args:
        of: Series of the campaign.
        status: Status of the campaign (`StartedCampaign.status`).
    """
    if not of.counted and status in ("over", "stopped"):
        return [_("No week was counted.")]
    return series.headline(of)


def coming(slots: Sequence[Slot], status: str) -> str:
    """Return what comes next, and when.

    Args:
        slots: What became of the campaign's phases.
        status: Status of the campaign (`StartedCampaign.status`).
    """
    if status == "stopped":
        return _("The campaign was stopped: no further phase opens.")
    if status == "over":
        return _("The campaign is over: all its phases have ended.")
    if status == "paused":
        return _("The campaign is paused: no phase opens until an operator resumes it.")
    said = [
        _("Under way: %(name)s.", name=_name(slot.planned))
        for slot in slots
        if slot.state is SlotState.RUNNING
    ]
    due = [slot.planned for slot in slots if slot.state is SlotState.DUE]
    planned = [slot.planned for slot in slots if slot.state is SlotState.PLANNED]
    if due:
        said.append(
            _(
                "Due: %(name)s; it opens by itself, until %(last)s at the latest.",
                name=_name(due[0]),
                last=_date(due[0].last),
            )
        )
    elif planned:
        said.append(
            _(
                "Next: %(name)s; it opens by itself, from %(first)s on, until %(last)s at the "
                "latest.",
                name=_name(planned[0]),
                first=_date(planned[0].opens),
                last=_date(planned[0].last),
            )
        )
    return " ".join(said)


def counted(slots: Iterable[Slot]) -> tuple[int, int, int]:
    """Return how many weeks were counted, how many never will be, and how many there are."""
    weeks = [slot for slot in slots if slot.planned.kind is PhaseKind.STATISTICS]
    lost = (SlotState.FAILED, SlotState.MISSED, SlotState.STOPPED)
    return (
        sum(slot.state is SlotState.PUBLISHED for slot in weeks),
        sum(slot.state in lost for slot in weeks),
        len(weeks),
    )


def newest_map(plan: CampaignPlan, slots: Iterable[Slot]) -> NewestMap | None:
    """Return the map by which the newest week was counted, or the given one; None without one."""
    used = [slot for slot in slots if slot.map]
    if used:
        newest = max(used, key=lambda slot: slot.opened or datetime.min.replace(tzinfo=UTC))
        return NewestMap(newest.map, newest.mapped.timestamp() if newest.mapped else None)
    return NewestMap(plan.campaign.map, None) if plan.campaign.map else None


def spent(records: Iterable[PhaseRecord], now: float) -> float:
    """Return the most that 366 days up to now have cost a phone that took part in all phases.

    Args:
        records: All attempts at the campaign's phases.
        now: The present moment, in seconds since 1970.

    Returns:
        Composed ε at `TOLD_DELTA`, as phones' ledgers compose it.
    """
    since = now - YEAR.total_seconds()
    return epsilon_at(
        TOLD_DELTA,
        tuple(
            expense
            for record in records
            if record.finished is None or record.finished >= since
            for expense in expenses_of(record, released(record))
            if expense.release.unit is Unit.PHONE
        ),
    )


def planned(plan: CampaignPlan) -> tuple[float, float]:
    """Return the most that any 366 days cost a phone: if all goes as planned, and in any case.

    Both are ε at `TOLD_DELTA`; the second has late and repeated phases.
    """
    cost = next(each for each in plan.costs if (each.unit, each.delta) == (Unit.PHONE, TOLD_DELTA))
    return cost.punctual_epsilon, cost.epsilon


def _name(phase: PlannedPhase) -> str:
    if phase.kind is PhaseKind.STATISTICS:
        return _("week %(number)s", number=phase.number)
    return _("map %(number)s", number=phase.number)


def _days(phase: PlannedPhase) -> str:
    if phase.since and phase.until:
        return window(phase.since, phase.until)
    return _("from %(day)s", day=_date(phase.opens))


def _phones(slot: Slot) -> str:
    if slot.result is None:
        return NOTHING
    return _("%(part)s of %(whole)s", part=whole(slot.result.phones), whole=whole(slot.enrolled))


def _note(slot: Slot) -> str:
    notes = [_("opened late")] if slot.late else []
    if slot.attempts > 1:
        notes.append(
            ngettext(
                "%(number)s attempt", "%(number)s attempts", slot.attempts, number=slot.attempts
            )
        )
    return sentence("; ".join(notes))


def _date(moment: datetime) -> str:
    day = moment.date()
    return window(day, day + _DAY)
