"""The helper's database: one SQLite file, for any number of threads and processes.

It contains no secrets, as deleted content can remain in SQLite's log.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from earshot_protocol.errors import LocalError
from earshot_protocol.files import made_whole
from earshot_protocol.one_process import OneProcess
from earshot_server.store.database import DatabaseUnavailableError, NewerSchemaError

SCHEMA_VERSION = 1
"""Version of the file's schema, stored in SQLite's `user_version`; changes with the schema."""
_APPLICATION_ID = 0x45617268
_PATIENCE = 20.0
"""Seconds for which a change waits for other processes' locks."""
SCHEMA = (
    # One row: whose database this is.
    "CREATE TABLE helper (identity BLOB NOT NULL)",
    "CREATE TABLE leaders (identity BLOB PRIMARY KEY, least_reports INTEGER NOT NULL,"
    " least_noise REAL NOT NULL, largest_window REAL NOT NULL, offers_a_day INTEGER NOT NULL,"
    " largest_crowd INTEGER NOT NULL)",
    # Rows stay for good: each makes its sum spent. Offers and totals do not. A total without a byte
    # is that of a list of which too few reports opened.
    "CREATE TABLE sums (sum_id BLOB PRIMARY KEY, leader BLOB NOT NULL, request BLOB NOT NULL,"
    " digest BLOB NOT NULL, offered REAL NOT NULL, answer_until REAL NOT NULL, offer BLOB,"
    " made INTEGER NOT NULL, reports BLOB, answered REAL, total BLOB)",
    "CREATE INDEX sums_of_leaders ON sums (leader, offered)",
    "CREATE INDEX open_sums ON sums (answer_until) WHERE reports IS NULL",
    "CREATE INDEX kept_offers ON sums (answer_until) WHERE offer IS NOT NULL",
    "CREATE TABLE refusals (name TEXT PRIMARY KEY, count INTEGER NOT NULL)",
    "CREATE TABLE readiness (only INTEGER PRIMARY KEY, count INTEGER NOT NULL)",
)
"""Statements that create the tables; SQLite stores their text, which is compared at every start."""


class HelperDatabaseError(LocalError):
    """The file is not a helper's database."""


class HelperDatabase(OneProcess):
    """Database of one helper, usable only in the process that created the object.

    Methods raise `DatabaseUnavailableError` while the file cannot be read or written.

    Args:
        path: Path of the file, which exists.

    Raises:
        DatabaseUnavailableError: The file cannot be opened.
        HelperDatabaseError: It is not a helper's database, or has another schema.
        NewerSchemaError: A newer version of this software wrote it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.RLock()
        with named_errors():
            self._connection = _connect(path)
        try:
            with named_errors():
                self._connection.execute("PRAGMA synchronous = FULL")
                self._connection.execute("PRAGMA fullfsync = ON")
                # Overwrite dropped content instead of leaving it in a free page.
                self._connection.execute("PRAGMA secure_delete = ON")
            self.check()
        except BaseException:
            self._connection.close()
            raise

    @staticmethod
    def make(path: Path, identity: bytes) -> None:
        """Create the database of a new helper, unless it exists.

        Raises:
            DatabaseUnavailableError: The file cannot be created.
        """
        if path.exists():
            return
        with named_errors(), made_whole(path) as draft, closing(_connect(draft)) as connection:
            connection.execute(f"PRAGMA application_id = {_APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute("INSERT INTO helper (identity) VALUES (?)", (identity,))
            connection.execute("PRAGMA journal_mode = WAL")  # stored in the file

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Run a `with` block in one transaction, durable at its end.

        Other threads and processes that want to write wait for its end.
        """
        self.check_process()
        with self._lock, named_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                # A full disk may have made SQLite roll back everything already.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run one statement of SQL and return its rows."""
        self.check_process()
        with self._lock, named_errors():
            return self._connection.execute(statement, values).fetchall()

    def change(self, statement: str, *values: object) -> int:
        """Run one statement of SQL and return how many rows it changed."""
        self.check_process()
        with self._lock, named_errors():
            return self._connection.execute(statement, values).rowcount

    def empty_log(self) -> None:
        """Move SQLite's log into the file and truncate it, as far as no reader needs it."""
        self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def check(self) -> None:
        """Check that the file is a helper's database that this software can read.

        Raises:
            HelperDatabaseError: It is not a helper's database, or has another schema.
            NewerSchemaError: A newer version of this software wrote it.
        """
        (application,), (version,) = (
            self.rows(f"PRAGMA {name}")[0] for name in ("application_id", "user_version")
        )
        if application != _APPLICATION_ID:
            raise HelperDatabaseError("the file is not a helper's database, or its content is lost")
        if version > SCHEMA_VERSION:
            raise NewerSchemaError(
                f"the helper's database has version {version}; this software reads "
                f"{SCHEMA_VERSION}: update it"
            )
        present = {made for (made,) in self.rows("SELECT sql FROM sqlite_master")}
        if not present.issuperset(SCHEMA):
            raise HelperDatabaseError(
                "the helper's database has another schema: let the version that wrote it answer "
                f"its open sums, then move {self._path.name} and the folder of keys away and run "
                "`earshot helper init`: the helper keeps its own key, and leaders have to be "
                "allowed again"
            )

    def write(self) -> None:
        """Probe that the database is writable."""
        self.change(
            "INSERT INTO readiness VALUES (1, 1) ON CONFLICT DO UPDATE SET count = count + 1"
        )

    def close(self) -> None:
        """Close the file; closing twice is harmless."""
        self.check_process()
        with self._lock:
            self._connection.close()


def _connect(path: Path) -> sqlite3.Connection:
    # The object's lock serializes threads.
    return sqlite3.connect(
        f"file:{quote(str(path.absolute()))}?mode=rw",
        timeout=_PATIENCE,
        isolation_level=None,
        check_same_thread=False,
        uri=True,
    )


@contextmanager
def named_errors() -> Iterator[None]:
    """Turn errors of SQLite and of the file system into ours."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
            raise HelperDatabaseError("the file is not a helper's database") from error
        raise DatabaseUnavailableError(
            f"the helper's database or its keys cannot be read or written ({error})"
        ) from error
