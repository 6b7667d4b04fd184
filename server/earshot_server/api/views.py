"""Response bodies for operators and the public, made from the archive's records.

A phase's identifier is written as 32 hexadecimal digits, as in paths.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Annotated, Self

import msgspec
from msgspec import Meta

from earshot_protocol.messages import AnyEnding, AnyParameters, Failed
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.accounting.accountant import Composed
from earshot_server.campaigns.campaign import Campaign
from earshot_server.campaigns.conduct import StartedCampaign
from earshot_server.campaigns.plan import CampaignPlan
from earshot_server.campaigns.slots import Slot, next_opening
from earshot_server.phases.spending import spending
from earshot_server.records import (
    AuditEntry,
    CohortRecord,
    InvitationRecord,
    PhaseRecord,
    StepRecord,
    Trouble,
)
from earshot_server.store.campaigns import CampaignRow
from earshot_server.store.operators import Role


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A phase that gathers phones."""

    phase: str
    """Identifier of the phase, 32 hexadecimal digits."""


class PhaseView(msgspec.Struct, frozen=True, kw_only=True):
    """One phase as operators see it; times are seconds since 1970."""

    phase: str
    """Identifier of the phase, 32 hexadecimal digits."""
    status: str
    """Status: `gathering`, `running`, `published`, `failed` or `stopped`."""
    created: float
    finished: float | None
    wanted: int
    least: int
    joined: int
    gather_until: float
    step: str
    deadline: float | None
    failure: str
    """Reason why the phase failed or was stopped; otherwise empty."""
    parameters: AnyParameters
    steps: tuple[StepRecord, ...]
    trouble: Trouble | None
    """Trouble that keeps the phase from moving on."""
    name: str
    """Name of the phase for people; empty if it has none."""
    cohorts: tuple[str, ...]
    """Cohorts whose phones the phase gathers; empty for all phones."""
    refusals: dict[str, int]
    """Number of phones that reported a refusal, by rule; the server cannot verify it."""
    helper: Trouble | None
    """Trouble with the helper of a sum by two operators."""

    @classmethod
    def of(cls, record: PhaseRecord) -> Self:
        """Return the view of a phase, without its ending."""
        fields = msgspec.structs.asdict(record)
        ending = fields.pop("ending")
        failure = ending.reason if isinstance(ending, Failed) else ""
        return cls(**(fields | {"phase": record.phase.hex(), "failure": failure}))


class Phases(msgspec.Struct, frozen=True, kw_only=True):
    """The newest phases, newest first."""

    phases: tuple[PhaseView, ...]


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """Outcome of stopping a phase."""

    stopped: bool
    """Whether this request ended the phase; if not, it had ended before, as `phase` shows."""
    phase: PhaseView


class PhaseExport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything stored about a phase."""

    phase: PhaseView
    ending: AnyEnding | None


class Invitations(msgspec.Struct, frozen=True, kw_only=True):
    """The newest invitations, newest first."""

    invitations: tuple[InvitationRecord, ...]


class Cohorts(msgspec.Struct, frozen=True, kw_only=True):
    """All cohorts that have phones, by name; phones without a cohort count under an empty name."""

    cohorts: tuple[CohortRecord, ...]


class Published(msgspec.Struct, frozen=True, kw_only=True):
    """A published result, in a list."""

    phase: str
    """Identifier of the phase, 32 hexadecimal digits."""
    finished: float
    """Time of publication, in seconds since 1970."""
    environments: int
    """Environments found; of a discovery phase, its labels."""
    named: int
    """Environments whose name is clear of the noise."""
    label_names: tuple[str, ...]
    name: str
    """Name of the phase for people; empty if it has none."""


class Results(msgspec.Struct, frozen=True, kw_only=True):
    """The newest results, newest first."""

    results: tuple[Published, ...]


class Histograms(msgspec.Struct, frozen=True, kw_only=True):
    """The newest statistics, newest first."""

    statistics: tuple[Statistics, ...]


class Spent(msgspec.Struct, frozen=True, kw_only=True):
    """(ε, δ) of differential privacy, counted in one unit."""

    unit: Unit
    epsilon: float | None
    """ε; null if no bound holds at this δ, as JSON has no infinity."""
    delta: float
    method: str
    """Method of composition: `added up`, or `composed as phones do`."""

    @classmethod
    def each(cls, costs: Mapping[Unit, Composed]) -> tuple[Self, ...]:
        """Return one entry for each unit."""
        return tuple(
            cls(
                unit=unit,
                epsilon=cost.epsilon if math.isfinite(cost.epsilon) else None,
                delta=cost.delta,
                method=cost.method,
            )
            for unit, cost in costs.items()
        )


class PhaseSpent(msgspec.Struct, frozen=True, kw_only=True):
    """Privacy that phones have spent in one phase so far."""

    phase: str
    """Identifier of the phase, 32 hexadecimal digits."""
    name: str
    status: str
    spent: tuple[Spent, ...]


class PrivacySpent(msgspec.Struct, frozen=True, kw_only=True):
    """Privacy that phones have spent in all phases, newest first."""

    phases: tuple[PhaseSpent, ...]
    total: tuple[Spent, ...]
    """Privacy spent by a phone that took part in all of them: an upper bound for every phone that
    holds at most as many recordings as each phase of local clustering names."""
    cohorts: dict[str, tuple[Spent, ...]]
    """Privacy spent by a phone that took part in all phases open to it, by cohort."""

    @classmethod
    def of(cls, records: Sequence[PhaseRecord]) -> Self:
        """Return the privacy spent in these phases."""
        spent = spending(records)
        return cls(
            phases=tuple(
                PhaseSpent(
                    phase=record.phase.hex(),
                    name=record.name,
                    status=record.status,
                    spent=Spent.each(costs),
                )
                for record, costs in zip(records, spent.phases, strict=True)
            ),
            total=Spent.each(spent.total),
            cohorts={name: Spent.each(costs) for name, costs in spent.cohorts.items()},
        )


class StartCampaign(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An operator starts a campaign, whose phases then open by themselves."""

    campaign: Campaign
    anyway: bool = False
    """Start it even if default phones refuse it, a cohort has no phones, phases may open too late,
    or another campaign costs the same phones."""


class CampaignView(msgspec.Struct, frozen=True, kw_only=True):
    """One campaign as operators see it."""

    campaign: str
    """Digest of its plan, 64 hexadecimal digits."""
    name: str
    status: str
    """Status: `running`, `paused`, `stopped` or `over`."""
    reason: str
    """Why it is paused or stopped; otherwise empty."""
    started: float
    """Time at which it was started, in seconds since 1970."""
    operator: str
    """Who started it."""
    begins: date
    """First day, in UTC."""
    ends: date
    """Day after the last one that it counts."""
    weeks: int
    """Weeks that it plans."""
    cohorts: tuple[str, ...]
    """Cohorts whose phones take part; empty for all phones."""
    states: dict[str, int]
    """Number of its phases in each state."""
    next: datetime | None
    """Moment from which the next phase may open; None if none will."""

    @classmethod
    def of(cls, started: StartedCampaign, slots: Sequence[Slot]) -> Self:
        """Return the view of a campaign, whose phases these are."""
        states = Counter(slot.state.value for slot in slots)
        row, campaign = started.row, started.campaign
        begins, ends = started.days
        return cls(
            campaign=started.plan.digest,
            name=campaign.name,
            status=started.status(slots),
            reason=row.reason,
            started=row.started,
            operator=row.operator,
            begins=begins,
            ends=ends,
            weeks=campaign.weeks,
            cohorts=campaign.cohorts,
            states=dict(states),
            next=next_opening(slots),
        )


class DamagedCampaign(msgspec.Struct, frozen=True, kw_only=True):
    """A campaign that cannot be read from the database; it opens no phase."""

    campaign: str
    """Digest of its plan, 64 hexadecimal digits."""
    started: float
    """Time at which it was started, in seconds since 1970."""
    operator: str
    """Who started it."""

    @classmethod
    def of(cls, row: CampaignRow) -> Self:
        """Return the view of a campaign whose row cannot be read."""
        return cls(campaign=row.campaign.hex(), started=row.started, operator=row.operator)


class CampaignViews(msgspec.Struct, frozen=True, kw_only=True):
    """All campaigns, newest first."""

    campaigns: tuple[CampaignView, ...]
    damaged: tuple[DamagedCampaign, ...]
    """Those that cannot be read from the database."""


class CampaignExport(msgspec.Struct, frozen=True, kw_only=True):
    """Everything about a campaign."""

    campaign: CampaignView
    plan: CampaignPlan
    slots: tuple[Slot, ...]
    """What became of its phases, in the order of the plan."""


class PhoneCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of phones; identities are not shown."""

    enrolled: int
    """Phones that the server knows."""
    in_phases: int
    """Enrolled phones in a phase that gathers or runs."""


class NewOperator(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Operator to be added."""

    name: Annotated[str, Meta(pattern=r"^[a-z][a-z0-9._-]{0,31}$(?!\n)")]
    """Name: 1 to 32 lower-case letters, digits, dots, underscores and hyphens; a letter first."""
    role: Role


class OperatorView(msgspec.Struct, frozen=True, kw_only=True):
    """A person who may operate the server."""

    name: str
    role: Role


class Operators(msgspec.Struct, frozen=True, kw_only=True):
    """All operators."""

    operators: tuple[OperatorView, ...]


class OperatorToken(msgspec.Struct, frozen=True, kw_only=True):
    """An operator's new token, which is shown once and not stored."""

    name: str
    token: str


class TwoOperators(msgspec.Struct, frozen=True, kw_only=True):
    """The two operators of sums, by the public keys that apps pin; both empty without a helper."""

    leader: str
    """This server's Ed25519 key, 64 hexadecimal digits."""
    helper: str
    """The helper's Ed25519 key, 64 hexadecimal digits."""


class Audit(msgspec.Struct, frozen=True, kw_only=True):
    """Entries of the audit log, the newest first."""

    entries: tuple[AuditEntry, ...]
