"""Progress of phases in numbers, for monitoring."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from earshot_protocol.messages import Failed, decode_task
from earshot_protocol.secure_sum.interface import HELPER
from earshot_server.records import (
    FAILED,
    GATHERING,
    PUBLISHED,
    RESTORED_REASON,
    RUNNING,
    STOPPED,
    STOPPED_REASON,
)
from earshot_server.store.database import Database

STATUSES = (GATHERING, RUNNING, PUBLISHED, FAILED, STOPPED)
TOO_FEW_JOINED, TOO_FEW_ANSWERED, WRONG_SHARES, SERVER, RESTORED, OTHER = (
    "too-few-joined",
    "too-few-answered",
    "wrong-shares",
    "server",
    "restored",
    "other",
)
CAUSES = {
    TOO_FEW_JOINED: "phones have joined in time",
    TOO_FEW_ANSWERED: "phones answered",
    WRONG_SHARES: "shares",
    SERVER: "the server failed",
    RESTORED: RESTORED_REASON,
}
"""Causes of failures, each with the text by which its reasons are recognized."""

NOT_IN_VAIN = "none"
"""Reason of a wait for a helper without a failed request."""


class StepProgress(NamedTuple):
    """Progress of all phases of one kind that are at one step.

    Attributes:
        kind: Kind of phase.
        step: Name of the step.
        phases: Number of phases.
        expected: Number of phones that have a task.
        answered: Number of these phones that have answered.
        age: Seconds since the oldest of the steps began.
        left: Seconds until the first of their deadlines; negative once it has passed.
    """

    kind: str
    step: str
    phases: int
    expected: int
    answered: int
    age: float
    left: float


class HelperWait(NamedTuple):
    """Phases of one kind that wait for the helper at one step, for one reason.

    Attributes:
        kind: Kind of phase.
        step: Name of the step.
        reason: Name of the last trouble with the helper; `NOT_IN_VAIN` without any.
        phases: Number of phases.
        age: Seconds for which the first of them has waited.
    """

    kind: str
    step: str
    reason: str
    phases: int
    age: float


class GatheringProgress(NamedTuple):
    """Progress of all gatherings of one kind.

    Attributes:
        kind: Kind of phase.
        wanted: Largest number of phones that may join.
        joined: Number of phones that have joined.
    """

    kind: str
    wanted: int
    joined: int


class PhaseProgress:
    """Reader of progress in a migrated database, for any number of threads.

    Every method also raises `DatabaseUnavailableError`.

    Args:
        database: Database of the phases.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def steps(self) -> tuple[StepProgress, ...]:
        """Return the progress of the steps that are open."""
        rows = self._database.query(
            "SELECT kind, p.step, count(*), sum(p.expected)::bigint, sum((SELECT count(*)"
            "  FROM answers a WHERE a.phase = p.phase AND a.number = p.number))::bigint,"
            " max(seconds_now() - opened),"
            " min(p.deadline - seconds_now())"
            " FROM phases p JOIN gatherings USING (phase)"
            " JOIN steps s ON s.phase = p.phase AND s.number = p.number"
            " WHERE NOT over AND failure IS NULL GROUP BY kind, p.step ORDER BY kind, p.step"
        )
        return tuple(StepProgress(*row) for row in rows)

    def waits_for_helper(self) -> tuple[HelperWait, ...]:
        """Return the phases that wait for the helper of their sums."""
        rows = self._database.query(
            "SELECT kind, p.step, coalesce(reason, %(none)s) AS why, count(*),"
            " max(seconds_now() - opened)"
            " FROM phases p JOIN gatherings USING (phase) JOIN tasks t USING (phase)"
            " JOIN steps s ON s.phase = p.phase AND s.number = p.number"
            " LEFT JOIN errands e ON e.phase = p.phase"
            " WHERE t.phone = %(helper)s AND NOT over AND failure IS NULL"
            " AND NOT EXISTS (SELECT FROM answers a"
            "  WHERE a.phase = p.phase AND a.number = p.number AND a.phone = %(helper)s)"
            " GROUP BY kind, p.step, why ORDER BY kind, p.step, why",
            {"helper": HELPER, "none": NOT_IN_VAIN},
        )
        return tuple(HelperWait(*row) for row in rows)

    def gatherings(self) -> tuple[GatheringProgress, ...]:
        """Return the progress of the gatherings that phones may join."""
        rows = self._database.query(
            "SELECT kind, sum(wanted)::bigint, sum(joined)::bigint FROM gatherings"
            " WHERE ended IS NULL GROUP BY kind ORDER BY kind"
        )
        return tuple(GatheringProgress(*row) for row in rows)

    def overdue(self) -> float:
        """Return the most seconds by which a step or gathering is overdue; 0 for none."""
        rows = self._database.query(
            "SELECT coalesce(max(seconds_now() - due), 0) FROM ("
            " SELECT deadline AS due FROM phases WHERE NOT over UNION ALL"
            " SELECT until FROM gatherings g WHERE failure IS NULL"
            "  AND NOT EXISTS (SELECT FROM phases p WHERE p.phase = g.phase)) AS open"
        )
        return max(0.0, float(rows[0][0]))

    def in_trouble(self) -> int:
        """Return how many phases a driver could not move on."""
        rows = self._database.query(
            "SELECT count(*) FROM troubles JOIN gatherings USING (phase)"
            " LEFT JOIN phases USING (phase)"
            " WHERE reason <> '' AND failure IS NULL AND NOT coalesce(over, false)"
        )
        return int(rows[0][0])

    def statuses(self) -> dict[str, int]:
        """Return how many phases there are, by status."""
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
        """Return how many phases failed, by cause, without those stopped by an operator."""
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
    """Return the cause of a failure, from the reason that was sent to phones."""
    return next((name for name, words in CAUSES.items() if words in reason), OTHER)
