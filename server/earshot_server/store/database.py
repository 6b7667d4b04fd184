"""PostgreSQL database: pooled connections, migrations, and errors with advice."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import resources
from typing import Any, LiteralString, TypeVar

import psycopg
from psycopg import errors
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg_pool import ConnectionPool, PoolTimeout

from earshot_protocol.errors import InvalidInputError, LocalError
from earshot_protocol.one_process import OneProcess

Connection = psycopg.Connection[tuple[Any, ...]]
Parameters = Mapping[str, object] | Sequence[object]
_T = TypeVar("_T")

SECONDS_UNTIL_DATABASE = 5
"""`Retry-After` of responses while the database cannot be used, in seconds."""
_CONNECTION = {
    "connect_timeout": "5",
    "tcp_user_timeout": "30000",
    "keepalives_idle": "60",
    "application_name": "earshot",
}
"""Defaults for options that the URL does not set, to detect lost connections."""
SCHEMA_LOCK = 0x65617273686F74
"""Advisory lock held while the schema or privileges are changed."""
_CONNECTION_LOST = ("08", "57P")
"""Classes of SQLSTATE (or beginnings) after which another connection may work."""

_ADVICE: dict[type[psycopg.Error], str] = {
    errors.DiskFull: "its disk is full; free some space there",
    errors.ReadOnlySqlTransaction: (
        "it is read-only: connect to the primary server, or unset default_transaction_read_only"
    ),
    errors.InsufficientPrivilege: (
        "its role may not do this; restart the server with --database as the role that owns it"
    ),
    errors.UndefinedTable: "its tables are missing; restart the server to create them",
    errors.TooManyConnections: "it accepts no more connections; raise max_connections",
}
_UNUSABLE: tuple[type[psycopg.Error], ...] = (psycopg.OperationalError, *_ADVICE)


class DatabaseUnavailableError(LocalError):
    """The database cannot be used until the reason in the message is resolved.

    Attributes:
        advice: Advice on what to do, without anything confidential; empty if there is only the
            database's own message.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class NewerSchemaError(LocalError):
    """The database was migrated by a newer version of this software; only newer ones may use it."""


class OccupiedDatabaseError(LocalError):
    """The database contains tables or functions of another application with our names."""


class Database(OneProcess):
    """Database with a pool of connections to it, for any number of threads.

    Connections are opened when needed. The object is usable only in the process that created it.
    Methods raise `DatabaseUnavailableError` while the database is not reachable, not writable, or
    full.

    No prepared statement, setting, lock or temporary table outlives its transaction, so a pooler
    may give each transaction another session.

    Args:
        url: URL of the database, `postgresql://user:password@host:port/name`, or libpq's other
            forms.
        pool_size: Largest number of connections.
        patience: Seconds to wait for a connection.

    Raises:
        InvalidInputError: The URL is invalid; the message omits it, since it may hold a password.
    """

    def __init__(self, url: str, *, pool_size: int = 4, patience: float = 5.0) -> None:
        self._conninfo, self._password = parse(url)
        self._patience = patience
        self._present = threading.local()
        """Connection of the transaction that each thread is in."""
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            self._conninfo,
            kwargs={"autocommit": True, "prepare_threshold": None},
            min_size=0,
            max_size=pool_size,
            timeout=patience,
            reconnect_timeout=patience,
            name="earshot",
            open=True,
        )

    def close(self) -> None:
        """Close all connections."""
        self.check_process()
        self._pool.close()

    # ------------------------------------------------------------------------- statements

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Run a block in one transaction, which is rolled back if it raises.

        All statements of this thread within the block are part of it; a nested block is a
        savepoint. If committing fails, nothing is changed, unless the connection broke during the
        commit.
        """
        outer = self._present_connection()
        if outer is not None:
            with self._named_errors(), outer.transaction():
                yield outer
            return
        with self._named_errors(), ExitStack() as stack:

            def begin() -> Connection:
                stack.close()
                connection = stack.enter_context(self._pool.connection())
                stack.enter_context(connection.transaction())
                return connection

            self._present.connection = self._again_if_lost(begin)
            try:
                yield self._present.connection
            finally:
                self._present.connection = None

    def query(self, statement: LiteralString, parameters: Parameters = ()) -> list[tuple[Any, ...]]:
        """Run one statement, which may run twice if the connection breaks; return its rows."""

        def run() -> list[tuple[Any, ...]]:
            with self._pool.connection() as connection:
                return _rows(connection, statement, parameters)

        present = self._present_connection()
        with self._named_errors():
            if present is not None:
                return _rows(present, statement, parameters)
            return self._again_if_lost(run)

    def _present_connection(self) -> Connection | None:
        """Return the connection of the transaction that this thread is in."""
        self.check_process()
        return getattr(self._present, "connection", None)

    def now(self) -> float:
        """Return the seconds since 1970, on the database's clock."""
        return float(self.query("SELECT seconds_now()")[0][0])

    def check(self) -> None:
        """Check in one round trip that the database is reachable, writable, and of our schema.

        Raises:
            NewerSchemaError: The database is of a newer schema.
        """
        read_only, version = self.query(
            "SELECT current_setting('transaction_read_only') = 'on', max(version)"
            " FROM schema_version"
        )[0]
        if read_only:
            raise self._unavailable(errors.ReadOnlySqlTransaction())
        newest = _migrations()[-1][0]
        refuse_newer(version or 0)
        if (version or 0) < newest:
            raise self._unavailable(errors.UndefinedTable())

    def write(self) -> None:
        """Write one row durably, to detect a full or missing disk before phones do."""
        self.query(
            "INSERT INTO readiness (written) VALUES (seconds_now())"
            " ON CONFLICT (one) DO UPDATE SET written = excluded.written"
        )

    def _again_if_lost(self, attempt: Callable[[], _T]) -> _T:
        """Call `attempt`; if its connection broke, call it again on another one."""
        try:
            return attempt()
        except psycopg.OperationalError as error:
            if not _is_lost(error):
                raise
            self._pool.check()
            return attempt()

    # ------------------------------------------------------------------------- migrations

    def migrate(self, until: int | None = None) -> None:
        """Bring the schema up to date; any number of processes may do so concurrently.

        Each migration is one transaction.

        Args:
            until: Version of the last migration; None for the newest.

        Raises:
            NewerSchemaError: The database is of a newer schema than this software knows.
            OccupiedDatabaseError: The database contains another application's tables.
        """
        for version, name, statements in _migrations()[:until]:
            with self.transaction() as connection:
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK,))
                present = _schema_version(connection)
                refuse_newer(present)
                if present < version:
                    try:
                        connection.execute(statements)
                    except (errors.DuplicateTable, errors.DuplicateFunction) as error:
                        raise OccupiedDatabaseError(
                            f"the database is something else's, too: {error.diag.message_primary}; "
                            "give the URL of a database of our own"
                        ) from error
                    connection.execute(
                        "INSERT INTO schema_version (version, name) VALUES (%s, %s)",
                        (version, name),
                    )

    def schema(self) -> int:
        """Return the version of the schema; 0 for a database that was never migrated."""
        if "schema_version" not in self.tables():
            return 0
        return int(self.query("SELECT coalesce(max(version), 0) FROM schema_version")[0][0])

    def tables(self) -> frozenset[str]:
        """Return the names of all tables, ours or not."""
        rows = self.query("SELECT tablename FROM pg_tables WHERE schemaname = current_schema()")
        return frozenset(name for (name,) in rows)

    # ----------------------------------------------------------------------------- errors

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except PoolTimeout as error:
            raise self._unavailable(self._why_no_connection()) from error
        except _UNUSABLE as error:
            raise self._unavailable(error) from error

    def _why_no_connection(self) -> psycopg.Error:
        """Return why there is no connection, by opening one: the pool does not tell."""
        try:
            psycopg.connect(self._conninfo).close()
        except psycopg.OperationalError as error:
            return error
        return errors.TooManyConnections(f"all connections were busy for {self._patience:g} s")

    def _unavailable(self, error: psycopg.Error) -> DatabaseUnavailableError:
        reported = " ".join(str(error).split())
        advice = next((text for kind, text in _ADVICE.items() if isinstance(error, kind)), "")
        message = "the database cannot be used: " + " - ".join(filter(None, (advice, reported)))
        if self._password:
            message = message.replace(self._password, "…")
        return DatabaseUnavailableError(message, advice)


def _rows(
    connection: Connection, statement: LiteralString, parameters: Parameters
) -> list[tuple[Any, ...]]:
    cursor = connection.execute(statement, parameters, binary=True)
    return cursor.fetchall() if cursor.description else []


def parse(url: str) -> tuple[str, str]:
    """Return the connection string for a URL, and the URL's password; empty without one.

    Raises:
        InvalidInputError: The URL is invalid; the message omits it, since it may hold a password.
    """
    try:
        given = conninfo_to_dict(url)
        for port in str(given.get("port", "")).split(","):
            int(port or 0)
        # A password that is not percent-encoded may end up in the host or the port.
        if "@" in str(given.get("host", "")):
            raise ValueError
    except (psycopg.ProgrammingError, ValueError):
        raise InvalidInputError(
            "the database's URL must be like postgresql://user:password@host:port/name, with "
            "special characters of a password percent-encoded"
        ) from None
    options = {k: v for k, v in _CONNECTION.items() if k not in given}
    # Overrides the environment and the role: names may be in any language.
    conninfo = make_conninfo(url, **options, client_encoding="UTF8")
    return conninfo, str(given.get("password") or "")


def _is_lost(error: psycopg.OperationalError) -> bool:
    """Return whether the connection broke, in which case another one may work."""
    if isinstance(error, PoolTimeout):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(_CONNECTION_LOST)


def _migrations() -> list[tuple[int, str, bytes]]:
    """Return the migrations (version, name, SQL), in order."""
    folder = resources.files("earshot_server.store") / "migrations"
    files = sorted((f for f in folder.iterdir() if f.name.endswith(".sql")), key=lambda f: f.name)
    return [(int(f.name[:4]), f.name[5:-4], f.read_bytes()) for f in files]


def _schema_version(connection: Connection) -> int:
    connection.execute(
        "CREATE TABLE IF NOT EXISTS schema_version ("
        " version integer PRIMARY KEY, name text NOT NULL, applied timestamptz DEFAULT now())"
    )
    row = connection.execute("SELECT coalesce(max(version), 0) FROM schema_version").fetchone()
    return int(row[0]) if row else 0


def refuse_newer(present: int) -> None:
    """Check that this software knows a schema.

    Raises:
        NewerSchemaError: A newer version of this software created it.
    """
    known = _migrations()[-1][0]
    if present > known:
        raise NewerSchemaError(
            f"the database has schema {present}, and this version knows {known}: install the "
            "version that migrated it, or a newer one"
        )
