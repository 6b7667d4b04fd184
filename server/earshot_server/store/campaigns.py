"""Rows of campaigns: their plans, attempts at their phases, and what they missed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import NamedTuple

from earshot_protocol.errors import RemoteError
from earshot_protocol.messages import Failed, decode_task
from earshot_protocol.wire import Ending
from earshot_server.records import RESTORED, CampaignState
from earshot_server.store.database import Database

_LOCK = 0x63616D706169676E
"""Advisory lock of decisions about campaigns."""


class UnknownCampaignError(RemoteError):
    """No campaign has this digest."""


class CampaignRow(NamedTuple):
    """A campaign.

    Attributes:
        campaign: Digest of its plan, 32 bytes.
        plan: Its plan, encoded.
        discovery: Parameters of its discoveries, or nil, encoded.
        started: Time at which it was started.
        operator: Who started it.
        state: What drivers do with it.
        reason: Why it is paused or stopped; otherwise empty.
        until: Day on which the campaign that follows takes over; None for none.
        restored: Time at which the server was last restored; None if it never was.
    """

    campaign: bytes
    plan: bytes
    discovery: bytes
    started: float
    operator: str
    state: CampaignState
    reason: str
    until: date | None
    restored: float | None


class AttemptRow(NamedTuple):
    """An attempt at a phase of a campaign.

    Attributes:
        kind: Kind of the phase.
        number: Number among the phases of its kind, from 1.
        attempt: Number of the attempt, from 1.
        phase: Identifier of the phase.
        enrolled: Phones of the campaign's cohorts when it opened.
        map: Discovery that names unlabelled contacts; None for none.
        opened: Time at which the gathering began.
        ended: Time at which the phase ended; None before.
        published: Whether it has a result.
        reason: Why it failed or was stopped; empty if it did not.
        steps: Names of the steps that have opened.
    """

    kind: str
    number: int
    attempt: int
    phase: bytes
    enrolled: int
    map: bytes | None
    opened: float
    ended: float | None
    published: bool
    reason: str
    steps: tuple[str, ...]


class CampaignRows:
    """Campaigns in a migrated database, for any number of threads.

    Every method also raises `DatabaseUnavailableError`.

    Args:
        database: Database that keeps them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @contextmanager
    def deciding(self) -> Iterator[None]:
        """Run a block in one transaction, while no other process decides about campaigns."""
        with self._database.transaction() as connection:
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            yield

    def add(self, campaign: bytes, plan: bytes, discovery: bytes, operator: str) -> None:
        """Add a campaign, which runs from now on.

        If the server was restored, the same campaign may have run before, unknown to the backup.
        """
        self._database.query(
            "INSERT INTO campaigns (campaign, plan, discovery, operator, restored)"
            " SELECT %s, %s, %s, %s, max(at) FROM audit WHERE action = %s",
            (campaign, plan, discovery, operator, RESTORED),
        )

    def all(self) -> tuple[CampaignRow, ...]:
        """Return all campaigns, newest first."""
        return self._read(None)

    def one(self, campaign: bytes) -> CampaignRow:
        """Return a campaign.

        Raises:
            UnknownCampaignError: There is none of this digest.
        """
        rows = self._read(campaign)
        if not rows:
            raise UnknownCampaignError(f"no campaign has the digest {campaign.hex()}")
        return rows[0]

    def _read(self, campaign: bytes | None) -> tuple[CampaignRow, ...]:
        rows = self._database.query(
            "SELECT campaign, plan, discovery, started, operator, state, reason, until, restored"
            " FROM campaigns WHERE %(campaign)s::bytea IS NULL OR campaign = %(campaign)s"
            " ORDER BY position DESC",
            {"campaign": campaign},
        )
        return tuple(CampaignRow(*row)._replace(state=CampaignState(row[5])) for row in rows)

    def attempts(self, campaign: bytes) -> tuple[AttemptRow, ...]:
        """Return the attempts at a campaign's phases, those at one phase in their order."""
        rows = self._database.query(
            "SELECT c.kind, c.number, attempt, c.phase, enrolled, map, created,"
            " coalesce(finished, CASE WHEN failure IS NOT NULL THEN ended END),"
            " coalesce(step = 'published', false), coalesce(failure, ''),"
            " CASE WHEN over AND step <> 'published' THEN common END,"
            " ARRAY(SELECT s.step FROM steps s WHERE s.phase = c.phase ORDER BY s.number)"
            " FROM campaign_phases c JOIN gatherings USING (phase) LEFT JOIN phases USING (phase)"
            " WHERE campaign = %s ORDER BY c.kind, c.number, attempt",
            (campaign,),
        )
        return tuple(
            AttemptRow._make([*told, _reason(common) or failure, tuple(steps)])
            for *told, failure, common, steps in rows
        )

    def of(self, phase: bytes) -> bytes | None:
        """Return the campaign of a phase; None if it is of none."""
        rows = self._database.query(
            "SELECT campaign FROM campaign_phases WHERE phase = %s", (phase,)
        )
        return bytes(rows[0][0]) if rows else None

    def missed(self, campaign: bytes) -> frozenset[tuple[str, int]]:
        """Return kind and number of each phase that is noted as missed."""
        rows = self._database.query(
            "SELECT kind, number FROM missed_phases WHERE campaign = %s", (campaign,)
        )
        return frozenset((kind, number) for kind, number in rows)

    def miss(self, campaign: bytes, kind: str, number: int) -> None:
        """Note that a phase opens no more."""
        self._database.query(
            "INSERT INTO missed_phases VALUES (%s, %s, %s) ON CONFLICT DO NOTHING",
            (campaign, kind, number),
        )

    def open(
        self,
        campaign: bytes,
        kind: str,
        number: int,
        attempt: int,
        phase: bytes,
        enrolled: int,
        places: bytes | None,
    ) -> None:
        """Note an attempt, whose gathering begins in the same transaction.

        Args:
            campaign: Digest of the campaign's plan.
            kind: Kind of the phase.
            number: Number among the phases of its kind.
            attempt: Number of the attempt.
            phase: Identifier of the phase.
            enrolled: Phones of the campaign's cohorts.
            places: Discovery that names unlabelled contacts; None for none.
        """
        self._database.query(
            "INSERT INTO campaign_phases VALUES (%s, %s, %s, %s, %s, %s, %s)",
            (campaign, kind, number, attempt, phase, enrolled, places),
        )

    def change(self, campaign: bytes, state: CampaignState, reason: str = "") -> None:
        """Let a campaign run, pause it or stop it."""
        self._database.query(
            "UPDATE campaigns SET state = %s, reason = %s WHERE campaign = %s",
            (state.value, reason, campaign),
        )

    def restore(self, reason: str) -> int:
        """Pause all campaigns, as the database was restored; return how many ran."""
        rows = self._database.query(
            "UPDATE campaigns c SET restored = seconds_now(),"
            " state = CASE WHEN c.state = 'running' THEN 'paused' ELSE c.state END,"
            " reason = CASE WHEN c.state = 'running' THEN %s ELSE c.reason END"
            " FROM campaigns before WHERE before.campaign = c.campaign RETURNING before.state",
            (reason,),
        )
        return sum(state == CampaignState.RUNNING.value for (state,) in rows)

    def give_way(self, campaign: bytes, until: date | None) -> None:
        """Let another campaign take over on a day, or none."""
        self._database.query(
            "UPDATE campaigns SET until = %s WHERE campaign = %s", (until, campaign)
        )

    def enrolled(self, cohorts: Sequence[str]) -> int:
        """Return the number of enrolled phones of these cohorts, or of all if none is named."""
        rows = self._database.query(
            "SELECT count(cohort) FROM phones WHERE %(cohorts)s = '{}'::text[]"
            " OR cohort = ANY(%(cohorts)s)",
            {"cohorts": list(cohorts)},
        )
        return int(rows[0][0])

    def published(self, phases: Iterable[bytes]) -> dict[bytes, tuple[Ending, float]]:
        """Return the results of those phases that have one, and when each was published."""
        rows = self._database.query(
            "SELECT phase, common, finished FROM phases"
            " WHERE phase = ANY(%s) AND step = 'published'",
            (list(phases),),
        )
        endings = ((phase, decode_task(common), finished) for phase, common, finished in rows)
        return {
            phase: (ending, finished)
            for phase, ending, finished in endings
            if isinstance(ending, Ending)
        }


def _reason(common: bytes | None) -> str:
    ending = None if common is None else decode_task(common)
    return ending.reason if isinstance(ending, Failed) else ""
