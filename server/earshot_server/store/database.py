"""A PostgreSQL database: pooled connections, migrations, and errors that say what to do."""

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

Connection = psycopg.Connection[tuple[Any, ...]]
Parameters = Mapping[str, object] | Sequence[object]
_T = TypeVar("_T")

SECONDS_UNTIL_DATABASE = 5
"""After which callers are told to try again while it cannot be used."""
_CONNECTION = {"connect_timeout": "5", "tcp_user_timeout": "30000", "application_name": "earshot"}
"""Where the URL says nothing else: a network that swallows packets is noticed."""
SCHEMA_LOCK = 0x65617273686F74
"""An advisory lock: whoever changes the schema, or privileges, is alone in it."""
_CONNECTION_LOST = ("08", "57P")
"""Classes of SQLSTATE after which another connection may do."""

_ADVICE: dict[type[psycopg.Error], str] = {
    errors.DiskFull: "its disk is full; free some space there",
    errors.ReadOnlySqlTransaction: (
        "it is read-only: connect to the primary server, or take default_transaction_read_only away"
    ),
    errors.InsufficientPrivilege: (
        "its role may not do this; start the server again with --database as the role that owns it"
    ),
    errors.UndefinedTable: "it lacks our tables; start the server again to have them made",
    errors.TooManyConnections: "it takes no more connections; raise max_connections",
}
_UNUSABLE: tuple[type[psycopg.Error], ...] = (psycopg.OperationalError, *_ADVICE)


class DatabaseUnavailableError(LocalError):
    """The database cannot be used now; says why, and works again when the reason is gone.

    Attributes:
        advice: what to do, in words that are for anybody; empty where only its own words help.
    """

    def __init__(self, message: str, advice: str = "") -> None:
        super().__init__(message)
        self.advice = advice


class NewerSchemaError(LocalError):
    """The database was migrated by a newer version of this software, which alone may use it."""


class Database:
    """One database and a pool of connections to it, for any number of threads.

    Nothing is connected before it is needed. Make it after a fork, not before. What needs the
    database raises `DatabaseUnavailableError` while it is not connected, not writable, or full.

    Args:
        url: `postgresql://user:password@host:port/name`.
        pool_size: the most connections at a time.
        patience: seconds to wait for a connection.

    Raises:
        InvalidInputError: not a URL; it is not repeated, for it may hold a password.
    """

    def __init__(self, url: str, *, pool_size: int = 4, patience: float = 5.0) -> None:
        self._conninfo, self._password = parse(url)
        self._patience = patience
        self._present = threading.local()
        """Of each thread, the connection of the transaction that it is in."""
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            self._conninfo,
            kwargs={"autocommit": True},
            min_size=0,
            max_size=pool_size,
            timeout=patience,
            reconnect_timeout=patience,
            name="earshot",
            open=True,
        )

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()

    # ------------------------------------------------------------------------- statements

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One transaction: committed at the end of the block, undone if it raises.

        Whatever this thread does to the database within the block is part of it; a block within the
        block is undone alone if it raises. Of a transaction that cannot be committed nothing is,
        unless the connection broke during the commit.
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
        """Run one statement, which may run twice if the connection breaks; returns its rows."""

        def run() -> list[tuple[Any, ...]]:
            with self._pool.connection() as connection:
                return _rows(connection, statement, parameters)

        present = self._present_connection()
        with self._named_errors():
            if present is not None:
                return _rows(present, statement, parameters)
            return self._again_if_lost(run)

    def _present_connection(self) -> Connection | None:
        """That of the transaction which this thread is in."""
        return getattr(self._present, "connection", None)

    def now(self) -> float:
        """Seconds since 1970, on the database's clock."""
        return float(self.query("SELECT extract(epoch FROM clock_timestamp())")[0][0])

    def check(self) -> None:
        """One round trip: is the database there, writable, and of our schema?

        Raises:
            NewerSchemaError: it is of a newer schema.
        """
        read_only, version = self.query(
            "SELECT current_setting('transaction_read_only') = 'on', max(version)"
            " FROM schema_version"
        )[0]
        if read_only:
            raise self._unavailable(errors.ReadOnlySqlTransaction())
        newest = _migrations()[-1][0]
        _refuse_newer(version or 0, newest)
        if (version or 0) < newest:
            raise self._unavailable(errors.UndefinedTable())

    def write(self) -> None:
        """Write one row durably: a disk that is full, or gone, is noticed before a phone does."""
        self.query(
            "INSERT INTO readiness (written) VALUES (seconds_now())"
            " ON CONFLICT (one) DO UPDATE SET written = excluded.written"
        )

    def _again_if_lost(self, attempt: Callable[[], _T]) -> _T:
        """What the attempt returns, on another connection if its own broke."""
        try:
            return attempt()
        except psycopg.OperationalError as error:
            if not _is_lost(error):
                raise
            self._pool.check()
            return attempt()

    # ------------------------------------------------------------------------- migrations

    def migrate(self) -> None:
        """Bring the schema up to date; any number of processes may try at once.

        Each migration is one transaction: it is applied whole, or not at all.

        Raises:
            NewerSchemaError: the database is of a newer schema than this software knows.
        """
        migrations = _migrations()
        for version, name, statements in migrations:
            with self.transaction() as connection:
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (SCHEMA_LOCK,))
                present = _schema_version(connection)
                _refuse_newer(present, migrations[-1][0])
                if present < version:
                    connection.execute(statements)
                    connection.execute(
                        "INSERT INTO schema_version (version, name) VALUES (%s, %s)",
                        (version, name),
                    )

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
        """The pool only says that it waited; a connection of our own says what for."""
        try:
            psycopg.connect(self._conninfo).close()
        except psycopg.OperationalError as error:
            return error
        return errors.TooManyConnections(f"all connections are busy for {self._patience:g} s")

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
    """The connection string and the password in it.

    Raises:
        InvalidInputError: not a URL; it is not repeated, for it may hold a password.
    """
    try:
        given = conninfo_to_dict(url)
        int(given.get("port") or 0)
    except (psycopg.ProgrammingError, ValueError):
        given = {"host": "@"}
    if "@" in str(given.get("host", "")):
        raise InvalidInputError(
            "the database's URL must be like postgresql://user:password@host:port/name, with "
            "special characters of a password percent-encoded"
        )
    conninfo = make_conninfo(url, **{k: v for k, v in _CONNECTION.items() if k not in given})
    return conninfo, str(given.get("password") or "")


def _is_lost(error: psycopg.OperationalError) -> bool:
    """Whether the connection broke, and another one may do."""
    if isinstance(error, PoolTimeout):
        return False
    return error.sqlstate is None or error.sqlstate.startswith(_CONNECTION_LOST)


def _migrations() -> list[tuple[int, str, bytes]]:
    """(version, name, SQL), in order."""
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


def _refuse_newer(present: int, known: int) -> None:
    if present > known:
        raise NewerSchemaError(
            f"the database has schema {present}, and this version knows {known}: install the "
            "version that migrated it, or a newer one"
        )
