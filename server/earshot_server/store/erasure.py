"""Deletion of a phone that leaves or that an operator erases."""

from __future__ import annotations

from earshot_server.store.database import Connection, Database
from earshot_server.store.operators import Accounts


class Erasure:
    """Deletion of phones from a migrated database, for any number of threads.

    Every method also raises `DatabaseUnavailableError`.

    Args:
        database: Database of the phones.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._accounts = Accounts(database)

    def counts(self) -> tuple[int, int]:
        """Return how many phones are enrolled, and how many of them are in a phase under way."""
        enrolled, in_phases = self._database.query(
            "SELECT (SELECT count(*) FROM phones), (SELECT count(DISTINCT phone)"
            " FROM members JOIN gatherings USING (phase) LEFT JOIN phases USING (phase)"
            " WHERE failure IS NULL AND NOT coalesce(over, false))"
        )[0]
        return int(enrolled), int(in_phases)

    def erase(self, phone: int, operator: str, action: str) -> bool:
        """Delete a phone, its membership in all phases, and its answers to open steps.

        A closed step is still processed with the phone's answer, which is deleted when the next one
        opens. In a phase under way, the phone counts as dropped out. Its use of an invitation is
        not given back.

        Args:
            phone: Number of the phone.
            operator: Name of the operator, for the audit log, which does not name the phone.
            action: Name of the action in the audit log.

        Returns:
            Whether there was such a phone.
        """
        with self._database.transaction() as connection:
            known = connection.execute(
                "SELECT FROM phones WHERE phone = %s FOR UPDATE", (phone,)
            ).rowcount
            if not known:
                return False
            _leave_gatherings(connection, phone)
            _take_answers_back(connection, phone)
            connection.execute("DELETE FROM members WHERE phone = %s", (phone,))
            connection.execute("DELETE FROM phones WHERE phone = %s", (phone,))
            self._accounts.record(operator, action)
        return True


def _leave_gatherings(connection: Connection, phone: int) -> None:
    """Remove a phone from gatherings, giving its index to the phone that joined last.

    No phone has received its index yet.
    """
    locked = connection.execute(
        "SELECT phase FROM members JOIN gatherings g USING (phase)"
        " WHERE phone = %s AND ended IS NULL ORDER BY phase FOR UPDATE OF g",
        (phone,),
    ).fetchall()
    # Only read now: a former holder of the locks may have given this phone another index.
    places = connection.execute(
        "SELECT phase, index, joined - 1 FROM members JOIN gatherings USING (phase)"
        " WHERE phone = %s AND phase = ANY(%s)",
        (phone, [phase for (phase,) in locked]),
    ).fetchall()
    for phase, index, last in places:
        connection.execute("DELETE FROM members WHERE phase = %s AND phone = %s", (phase, phone))
        connection.execute(
            "UPDATE members SET index = %s WHERE phase = %s AND index = %s", (index, phase, last)
        )
        connection.execute("UPDATE gatherings SET joined = joined - 1 WHERE phase = %s", (phase,))


def _take_answers_back(connection: Connection, phone: int) -> None:
    """Delete the phone's answers to open steps; closing one waits until this is done.

    A kept answer to an earlier step stays: the helper has a list with it and may have added it up.
    """
    places = connection.execute(
        "SELECT phase, index, p.number FROM members JOIN phases p USING (phase)"
        " WHERE phone = %s AND NOT over AND NOT closed FOR SHARE OF p",
        (phone,),
    ).fetchall()
    for place in places:
        connection.execute(
            "DELETE FROM answers WHERE phase = %s AND phone = %s AND number = %s", place
        )
        connection.execute("DELETE FROM tasks WHERE phase = %s AND phone = %s", place[:2])
