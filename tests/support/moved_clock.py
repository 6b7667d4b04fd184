"""The clock of a test's own database, which the test moves."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

from psycopg import sql

from earshot_server.store.database import Database


class MovedClock:
    """The clock by which everything in a database happens.

    Args:
        database: A database of the test's own, as its owner.
        moment: Time to which it is set; from then on it goes as usual.
    """

    def __init__(self, database: Database, moment: datetime) -> None:
        self._database = database
        self.set(moment)

    def set(self, moment: datetime) -> None:
        """Set the clock."""
        self._shift = moment.timestamp() - time.time()
        with self._database.transaction() as connection:
            connection.execute(
                sql.SQL(
                    "CREATE OR REPLACE FUNCTION seconds_now() RETURNS double precision"
                    " LANGUAGE sql VOLATILE AS $$ SELECT extract(epoch FROM"
                    " clock_timestamp())::double precision + {} $$"
                ).format(sql.Literal(self._shift))
            )

    def move(self, by: timedelta) -> None:
        """Put the clock forward or, with a negative time, back."""
        self.set(self.now() + by)

    def now(self) -> datetime:
        """What it shows."""
        return datetime.fromtimestamp(time.time() + self._shift, UTC)
