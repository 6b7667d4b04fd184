"""What a server asks of a campaign before it starts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from earshot_protocol.encoder_file import read
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.parameters import hierarchy_of
from earshot_protocol.privacy.ledger import YEAR
from earshot_protocol.shipped_encoders import packaged
from earshot_server.campaigns.campaign import MOST_BEFORE, Campaign
from earshot_server.campaigns.conduct import CampaignConductor, StartedCampaign
from earshot_server.campaigns.plan import CampaignPlan, Planning, planned
from earshot_server.phases.options import of_encoder
from earshot_server.records import CampaignState
from earshot_server.store.campaigns import CampaignRow

_SHOWN = 12
"""Digits of a digest that are shown."""


class Admissible(NamedTuple):
    """A campaign that may start, if nobody objects.

    Attributes:
        plan: Its plan.
        discovery: Parameters of its discoveries; None without any.
        follows: Campaign that it takes over from; None for none.
        objections: Why it would not go as planned.
    """

    plan: CampaignPlan
    discovery: DiscoveryParameters | None
    follows: StartedCampaign | None
    objections: tuple[str, ...]

    @property
    def digest(self) -> bytes:
        """Digest of the plan, 32 bytes."""
        return bytes.fromhex(self.plan.digest)


class CampaignAdmission:
    """Check of a campaign against those that a server runs, and against what it has.

    Args:
        conductor: Conductor of the server's campaigns.
        cohorts: Cohorts that have phones.
        helper: Whether the server has a helper for sums by two operators.
    """

    def __init__(self, conductor: CampaignConductor, cohorts: Sequence[str], helper: bool) -> None:
        self._conductor = conductor
        self._cohorts = cohorts
        self._helper = helper

    def check(self, campaign: Campaign, now: datetime) -> Admissible:
        """Check that a campaign can run on this server.

        Args:
            campaign: The campaign.
            now: The present moment.

        Raises:
            InvalidParametersError: It cannot, or was started before; the message says what could.
        """
        try:
            _check_values(campaign)
            plan, making = planned(campaign), Planning(campaign)
        except InvalidInputError as error:
            raise InvalidParametersError(str(error)) from error
        others, damaged = self._conductor.all(), self._conductor.damaged()
        _check_new(plan.digest, [*(each.row for each in others), *damaged])
        if campaign.sum.summation.by_operators and not self._helper:
            raise InvalidParametersError(
                f"sum.summation={campaign.sum.summation}: this server has no helper; start it with "
                "--helper and --helper-key"
            )
        first = plan.phases[0]
        if now > first.last:
            raise InvalidParametersError(
                f"from={campaign.begins}: the first phase could open until {first.last:%Y-%m-%d}; "
                f"begin on {(now + timedelta(days=1)).date()} or later"
            )
        self._check_map(campaign)
        chain, follows = self._before(making, others)
        for other in others:
            if other.shares_phones(campaign.cohorts):
                self._check_counted(campaign, other)
                if follows is not other:
                    self._check_overlap(campaign, other)
        objections = (*self._objections(plan, others, chain), *self._unreadable(damaged))
        return Admissible(plan, _discovery(making), follows, objections)

    def _check_map(self, campaign: Campaign) -> None:
        if not campaign.map:
            return
        hierarchy = hierarchy_of(campaign.labels, campaign.choices)
        if self._conductor.places(bytes.fromhex(campaign.map), hierarchy) is None:
            raise InvalidParametersError(
                f"map={campaign.map}: must be a phase of this server that has published "
                f"environments with the name of one of the labels {', '.join(campaign.labels)}; "
                "`earshot phase list` shows phases"
            )

    def _before(
        self, making: Planning, others: Sequence[StartedCampaign]
    ) -> tuple[tuple[str, ...], StartedCampaign | None]:
        """Return the digests of the campaigns before, and the last of them."""
        chain = making.digests_before
        if not chain:
            return (), None
        found = next((each for each in others if each.plan.digest == chain[0]), None)
        if found is None:
            raise InvalidParametersError(
                f"follows: this server has run no campaign with the digest {chain[0]}; name the "
                "file of the campaign before as it was when that started, or leave it out"
            )
        if found.row.until is not None:
            raise InvalidParametersError(
                f"follows: another campaign takes over from {_named(found)} on {found.row.until} "
                "already; follow that one, or stop it"
            )
        return chain, found

    def _check_counted(self, campaign: Campaign, other: StartedCampaign) -> None:
        """Refuse days whose contacts phones have marked as counted: they would seem to be none."""
        counted = self._conductor.counted(other)
        if counted is None or campaign.ends <= counted[0] or counted[1] <= campaign.begins:
            return
        raise InvalidParametersError(
            f"from={campaign.begins}: {_named(other)} has counted contacts of the same phones from "
            f"{counted[0]} to {counted[1]}, and none counts twice; begin on {counted[1]} or later"
        )

    def _check_overlap(self, campaign: Campaign, other: StartedCampaign) -> None:
        """Refuse days on which phones would have to count for two campaigns."""
        if other.row.state is CampaignState.STOPPED:
            return
        begins, ends = other.days
        if not (begins < campaign.ends and campaign.begins < ends):
            return
        said = f"{_named(other)} counts contacts of the same phones from {begins} to {ends}"
        if campaign.name == other.campaign.name:
            said += "; a file that was edited since is another campaign"
        raise InvalidParametersError(
            f"{said}: stop that one, begin when it has ended, or take over from it: begin later "
            "than it, and name its file in `follows`"
        )

    def _objections(
        self, plan: CampaignPlan, others: Sequence[StartedCampaign], chain: Sequence[str]
    ) -> tuple[str, ...]:
        campaign = plan.campaign
        missed = [f"{each.kind} {each.number}" for each in plan.missed]
        uncounted = [
            other
            for other in others
            if other.plan.digest not in chain
            and other.shares_phones(campaign.cohorts)
            and other.days[1] + YEAR > campaign.begins
            and campaign.ends + YEAR > other.days[0]
            and self._conductor.has_opened(other.row)
        ]
        return (
            *(refusal.reason for refusal in plan.refusals),
            *(
                f"cohort {name} has no phones; those that have: "
                f"{', '.join(sorted(set(self._cohorts) - {''}))}"
                for name in campaign.cohorts
                if name not in self._cohorts
            ),
            *([f"phases may open too late: {', '.join(missed)}"] if missed else []),
            *(
                f"{_named(other)} costs the same phones within the same 366 days, and is not in "
                "this plan's ε; name its file in `follows`"
                for other in uncounted
            ),
        )

    def _unreadable(self, damaged: Sequence[CampaignRow]) -> tuple[str, ...]:
        return tuple(
            f"the campaign {row.campaign.hex()[:_SHOWN]} is damaged in the database: it may have "
            "counted the same days, and its cost is not in this plan's ε"
            for row in damaged
            if self._conductor.has_opened(row)
        )


def _check_values(campaign: Campaign) -> None:
    """Refuse values that no campaign can have, in it and in those before it."""
    each: Campaign | None = campaign
    before = -1
    while each is not None:
        each.check()
        each, before = each.follows, before + 1
    if before > MOST_BEFORE:
        raise InvalidParametersError(
            f"follows: {before} campaigns, one after another; at most {MOST_BEFORE} may be"
        )


def _check_new(digest: str, others: Sequence[CampaignRow]) -> None:
    same = next((each for each in others if each.campaign.hex() == digest), None)
    if same is None:
        return
    started = datetime.fromtimestamp(same.started, UTC)
    what = {
        CampaignState.RUNNING: "it runs",
        CampaignState.PAUSED: "it is paused; `earshot campaign resume` lets it go on",
        CampaignState.STOPPED: "it was stopped, for good; another one must differ, by its name",
    }
    raise InvalidParametersError(
        f"this campaign was started on {started:%Y-%m-%d}: {what[same.state]}"
    )


def _discovery(making: Planning) -> DiscoveryParameters | None:
    """Return the parameters of discoveries, with the start centroids of their encoder."""
    planned_one = making.discovery
    if planned_one is None:
        return None
    encoder = read(packaged(planned_one.encoder))
    start = of_encoder(encoder, planned_one.start.dimensions)(planned_one.start.count)
    return msgspec.structs.replace(planned_one, start=start)


def _named(other: StartedCampaign) -> str:
    return f"the campaign “{other.campaign.name}” ({other.plan.digest[:_SHOWN]})"
