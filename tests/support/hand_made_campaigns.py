"""Campaigns that the dashboard shows, without a database."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from earshot_server.campaigns.conduct import StartedCampaign
from earshot_server.campaigns.plan import CampaignPlan
from earshot_server.campaigns.slots import Slot
from earshot_server.records import CampaignState
from earshot_server.store.campaigns import CampaignRow, UnknownCampaignError


def started(plan: CampaignPlan, **changes: Any) -> StartedCampaign:
    """A campaign as its server keeps it, which runs unless told otherwise."""
    row = CampaignRow(
        campaign=bytes.fromhex(plan.digest),
        plan=msgspec.msgpack.encode(plan),
        discovery=msgspec.msgpack.encode(None),
        started=1_798_000_000.0,
        operator="olga",
        state=CampaignState.RUNNING,
        reason="",
        until=None,
        restored=None,
    )
    return StartedCampaign(row._replace(**changes))


class HandMadeCampaigns:
    """What the dashboard reads of campaigns.

    Args:
        known: Each campaign with what became of its phases, newest first.
        damaged: Rows that cannot be read.
    """

    def __init__(
        self,
        *known: tuple[StartedCampaign, Sequence[Slot]],
        damaged: tuple[CampaignRow, ...] = (),
    ) -> None:
        self.known = known
        self._damaged = damaged

    def all(self) -> tuple[StartedCampaign, ...]:
        return tuple(each for each, _ in self.known)

    def damaged(self) -> tuple[CampaignRow, ...]:
        return self._damaged

    def one(self, digest: bytes) -> StartedCampaign:
        for each, _ in self.known:
            if each.row.campaign == digest:
                return each
        raise UnknownCampaignError("there is none")

    def of(self, phase: bytes) -> StartedCampaign | None:
        return next((each for each, _ in self.known if phase in self.phases(each)), None)

    def slots(self, started: StartedCampaign) -> tuple[Slot, ...]:
        return next(tuple(slots) for each, slots in self.known if each is started)

    def phases(self, started: StartedCampaign) -> tuple[bytes, ...]:
        return tuple(bytes.fromhex(each.phase) for each in self.slots(started) if each.phase)
