"""Read access to all phases and their results, for operators, the API and the dashboard."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, LiteralString, NamedTuple

import msgspec

from earshot_protocol.errors import WrongStateError
from earshot_protocol.messages import AnyParameters, Failed, decode_task
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.wire import Ending
from earshot_server.records import (
    FAILED,
    GATHERING,
    PUBLISHED,
    RUNNING,
    STOPPED,
    STOPPED_REASON,
    CohortRecord,
    PhaseRecord,
    StepRecord,
    Trouble,
)
from earshot_server.store.database import Database

_PHASES: LiteralString = """
SELECT phase, parameters, created, coalesce(finished, CASE WHEN failure IS NOT NULL THEN ended END),
    wanted, least, joined, until, failure, step, deadline,
    CASE WHEN over THEN common END, name, cohorts,
    (SELECT json_object_agg(rule, r.phones) FROM refusals r WHERE r.phase = gatherings.phase)
FROM gatherings LEFT JOIN phases p USING (phase)
"""
_STEPS: LiteralString = """
SELECT phase, number, step, expected, CASE WHEN closed IS NULL
    THEN (SELECT count(*) FROM answers a WHERE a.phase = s.phase AND a.number = s.number)
    ELSE answered END, opened, closed
FROM steps s WHERE phase = ANY(%s) ORDER BY number
"""
_TROUBLES: LiteralString = """
SELECT phase, attempts, reason, next_try FROM troubles
WHERE phase = ANY(%s) AND reason <> ''
"""
_ERRANDS: LiteralString = """
SELECT phase, attempts, reason, next_try FROM errands WHERE phase = ANY(%s)
"""


class ServerCounts(NamedTuple):
    """Number of enrolled phones, size of the database in bytes, and refusals by rule."""

    phones: int
    database_bytes: int
    refusals: Mapping[str, int] = {}


class Archive:
    """Read side of a migrated database, for any number of threads.

    Every method also raises `DatabaseUnavailableError`.

    Args:
        database: Database of the phases.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def phases(self, limit: int | None = 100) -> tuple[PhaseRecord, ...]:
        """Return the newest phases, newest first; all of them if `limit` is None."""
        return self._records(
            self._database.query(_PHASES + " ORDER BY gatherings.position DESC LIMIT %s", (limit,))
        )

    def phases_named(self, prefix: str, limit: int = 100) -> tuple[PhaseRecord, ...]:
        """Return the newest phases whose identifier begins with these hexadecimal digits."""
        return self._records(
            self._database.query(
                _PHASES + " WHERE starts_with(encode(phase, 'hex'), %s)"
                " ORDER BY gatherings.position DESC LIMIT %s",
                (prefix, limit),
            )
        )

    def phase(self, phase: bytes) -> PhaseRecord | None:
        """Return one phase; None if it does not exist."""
        records = self._records(self._database.query(_PHASES + " WHERE phase = %s", (phase,)))
        return records[0] if records else None

    def phases_of(self, campaign: bytes) -> tuple[PhaseRecord, ...]:
        """Return all attempts at the phases of a campaign, named by its plan's digest."""
        return self._records(
            self._database.query(
                _PHASES + " JOIN campaign_phases USING (phase) WHERE campaign = %s"
                " ORDER BY gatherings.position",
                (campaign,),
            )
        )

    def statistics(self, limit: int = 100) -> tuple[Statistics, ...]:
        """Return the results of statistics phases, newest first."""
        rows = self._database.query(
            "SELECT common FROM phases JOIN gatherings USING (phase)"
            " WHERE kind = 'statistics' AND step = 'published' ORDER BY finished DESC LIMIT %s",
            (limit,),
        )
        endings = [_ending(common) for (common,) in rows]
        return tuple(ending for ending in endings if isinstance(ending, Statistics))

    def counts(self) -> ServerCounts:
        """Return the number of phones, the size of the database, and refusals by rule."""
        rows = self._database.query(
            "SELECT (SELECT count(*) FROM phones), pg_database_size(current_database())"
        )
        refusals = self._database.query("SELECT rule, sum(phones) FROM refusals GROUP BY rule")
        phones, database_bytes = rows[0]
        return ServerCounts(phones, database_bytes, {rule: int(count) for rule, count in refusals})

    def cohorts(self) -> tuple[CohortRecord, ...]:
        """Return all cohorts that have phones, by name; phones without one come first."""
        rows = self._database.query(
            "SELECT cohort, count(*), count(*) FILTER (WHERE NOT EXISTS ("
            " SELECT FROM members JOIN gatherings USING (phase) LEFT JOIN phases USING (phase)"
            " WHERE members.phone = phones.phone AND failure IS NULL"
            " AND NOT coalesce(phases.over, false)))"
            " FROM phones GROUP BY cohort ORDER BY cohort"
        )
        return tuple(CohortRecord(*row) for row in rows)

    def _records(self, rows: list[tuple[Any, ...]]) -> tuple[PhaseRecord, ...]:
        steps: defaultdict[bytes, list[StepRecord]] = defaultdict(list)
        names = [row[0] for row in rows]
        for phase, *step in self._database.query(_STEPS, (names,)):
            steps[phase].append(StepRecord(*step))
        troubles = {
            phase: Trouble(*trouble)
            for phase, *trouble in self._database.query(_TROUBLES, (names,))
        }
        errands = {
            phase: Trouble(*trouble) for phase, *trouble in self._database.query(_ERRANDS, (names,))
        }
        return tuple(
            _record(row, tuple(steps[row[0]]), troubles.get(row[0]), errands.get(row[0]))
            for row in rows
        )


def _record(
    row: tuple[Any, ...],
    steps: tuple[StepRecord, ...],
    trouble: Trouble | None,
    errand: Trouble | None,
) -> PhaseRecord:
    phase, parameters, created, finished, wanted, least, joined, until, *present = row
    failure, step, deadline, common, name, cohorts, refusals = present
    ending: Ending | None = None
    if common is not None:
        ending = _ending(common)
    elif failure is not None:
        ending = Failed.because(phase, failure)
    if isinstance(ending, Failed):
        status = STOPPED if ending.reason == STOPPED_REASON else FAILED
    elif ending is not None:
        status = PUBLISHED
    else:
        status = GATHERING if step is None else RUNNING
    return PhaseRecord(
        phase=phase,
        parameters=msgspec.msgpack.decode(parameters, type=AnyParameters),
        status=status,
        created=created,
        finished=finished,
        wanted=wanted,
        least=least,
        joined=joined,
        gather_until=until,
        step=status if ending is not None else step or status,
        deadline=None if ending is not None else deadline,
        steps=steps,
        ending=ending,
        trouble=None if ending else trouble,
        helper=None if ending else errand,
        name=name,
        cohorts=tuple(cohorts),
        refusals=dict(sorted((refusals or {}).items(), key=lambda each: (-each[1], each[0]))),
    )


def _ending(common: bytes) -> Ending:
    task = decode_task(common)
    if not isinstance(task, Ending):
        raise WrongStateError(f"a phase is over, but its ending is a {type(task).__name__}")
    return task
