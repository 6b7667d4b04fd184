"""Errands to the helper of sums by two operators: the open ones, and their failed tries."""

from __future__ import annotations

from earshot_protocol.secure_sum.interface import HELPER
from earshot_server.store.database import Database


class Errands:
    """Errands in a migrated database, for any number of threads.

    Every method also raises `DatabaseUnavailableError`.

    Args:
        database: Database that keeps them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def due(self) -> tuple[bytes, ...]:
        """Return the phases whose helper is to be asked now; those that wait longest come first.

        Phases that a driver holds a lease on are left out.
        """
        rows = self._database.query(
            "SELECT phase FROM phases p JOIN tasks t USING (phase)"
            " LEFT JOIN errands e USING (phase) LEFT JOIN gatherings g USING (phase)"
            " WHERE t.phone = %(helper)s AND NOT over AND NOT closed AND failure IS NULL"
            " AND coalesce(next_try, 0) <= seconds_now() AND NOT EXISTS (SELECT FROM answers a"
            "  WHERE a.phase = p.phase AND a.number = p.number AND a.phone = %(helper)s)"
            " AND NOT EXISTS (SELECT FROM leases l"
            "  WHERE l.phase = p.phase AND expires > seconds_now())"
            " ORDER BY coalesce(next_try, 0), p.position",
            {"helper": HELPER},
        )
        return tuple(phase for (phase,) in rows)

    def fail(self, phase: bytes, reason: str, seconds: float = 0.0) -> None:
        """Record that the helper gave no answer; pauses double with each try, up to an hour.

        Args:
            phase: Identifier of the phase.
            reason: Name of the trouble.
            seconds: Least seconds until the next try.
        """
        self._database.query(
            "INSERT INTO errands VALUES (%(phase)s, 1, %(reason)s,"
            "  greatest(next_try_after(1), seconds_now() + %(seconds)s))"
            " ON CONFLICT (phase) DO UPDATE SET reason = excluded.reason,"
            "  attempts = errands.attempts + 1, next_try = greatest("
            "   next_try_after(errands.attempts + 1), seconds_now() + %(seconds)s)",
            {"phase": phase, "reason": reason, "seconds": seconds},
        )

    def clear(self, phase: bytes) -> None:
        """Delete the tries: the helper has answered, or is no longer asked."""
        self._database.query("DELETE FROM errands WHERE phase = %s", (phase,))

    def purge(self) -> None:
        """Delete the tries of phases that are over or deleted."""
        self._database.query(
            "DELETE FROM errands e WHERE NOT EXISTS"
            " (SELECT FROM phases p WHERE p.phase = e.phase AND NOT over)"
        )
