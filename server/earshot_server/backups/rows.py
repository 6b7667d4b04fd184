"""Rows of a database in a backup: one file per table, in PostgreSQL's binary COPY format.

A backup contains rows and no SQL. Tables, functions and triggers are restored by the migrations of
this software, so that a changed file can alter data but not run code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import LiteralString

import psycopg
from psycopg import errors, sql

from earshot_protocol.errors import LocalError
from earshot_server.store.database import Connection
from earshot_server.store.privileges import TABLES

_LEFT_OUT = ("schema_version", "tasks", "answers", "snapshots", "sessions")
"""Tables that migrations fill, and those whose state a restored server discards."""
KEPT = tuple(table for table in TABLES if table not in _LEFT_OUT)
"""Tables whose rows are backed up, each after those that it refers to."""
_OF_ROWS = ("22", "23", "42", "54")
"""Classes of SQLSTATE that mean invalid rows, rather than an unusable database."""


class UnfitRowsError(LocalError):
    """The rows do not fit a database of this schema."""


def columns(connection: Connection) -> dict[str, tuple[str, ...]]:
    """Return the columns of each table of `KEPT` that the database has, in order of their names."""
    rows = connection.execute(
        "SELECT table_name::text, array_agg(column_name::text ORDER BY column_name::text)"
        " FROM information_schema.columns"
        " WHERE table_schema = current_schema() AND table_name = ANY(%s) GROUP BY table_name",
        (list(KEPT),),
    )
    return {table: tuple(names) for table, names in rows}


def numbers(connection: Connection) -> dict[str, int]:
    """Return the last number that each sequence has given out; 0 if it has given out none."""
    rows = connection.execute(
        "SELECT sequencename::text, coalesce(last_value, 0) FROM pg_sequences"
        " WHERE schemaname = current_schema() ORDER BY sequencename"
    )
    return dict(rows.fetchall())


def read(connection: Connection, table: str, names: Iterable[str]) -> Iterator[bytes]:
    """Yield the rows of a table, piece by piece."""
    statement = _copy("COPY {} ({}) TO STDOUT (FORMAT BINARY)", table, names)
    with connection.cursor().copy(statement) as pieces:
        for piece in pieces:
            yield bytes(piece)


def write(
    connection: Connection, table: str, names: Iterable[str], pieces: Iterable[bytes]
) -> None:
    """Add rows, as `read` yielded them, to a table."""
    statement = _copy("COPY {} ({}) FROM STDIN (FORMAT BINARY)", table, names)
    with connection.cursor().copy(statement) as copy:
        for piece in pieces:
            copy.write(piece)


def go_on_after(connection: Connection, last: Mapping[str, int]) -> None:
    """Set each sequence to continue after the last number it gave out."""
    for sequence in numbers(connection):
        if last.get(sequence):
            connection.execute("SELECT setval(%s, %s)", (sequence, last[sequence]))


@contextmanager
def named_misfits(what: str) -> Iterator[None]:
    """Turn PostgreSQL's errors about invalid rows into ours.

    Args:
        what: Name of the rows, for the message.

    Raises:
        UnfitRowsError: PostgreSQL refused the rows.
    """
    try:
        yield
    except psycopg.Error as error:
        # A message too short for a number is a fault of the rows if COPY was reading them.
        short = isinstance(error, errors.ProtocolViolation) and error.diag.context
        if not short and not (error.sqlstate or "").startswith(_OF_ROWS):
            raise
        raise UnfitRowsError(f"{what}: {error.diag.message_primary}") from error


def _copy(statement: LiteralString, table: str, names: Iterable[str]) -> sql.Composed:
    listed = sql.SQL(", ").join(map(sql.Identifier, names))
    return sql.SQL(statement).format(sql.Identifier(table), listed)
