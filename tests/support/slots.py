"""Slots of a campaign for tests: a plan of few weeks, and what became of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from earshot_protocol.phases.statistics import Statistics
from earshot_server.campaigns.campaign import ExpectedContacts
from earshot_server.campaigns.plan import CampaignPlan, planned
from earshot_server.campaigns.schedule import PhaseKind, PlannedPhase
from earshot_server.campaigns.slots import Slot, SlotState
from support.campaigns import campaign
from support.published_statistics import published

COMPUTED = datetime(2027, 4, 1, 12, tzinfo=UTC)
MAP = "ab" * 16
LABELS = ("bar", "office")


def plan(weeks: int = 6, **changes: Any) -> CampaignPlan:
    """Plan of a few weeks over two places."""
    usual: dict[str, Any] = {
        "weeks": weeks,
        "labels": LABELS,
        "discovery": None,
        "expected": ExpectedContacts(phones=5000),
    }
    return planned(campaign(**(usual | changes)))


def weekly(of: CampaignPlan) -> list[PlannedPhase]:
    """Phases that count weeks."""
    return [phase for phase in of.phases if phase.kind is PhaseKind.STATISTICS]


def counts(
    labelled: Sequence[float], named: Sequence[float], unknown: float, **changes: Any
) -> Statistics:
    """Published counts of a week, of 4,000 phones by default."""
    usual: dict[str, Any] = {
        "labelled": tuple(labelled),
        "named": tuple(named),
        "unknown": unknown,
        "deviation": 40.0,
        "contacts": 10,
        "phones": 4000,
    }
    return published(LABELS, **(usual | changes))


def slot(phase: PlannedPhase, /, state: SlotState = SlotState.PUBLISHED, **changes: Any) -> Slot:
    """A slot that was counted under a map of ten days before, unless told otherwise."""
    opened = phase.opens + timedelta(hours=1)
    usual: dict[str, Any] = {
        "planned": phase,
        "state": state,
        "attempts": 1,
        "phase": "0f" * 16,
        "opened": opened,
        "ended": opened + timedelta(days=3),
        "enrolled": 5000,
        "map": MAP,
        "mapped": opened - timedelta(days=10),
    }
    return Slot(**(usual | changes))


def year_of(
    of: CampaignPlan, results: Sequence[Statistics | SlotState], **changes: Any
) -> list[Slot]:
    """Slots of the first weeks: published results, or states without one."""
    return [
        slot(phase, result=each, **changes)
        if isinstance(each, Statistics)
        else slot(phase, each, map="", mapped=None, opened=None, ended=None, **changes)
        for phase, each in zip(weekly(of), results, strict=False)
    ]
