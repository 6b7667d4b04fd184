"""A PostgreSQL of the tests' own, and in it an empty database for whoever asks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path
from types import CodeType

import psycopg
import pytest
from flask import Flask
from jinja2.bccache import Bucket, BytecodeCache
from support.api_caller import Server
from support.campaigns import BEGINS
from support.moved_clock import MovedClock
from support.unsafe_postgres import UNSAFE

from earshot_server.processes.embedded import EmbeddedPostgres, embedded
from earshot_server.store.database import Database

_numbers = count()


class _Compiled(BytecodeCache):
    """Compiled templates, which every application of a process shares."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], CodeType | None] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        bucket.code = self._found.get((bucket.key, bucket.checksum))

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._found[bucket.key, bucket.checksum] = bucket.code


# Compiling a page's templates takes ten times as long as filling them in.
Flask.jinja_options = {**Flask.jinja_options, "bytecode_cache": _Compiled()}


@contextmanager
def _postgres() -> Iterator[EmbeddedPostgres]:
    with (
        tempfile.TemporaryDirectory(prefix="earshot-") as folder,
        embedded(Path(folder), UNSAFE) as server,
    ):
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A running server, for all tests of a process; nobody stops it."""
    with _postgres() as server:
        yield server


@pytest.fixture(scope="module")
def mortal_postgres() -> Iterator[EmbeddedPostgres]:
    """A server of the file's own: whoever stops it starts it again."""
    with _postgres() as server:
        yield server


@pytest.fixture(scope="session")
def migrated(postgres: EmbeddedPostgres) -> str:
    """Name of a database to copy: migrated, empty, and never connected to."""
    database = Database(_create(postgres, "migrated"))
    database.migrate()
    database.close()
    return "migrated"


class _Emptied:
    """The database that tests use one after the other, which is faster than one for each.

    It is emptied over one connection: a new one takes PostgreSQL ten times as long as emptying.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = psycopg.connect(url, autocommit=True)
        # TRUNCATE makes new files of every table and index: a hundred times the work.
        parts = self._connection.execute(
            "SELECT 'DELETE FROM ' || tablename FROM pg_tables"
            " WHERE schemaname = 'public' AND tablename <> 'schema_version'"
            " UNION ALL SELECT format('SELECT setval(%L, 1, false)', sequencename)"
            " FROM pg_sequences WHERE schemaname = 'public'"
        ).fetchall()
        self._statements = "; ".join(part for (part,) in parts).encode()
        self._connection.execute("SET session_replication_role = replica")  # no trigger refuses it

    def empty(self) -> None:
        self._connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        self._connection.execute(self._statements)

    def close(self) -> None:
        self._connection.close()


@pytest.fixture(scope="session")
def emptied(postgres: EmbeddedPostgres, migrated: str) -> Iterator[_Emptied]:
    with closing(_Emptied(_create(postgres, "emptied", migrated))) as database:
        yield database


@pytest.fixture
def database_url(emptied: _Emptied) -> str:
    """A database that is migrated and empty; its schema must not be changed."""
    emptied.empty()
    return emptied.url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The same, connected."""
    database = Database(database_url, pool_size=8)
    yield database
    database.close()


@pytest.fixture
def server(database: Database, tmp_path: Path) -> Server:
    """The API over that database."""
    return Server.over(database, tmp_path)


@pytest.fixture
def own_url(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database of the test's own, without any table."""
    with _created(postgres, f"own_{next(_numbers)}") as url:
        yield url


@pytest.fixture
def other_url(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A second one."""
    with _created(postgres, f"other_{next(_numbers)}") as url:
        yield url


@pytest.fixture
def own_database_url(postgres: EmbeddedPostgres, migrated: str) -> Iterator[str]:
    """A database of the test's own, migrated; its schema may be changed."""
    with _created(postgres, f"own_{next(_numbers)}", migrated) as url:
        yield url


@pytest.fixture
def own_database(own_database_url: str) -> Iterator[Database]:
    """The same, connected."""
    with closing(Database(own_database_url, pool_size=8)) as database:
        yield database


@pytest.fixture
def clock(own_database: Database) -> MovedClock:
    """The clock of the test's own database, on the first day of campaigns."""
    return MovedClock(own_database, BEGINS)


@pytest.fixture
def desk(own_database: Database, clock: MovedClock, tmp_path: Path) -> Server:
    """A server over the test's own database, by that clock."""
    return Server.over(own_database, tmp_path)


@pytest.fixture
def mortal_url(mortal_postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database that is migrated and empty, on a server that may be stopped."""
    with _created(mortal_postgres, f"mortal_{next(_numbers)}") as url:
        with closing(Database(url)) as database:
            database.migrate()
        yield url


@pytest.fixture
def mortal_database(mortal_url: str) -> Iterator[Database]:
    """The same, connected."""
    with closing(Database(mortal_url, pool_size=8)) as database:
        yield database


@contextmanager
def _created(postgres: EmbeddedPostgres, name: str, template: str = "template1") -> Iterator[str]:
    yield _create(postgres, name, template)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _create(postgres: EmbeddedPostgres, name: str, template: str = "template1") -> str:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    return postgres.url.replace("/postgres?", f"/{name}?")
