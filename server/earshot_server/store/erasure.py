"""What is deleted when a phone leaves, or is erased by an operator."""

from __future__ import annotations

from earshot_server.store.database import Connection, Database
from earshot_server.store.operators import Accounts


class Erasure:
    """Deletes phones from a database that was migrated; for any number of threads.

    Every method also raises `DatabaseUnavailableError`.

    Args:
        database: where they are kept.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._accounts = Accounts(database)

    def counts(self) -> tuple[int, int]:
        """How many phones are enrolled, and how many of them are in a phase that is not over."""
        enrolled, in_phases = self._database.query(
            "SELECT (SELECT count(*) FROM phones), (SELECT count(DISTINCT phone)"
            " FROM members JOIN gatherings USING (phase) LEFT JOIN phases USING (phase)"
            " WHERE failure IS NULL AND NOT coalesce(over, false))"
        )[0]
        return int(enrolled), int(in_phases)

    def erase(self, phone: int, operator: str, action: str) -> bool:
        """Delete a phone, its places in all phases, and its answers to steps that are open.

        A step that is closed goes on with the answer that it has, whose row goes when the next one
        opens. To a phase under way, the phone is one that has vanished. The uses of its invitation
        do not come back.

        Args:
            phone: its number.
            operator: who the audit log says did it; the log does not say to which phone.
            action: what it says was done.

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
    """Let the phone that joined last take the number, which nobody was told yet."""
    locked = connection.execute(
        "SELECT phase FROM members JOIN gatherings g USING (phase)"
        " WHERE phone = %s AND ended IS NULL ORDER BY phase FOR UPDATE OF g",
        (phone,),
    ).fetchall()
    # Asked only now: whoever held the locks may have given this phone another number.
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
    """Of steps that are open; whoever closes one waits until this is done."""
    places = connection.execute(
        "SELECT phase, index FROM members JOIN phases p USING (phase)"
        " WHERE phone = %s AND NOT over AND NOT closed FOR SHARE OF p",
        (phone,),
    ).fetchall()
    for place in places:
        connection.execute("DELETE FROM answers WHERE phase = %s AND phone = %s", place)
        connection.execute("DELETE FROM tasks WHERE phase = %s AND phone = %s", place)
