"""Campaigns that a server runs: what became of their phases, and the next ones that open.

Everything is read from the database, and each decision is one transaction, so any number of drivers
may take turns, and be killed in the middle of one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import cached_property

import msgspec

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import RemoteError
from earshot_protocol.phases.acceptance import Limits
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.parameters import LARGEST_CROWD, Parameters, hierarchy_of
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.statistics import Statistics, StatisticsParameters
from earshot_protocol.two_operators.summation import NoOperatorKeysError
from earshot_protocol.wire import Ending
from earshot_server.campaigns.agenda import Agenda, Attempt, PlanPlace, agenda, is_late, is_lost
from earshot_server.campaigns.campaign import Campaign
from earshot_server.campaigns.plan import CampaignPlan
from earshot_server.campaigns.schedule import GATHERING, STEP, PhaseKind, PlannedPhase, midnight
from earshot_server.campaigns.slots import (
    Slot,
    SlotState,
    next_opening,
    of_slot,
    phase_identifier,
)
from earshot_server.campaigns.weekly_sum import week_parameters
from earshot_server.phases.places import agreed
from earshot_server.records import RESTORED_REASON, STOPPED_REASON, CampaignState
from earshot_server.store.campaigns import AttemptRow, CampaignRow, CampaignRows
from earshot_server.store.database import Database
from earshot_server.store.registry import Registry

_LONGEST_NAME = 64
_RAN_OUT = "phones could not send everything by the last day in the campaign's plan"
_LOST = "may have been counted after the backup from which the server was restored"


class DamagedCampaignError(RemoteError):
    """A campaign's row cannot be read.

    Args:
        row: The row.
        reason: What is wrong with it.
    """

    def __init__(self, row: CampaignRow, reason: str) -> None:
        super().__init__(
            f"the campaign {row.campaign.hex()}, started on {_moment(row.started):%Y-%m-%d} by "
            f"{row.operator}, is damaged in the database ({reason}), and opens no phase; "
            "`earshot phase stop` ends its phase under way, and only a backup brings it back"
        )


class StartedCampaign:
    """A campaign as its server keeps it.

    Args:
        row: Its row.

    Attributes:
        plan: Its plan, as it was at the start.
        discovery: Parameters of its discoveries; None without any.

    Raises:
        DamagedCampaignError: The row cannot be read.
    """

    def __init__(self, row: CampaignRow) -> None:
        self.row = row
        try:
            self.plan = msgspec.msgpack.decode(row.plan, type=CampaignPlan)
            self.discovery = msgspec.msgpack.decode(row.discovery, type=DiscoveryParameters | None)
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
            raise DamagedCampaignError(row, str(error)) from error
        if self.plan.digest != row.campaign.hex():
            raise DamagedCampaignError(row, "its plan is that of another campaign")

    @property
    def campaign(self) -> Campaign:
        """The campaign."""
        return self.plan.campaign

    @property
    def hierarchy(self) -> LabelHierarchy:
        """Its labels, with the choices that polls offer."""
        return hierarchy_of(self.campaign.labels, self.campaign.choices)

    @property
    def days(self) -> tuple[date, date]:
        """First day, and the day after the last one that it counts."""
        begins, ends, until = self.campaign.begins, self.campaign.ends, self.row.until
        return begins, ends if until is None else min(ends, until)

    def status(self, slots: Sequence[Slot]) -> str:
        """Return `running`, `paused`, `stopped`, or `over` if it runs and all phases have ended.

        Args:
            slots: What became of its phases.
        """
        ended = next_opening(slots) is None
        ended = ended and all(slot.state is not SlotState.RUNNING for slot in slots)
        return "over" if ended and self.row.state is CampaignState.RUNNING else self.row.state.value

    @cached_property
    def week(self) -> StatisticsParameters:
        """Parameters of a week's sum of counts alone."""
        return self._week(confusion=False)

    @cached_property
    def confusion_week(self) -> StatisticsParameters:
        """Parameters of a week's sum with a confusion matrix."""
        return self._week(confusion=True)

    def _week(self, confusion: bool) -> StatisticsParameters:
        plan, seconds = self.plan, STEP.total_seconds()
        return week_parameters(self.campaign, plan.contacts, plan.noise, seconds, confusion)

    @cached_property
    def releasing(self) -> Mapping[PhaseKind, frozenset[str]]:
        """Names of the steps in which a phone pays, for each kind of phase."""
        kinds: dict[PhaseKind, Parameters] = {PhaseKind.STATISTICS: self.week}
        if self.discovery is not None:
            kinds[PhaseKind.DISCOVERY] = self.discovery
        return {
            kind: frozenset(step.name for step in each.plan().steps if step.releases)
            for kind, each in kinds.items()
        }

    def has_run_out(self, phase: PlannedPhase, steps: Collection[str], now: datetime) -> bool:
        """Return whether phones could send something for a phase only after its last day.

        That would cost more in 366 days than planned, and contacts of the week may be deleted.

        Args:
            phase: A phase that is under way.
            steps: Names of its steps that have opened.
            now: The present moment.
        """
        ends = midnight(self.plan.lengths.last_day(phase)) + timedelta(days=1)
        return now > ends - STEP and not self.releasing[phase.kind].issubset(steps)

    def shares_phones(self, cohorts: Sequence[str]) -> bool:
        """Return whether a campaign of these cohorts may ask the same phones."""
        own = self.campaign.cohorts
        return not own or not cohorts or not set(own).isdisjoint(cohorts)

    def parameters(
        self, phase: PlannedPhase, places: AgreedPlaces | None, phones: int, confusion: bool
    ) -> Parameters:
        """Return the parameters of one of its phases.

        Args:
            phase: The phase.
            places: Places of the newest map; None without one.
            phones: Most phones that may join.
            confusion: Whether a week's sum also has a confusion matrix.
        """
        if phase.since is not None and phase.until is not None:
            week = self.confusion_week if confusion else self.week
            found: Parameters = of_slot(week, phase.since, phase.until, places, phones)
        elif self.discovery is not None:
            found = msgspec.structs.replace(self.discovery, phones=phones)
        else:
            raise ValueError(f"{phase.kind} {phase.number}: the campaign makes no discovery")
        digest = self.hierarchy.digest if self.campaign.choices else b""
        return msgspec.structs.replace(found, hierarchy=digest)


class _Progress:
    """Attempts and missed phases of a campaign at one moment."""

    def __init__(self, started: StartedCampaign, rows: CampaignRows, now: datetime) -> None:
        self.started = started
        digest, restored = started.row.campaign, started.row.restored
        self.restored = None if restored is None else _moment(restored)
        self.attempts: defaultdict[PlanPlace, list[AttemptRow]] = defaultdict(list)
        for each in rows.attempts(digest):
            self.attempts[PlanPlace(PhaseKind(each.kind), each.number)].append(each)
        discovery = started.campaign.discovery
        self.agenda = agenda(
            started.plan.phases,
            {place: [self._attempt(row) for row in rows] for place, rows in self.attempts.items()},
            {PlanPlace(PhaseKind(kind), number) for kind, number in rows.missed(digest)},
            now,
            until=started.row.until,
            restored=self.restored,
            retries=discovery.retries if discovery else 0,
        )

    def _attempt(self, row: AttemptRow) -> Attempt:
        restored = row.reason.startswith(RESTORED_REASON)
        return Attempt(
            state=_state(row),
            opened=_moment(row.opened),
            stopped=row.reason == STOPPED_REASON,
            # The copy does not know what phones did after it was made.
            spent=restored or not self.started.releasing[PhaseKind(row.kind)].isdisjoint(row.steps),
        )

    @property
    def maps(self) -> list[bytes]:
        """Discoveries that may name contacts, newest first: its own ones, then the given one."""
        own = [
            (each.ended or 0.0, each.phase)
            for place, attempts in self.attempts.items()
            if place.kind is PhaseKind.DISCOVERY
            for each in attempts
            if each.published
        ]
        given = self.started.campaign.map
        return [phase for _, phase in sorted(own, reverse=True)] + (
            [bytes.fromhex(given)] if given else []
        )

    def lacks_matrix(self, phase: PlannedPhase, places: bytes | None) -> bool:
        """Return whether a phase is to have a confusion matrix that its map lacks.

        Args:
            phase: A phase that opens now.
            places: Discovery that names contacts; None for none.
        """
        return (
            phase.confusion
            and places is not None
            and not any(
                each.published and each.map == places
                for other in self.started.plan.phases
                if other.confusion
                for each in self.attempts.get(PlanPlace.of(other), ())
            )
        )


class CampaignConductor:
    """Conductor of all campaigns in one database, for any number of threads.

    Every method also raises `DatabaseUnavailableError`.

    Args:
        database: Migrated database.
        leads: Whether this process leads sums by two operators.
    """

    def __init__(self, database: Database, leads: bool = False) -> None:
        self._database = database
        self._leads = leads
        self._rows = CampaignRows(database)
        self._registry = Registry(database)
        self._known: dict[bytes, StartedCampaign] = {}

    def all(self) -> tuple[StartedCampaign, ...]:
        """Return all campaigns that can be read, newest first."""
        found = map(self._readable, self._rows.all())
        return tuple(each for each in found if each is not None)

    def damaged(self) -> tuple[CampaignRow, ...]:
        """Return the rows that cannot be read, newest first."""
        return tuple(row for row in self._rows.all() if self._readable(row) is None)

    def one(self, digest: bytes) -> StartedCampaign:
        """Return a campaign.

        Raises:
            UnknownCampaignError: There is none of this digest.
            DamagedCampaignError: It cannot be read.
        """
        return self._started(self._rows.one(digest))

    def of(self, phase: bytes) -> StartedCampaign | None:
        """Return the campaign of a phase; None if it is of none that can be read."""
        digest = self._rows.of(phase)
        return None if digest is None else self._readable(self._rows.one(digest))

    def active(self) -> tuple[bytes, ...]:
        """Return the digests of campaigns that are not stopped, oldest first."""
        rows = reversed(self._rows.all())
        return tuple(row.campaign for row in rows if row.state is not CampaignState.STOPPED)

    def _started(self, row: CampaignRow) -> StartedCampaign:
        known = self._known.get(row.campaign)
        if known is None or known.row != row:
            known = self._known[row.campaign] = StartedCampaign(row)
        return known

    def _readable(self, row: CampaignRow) -> StartedCampaign | None:
        try:
            return self._started(row)
        except DamagedCampaignError:
            return None

    def _now(self) -> datetime:
        return _moment(self._database.now())

    def agenda(self, started: StartedCampaign) -> Agenda:
        """Return the agenda of a campaign."""
        return _Progress(started, self._rows, self._now()).agenda

    def has_opened(self, row: CampaignRow) -> bool:
        """Return whether a phase of a campaign has ever opened, or may yet."""
        running = row.state is not CampaignState.STOPPED
        return running or bool(self._rows.attempts(row.campaign))

    def counted(self, started: StartedCampaign) -> tuple[date, date] | None:
        """Return the first day that a campaign counts or counted, and the day after the last one.

        Phones mark what they sent, also if its phase failed then. None if they sent nothing.
        """
        attempts = _Progress(started, self._rows, self._now()).attempts
        windows = [
            (phase.since, phase.until)
            for phase in started.plan.phases
            if phase.since is not None
            and phase.until is not None
            and any(
                not each.reason or not started.releasing[phase.kind].isdisjoint(each.steps)
                for each in attempts.get(PlanPlace.of(phase), ())
            )
        ]
        return (windows[0][0], windows[-1][1]) if windows else None

    def slots(self, started: StartedCampaign) -> tuple[Slot, ...]:
        """Return what became of a campaign's phases, in the order of the plan."""
        progress = _Progress(started, self._rows, self._now())
        stopped = started.row.state is CampaignState.STOPPED
        last = [attempts[-1] for attempts in progress.attempts.values()]
        published = self._rows.published(
            {each.phase for each in last} | {each.map for each in last if each.map is not None}
        )
        pairs = zip(started.plan.phases, progress.agenda.states, strict=True)
        return tuple(
            _slot(phase, _stopped(state) if stopped else state, progress, published)
            for phase, state in pairs
        )

    def turn(self, digest: bytes) -> PlannedPhase | None:
        """Note what a campaign missed, and open its next phase if one is due.

        A phase under way that has waited for too long, for the helper or for this server, ends.

        Nothing opens while another campaign that may ask the same phones has a phase under way, or
        one that has been due for longer.

        Args:
            digest: Digest of the campaign's plan.

        Returns:
            The phase that opened; None if none did.

        Raises:
            DamagedCampaignError: The campaign cannot be read; the others go on.
            NoOperatorKeysError: A phase by two operators is due, and this process has no helper.
        """
        with self._rows.deciding():
            now, started = self._now(), self.one(digest)
            progress = _Progress(started, self._rows, now)
            for phase in progress.agenda.missed:
                self._rows.miss(digest, phase.kind, phase.number)
            for phase, state in zip(started.plan.phases, progress.agenda.states, strict=True):
                if state is SlotState.RUNNING:
                    last = progress.attempts[PlanPlace.of(phase)][-1]
                    if started.has_run_out(phase, last.steps, now):
                        self._registry.stop(last.phase, _RAN_OUT)
            due = progress.agenda.next
            running = started.row.state is CampaignState.RUNNING
            if due is None or not running or self._gives_way(started, due):
                return None
            unled = started.campaign.sum.summation.by_operators and not self._leads
            if not unled:
                self._open(due, progress, now)
        if unled:
            raise NoOperatorKeysError(
                "a campaign of two operators opens nothing, as this server has no helper: start it "
                "with --helper and --helper-key"
            )
        return due

    def _gives_way(self, started: StartedCampaign, due: PlannedPhase) -> bool:
        """Return whether the same phones may be asked by another campaign before."""
        for other in self.all():
            if other is started or not other.shares_phones(started.campaign.cohorts):
                continue
            theirs = self.agenda(other)
            older = theirs.next is not None and theirs.next.opens < due.opens
            runs = other.row.state is CampaignState.RUNNING
            if SlotState.RUNNING in theirs.states or (older and runs):
                return True
        return False

    def _open(self, phase: PlannedPhase, progress: _Progress, now: datetime) -> None:
        started, attempt = progress.started, progress.agenda.attempt
        campaign, digest = started.campaign, started.plan.digest
        enrolled = self._rows.enrolled(campaign.cohorts)
        least = min(campaign.expected.phones, Limits().least_phones)
        named, places = self._newest(progress.maps, started.hierarchy)
        by_map = named if phase.kind is PhaseKind.STATISTICS else None
        most = min(max(enrolled, least), LARGEST_CROWD)
        confusion = progress.lacks_matrix(phase, by_map)
        identifier = phase_identifier(digest, phase.kind, phase.number, attempt)
        self._registry.gather(
            identifier,
            started.parameters(phase, places, most, confusion),
            least,
            (now + GATHERING).timestamp(),
            name=_name(phase, campaign.name),
            cohorts=campaign.cohorts,
            choices=campaign.choices,
        )
        self._rows.open(
            started.row.campaign, phase.kind, phase.number, attempt, identifier, enrolled, by_map
        )

    def _newest(
        self, maps: Sequence[bytes], hierarchy: LabelHierarchy
    ) -> tuple[bytes | None, AgreedPlaces | None]:
        """Return the newest map that names places of the campaign, with these."""
        for phase in maps:
            places = self.places(phase, hierarchy)
            if places is not None:
                return phase, places
        return None, None

    def places(self, phase: bytes, hierarchy: LabelHierarchy) -> AgreedPlaces | None:
        """Return the places of a discovery; None if it published none that the labels name."""
        found = self._rows.published([phase]).get(phase)
        if found is None or not isinstance(found[0], NamedCentroids):
            return None
        return agreed(found[0], None, hierarchy)


def _slot(
    phase: PlannedPhase,
    state: SlotState,
    progress: _Progress,
    published: Mapping[bytes, tuple[Ending, float]],
) -> Slot:
    attempts = progress.attempts.get(PlanPlace.of(phase))
    if not attempts:
        lost = state is SlotState.MISSED and is_lost(phase, progress.restored)
        return Slot(planned=phase, state=state, reason=_LOST if lost else "")
    last = attempts[-1]
    found = published.get(last.phase)
    mapped = None if last.map is None else published.get(last.map)
    return Slot(
        planned=phase,
        state=state,
        late=is_late(phase, _moment(last.opened)),
        attempts=len(attempts),
        phase=last.phase.hex(),
        reason=last.reason,
        opened=_moment(last.opened),
        ended=None if last.ended is None else _moment(last.ended),
        enrolled=last.enrolled,
        map="" if last.map is None else last.map.hex(),
        mapped=None if mapped is None else _moment(mapped[1]),
        result=found[0] if found and isinstance(found[0], Statistics) else None,
    )


def _state(row: AttemptRow) -> SlotState:
    if row.published:
        return SlotState.PUBLISHED
    return SlotState.FAILED if row.reason else SlotState.RUNNING


def _stopped(state: SlotState) -> SlotState:
    """Return the state of a phase whose campaign was stopped."""
    return SlotState.STOPPED if state in (SlotState.PLANNED, SlotState.DUE) else state


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _name(phase: PlannedPhase, campaign: str) -> str:
    """Return the name of a phase for people."""
    what = "week" if phase.kind is PhaseKind.STATISTICS else "map"
    return f"{what} {phase.number}: {campaign}"[:_LONGEST_NAME].strip()
