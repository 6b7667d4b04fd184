"""The clock of a test's own database, and of processes, which the test moves."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from psycopg import sql

from earshot_protocol.files import replace_file
from earshot_server.store.database import Database

_MOVED = """\
import pathlib, time
_time, _shift = time.time, pathlib.Path(__file__).with_name("shift")
time.time = lambda: _time() + float(_shift.read_text())
"""
"""Moves the clock of every interpreter that has the module's folder in `PYTHONPATH`."""


class MovedClock:
    """The clock by which everything in a database happens.

    Args:
        database: A database of the test's own, as its owner.
        moment: Time to which it is set; from then on it goes as usual.
        processes: Folder of a module that moves the clock of processes likewise; None for none.
    """

    def __init__(self, database: Database, moment: datetime, processes: Path | None = None) -> None:
        self._database, self._processes = database, processes
        self.set(moment)
        if processes is not None:
            (processes / "sitecustomize.py").write_text(_MOVED, "utf-8")

    def set(self, moment: datetime) -> None:
        """Set the clock."""
        self._shift = moment.timestamp() - time.time()
        if self._processes is not None:
            replace_file(self._processes / "shift", str(self._shift).encode())
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
