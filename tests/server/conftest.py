"""A PostgreSQL of the tests' own, and in it an empty database for whoever asks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path

import psycopg
import pytest
from support.api_caller import Server

from earshot_server.processes.embedded import EmbeddedPostgres, embedded
from earshot_server.store.database import Database

# Nothing here outlives its test, so that nothing needs to reach a disk.
UNSAFE = {"fsync": "off", "full_page_writes": "off"}
_numbers = count()


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A running server; whoever stops it starts it again."""
    with (
        tempfile.TemporaryDirectory(prefix="earshot-") as folder,
        embedded(Path(folder), UNSAFE) as server,
    ):
        yield server


@pytest.fixture(scope="session")
def emptied_url(postgres: EmbeddedPostgres) -> str:
    """The database that tests use one after the other, which is faster than one for each."""
    url = _create(postgres, "emptied")
    database = Database(url)
    database.migrate()
    database.close()
    return url


@pytest.fixture
def database_url(emptied_url: str) -> str:
    """A database that is migrated and empty; its schema must not be changed."""
    with psycopg.connect(emptied_url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        # TRUNCATE makes new files of every table and index: a hundred times the work.
        parts = connection.execute(
            "SELECT 'DELETE FROM ' || tablename FROM pg_tables"
            " WHERE schemaname = 'public' AND tablename <> 'schema_version'"
            " UNION ALL SELECT format('SELECT setval(%L, 1, false)', sequencename)"
            " FROM pg_sequences WHERE schemaname = 'public'"
        ).fetchall()
        connection.execute("SET session_replication_role = replica")  # no trigger refuses it
        connection.execute("; ".join(part for (part,) in parts).encode())
    return emptied_url


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
def own_database(own_url: str) -> Iterator[Database]:
    """A database of the test's own, migrated and connected; its schema may be changed."""
    database = Database(own_url, pool_size=8)
    database.migrate()
    yield database
    database.close()


@contextmanager
def _created(postgres: EmbeddedPostgres, name: str) -> Iterator[str]:
    yield _create(postgres, name)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def _create(postgres: EmbeddedPostgres, name: str) -> str:
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return postgres.url.replace("/postgres?", f"/{name}?")
