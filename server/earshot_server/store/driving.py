"""State that drivers share and operators see: troubles of phases, and which drivers are alive."""

from __future__ import annotations

from typing import NamedTuple

from earshot_server.records import Trouble
from earshot_server.store.database import Database

LEFT = "the driver ended in the middle of it"
"""Reason for trouble if the driver died before it could record one."""
TROUBLES = "troubles"
LOST_LEASES = "lost leases"
"""Names of tallies."""


class Drivers(NamedTuple):
    """State of all drivers together.

    Attributes:
        alive: Drivers that began a turn within the last minute.
        seconds_since_turn: Seconds since any driver last began a turn; None if none ever did.
        troubles: Number of times that a phase could not be moved on.
        lost_leases: Number of times that work was discarded after another driver had taken over.
    """

    alive: int
    seconds_since_turn: float | None
    troubles: int
    lost_leases: int


class Driving:
    """Troubles of phases and state of drivers, in a migrated database.

    Every method also raises `DatabaseUnavailableError`.

    Args:
        database: Database that keeps them.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    # --------------------------------------------------------------------------- troubles

    def begin(self, phase: bytes) -> Trouble:
        """Count a try to move a phase on, before it is made.

        Returns:
            The number of the try, and the reason why the last one failed.
        """
        rows = self._database.query(
            "INSERT INTO troubles VALUES (%s, 1, '', next_try_after(1))"
            " ON CONFLICT (phase) DO UPDATE SET attempts = troubles.attempts + 1,"
            "  next_try = next_try_after(troubles.attempts + 1),"
            "  reason = coalesce(nullif(troubles.reason, ''), %s)"
            " RETURNING attempts, reason, next_try",
            (phase, LEFT),
        )
        return Trouble(*rows[0])

    def fail(self, phase: bytes, reason: str, *, counts: bool = True) -> None:
        """Record a failed try; pauses double with each, up to an hour.

        Args:
            phase: Identifier of the phase.
            reason: Name of the error.
            counts: Whether the try counts towards `MOST_TRIES`.
        """
        self._database.query(
            "WITH tally AS (INSERT INTO tallies VALUES (%(name)s, 1)"
            "  ON CONFLICT (name) DO UPDATE SET count = tallies.count + 1)"
            " INSERT INTO troubles VALUES (%(phase)s, 1, %(reason)s, next_try_after(1))"
            " ON CONFLICT (phase) DO UPDATE SET reason = excluded.reason,"
            "  next_try = next_try_after(troubles.attempts),"
            "  attempts = greatest(1, troubles.attempts - %(back)s)",
            {"phase": phase, "reason": reason, "name": TROUBLES, "back": 0 if counts else 1},
        )

    def clear(self, phase: bytes) -> None:
        """Delete the tries of a phase, which has moved on."""
        self._database.query("DELETE FROM troubles WHERE phase = %s", (phase,))

    def postponed(self) -> frozenset[bytes]:
        """Return the phases whose next try is in the future."""
        rows = self._database.query("SELECT phase FROM troubles WHERE next_try > seconds_now()")
        return frozenset(phase for (phase,) in rows)

    # ---------------------------------------------------------------------- signs of life

    def turned(self, owner: str) -> None:
        """Record that a driver begins a turn."""
        self._database.query(
            "INSERT INTO drivers VALUES (%s, seconds_now())"
            " ON CONFLICT (owner) DO UPDATE SET turned = excluded.turned",
            (owner,),
        )

    def lost_lease(self) -> None:
        """Count work that was discarded because another driver had taken over."""
        self._database.query(
            "INSERT INTO tallies VALUES (%s, 1)"
            " ON CONFLICT (name) DO UPDATE SET count = tallies.count + 1",
            (LOST_LEASES,),
        )

    def drivers(self) -> Drivers:
        """Return the state of all drivers."""
        rows = self._database.query(
            "SELECT count(*) FILTER (WHERE turned > seconds_now() - 60),"
            " (seconds_now() - max(turned)),"
            " (SELECT coalesce(sum(count), 0)::bigint FROM tallies WHERE name = %s),"
            " (SELECT coalesce(sum(count), 0)::bigint FROM tallies WHERE name = %s) FROM drivers",
            (TROUBLES, LOST_LEASES),
        )
        return Drivers(*rows[0])

    def purge(self, before: float) -> None:
        """Delete drivers without a turn since `before`, and troubles of phases that are over."""
        self._database.query("DELETE FROM drivers WHERE turned < %s", (before,))
        self._database.query(
            "DELETE FROM troubles t WHERE NOT EXISTS (SELECT FROM gatherings g"
            " LEFT JOIN phases p USING (phase)"
            " WHERE g.phase = t.phase AND g.failure IS NULL AND NOT coalesce(p.over, false))"
        )
