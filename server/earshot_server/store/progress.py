"""How far everything is, in numbers: what is watched, and what one is woken for."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from earshot_protocol.messages import Failed, decode_task
from earshot_server.records import FAILED, GATHERING, PUBLISHED, RUNNING, STOPPED, STOPPED_REASON
from earshot_server.store.database import Database

STATUSES = (GATHERING, RUNNING, PUBLISHED, FAILED, STOPPED)
TOO_FEW_JOINED, TOO_FEW_ANSWERED, WRONG_SHARES, SERVER, OTHER = (
    "too-few-joined",
    "too-few-answered",
    "wrong-shares",
    "server",
    "other",
)
CAUSES = {
    TOO_FEW_JOINED: "phones have joined in time",
    TOO_FEW_ANSWERED: "phones answered",
    WRONG_SHARES: "shares",
    SERVER: "the server failed",
}
"""Causes of failures, and the words by which a reason is told to be one of each."""


class StepProgress(NamedTuple):
    """All phases of one kind that are at one step.

    Attributes:
        kind: of phase.
        step: its name.
        phases: how many.
        expected: phones that have a task.
        answered: of these, phones that have answered.
        age: seconds since the oldest of the steps began.
        left: seconds until the first of their deadlines; negative once it is past.
    """

    kind: str
    step: str
    phases: int
    expected: int
    answered: int
    age: float
    left: float


class GatheringProgress(NamedTuple):
    """All gatherings of one kind.

    Attributes:
        kind: of phase.
        wanted: phones that may join.
        joined: phones that have.
    """

    kind: str
    wanted: int
    joined: int


class Progress:
    """Reads a database that was migrated; for any number of threads.

    Every method also raises `DatabaseUnavailableError`.

    Args:
        database: where phases are kept.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def steps(self) -> tuple[StepProgress, ...]:
        """The steps that are open."""
        rows = self._database.query(
            "SELECT kind, p.step, count(*), sum(p.expected)::bigint, sum((SELECT count(*)"
            "  FROM answers a WHERE a.phase = p.phase))::bigint, max(seconds_now() - opened),"
            " min(p.deadline - seconds_now())"
            " FROM phases p JOIN gatherings USING (phase)"
            " JOIN steps s ON s.phase = p.phase AND s.number = p.number"
            " WHERE NOT over AND failure IS NULL GROUP BY kind, p.step ORDER BY kind, p.step"
        )
        return tuple(StepProgress(*row) for row in rows)

    def gatherings(self) -> tuple[GatheringProgress, ...]:
        """The gatherings that phones may join."""
        rows = self._database.query(
            "SELECT kind, sum(wanted)::bigint, sum(joined)::bigint FROM gatherings"
            " WHERE ended IS NULL GROUP BY kind ORDER BY kind"
        )
        return tuple(GatheringProgress(*row) for row in rows)

    def overdue(self) -> float:
        """Seconds since a step or a gathering should have ended that no driver has ended yet."""
        rows = self._database.query(
            "SELECT coalesce(max(seconds_now() - due), 0) FROM ("
            " SELECT deadline AS due FROM phases WHERE NOT over UNION ALL"
            " SELECT until FROM gatherings g WHERE failure IS NULL"
            "  AND NOT EXISTS (SELECT FROM phases p WHERE p.phase = g.phase)) AS open"
        )
        return max(0.0, float(rows[0][0]))

    def in_trouble(self) -> int:
        """How many phases a driver could not move on."""
        rows = self._database.query(
            "SELECT count(*) FROM troubles JOIN gatherings USING (phase)"
            " LEFT JOIN phases USING (phase)"
            " WHERE reason <> '' AND failure IS NULL AND NOT coalesce(over, false)"
        )
        return int(rows[0][0])

    def statuses(self) -> dict[str, int]:
        """How many phases there are, by status."""
        rows = self._database.query(
            "SELECT count(*) FILTER (WHERE p.phase IS NULL AND failure IS NULL),"
            " count(*) FILTER (WHERE NOT over AND failure IS NULL),"
            " count(*) FILTER (WHERE step = 'published')"
            " FROM gatherings LEFT JOIN phases p USING (phase)"
        )
        reasons = self._reasons()
        stopped = reasons.count(STOPPED_REASON)
        return dict(zip(STATUSES, (*rows[0], len(reasons) - stopped, stopped), strict=True))

    def failures(self) -> dict[str, int]:
        """How many phases have failed, by cause; those that an operator stopped are none."""
        found = Counter(cause(reason) for reason in self._reasons() if reason != STOPPED_REASON)
        return {name: found[name] for name in (*CAUSES, OTHER)}

    def _reasons(self) -> list[str]:
        rows = self._database.query(
            "SELECT failure, common FROM gatherings LEFT JOIN phases USING (phase)"
            " WHERE failure IS NOT NULL OR step = 'failed'"
        )
        reasons = []
        for failure, common in rows:
            ending = decode_task(common) if failure is None else None
            reasons.append(ending.reason if isinstance(ending, Failed) else failure or "")
        return reasons


def cause(reason: str) -> str:
    """Of which kind a failure is, by what phones were told."""
    return next((name for name, words in CAUSES.items() if words in reason), OTHER)
