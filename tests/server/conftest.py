"""A PostgreSQL of the tests' own, and in it a fresh database for whoever asks."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest

from earshot_server.store.database import Database
from earshot_server.store.embedded import EmbeddedPostgres, embedded

# Nothing here outlives its test, so that nothing needs to reach a disk.
UNSAFE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
_numbers = count()


def url_of(postgres: EmbeddedPostgres, name: str) -> str:
    return postgres.url.replace("/postgres?", f"/{name}?")


@pytest.fixture(scope="session")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A running server; whoever stops it starts it again."""
    with (
        tempfile.TemporaryDirectory(prefix="earshot-") as folder,
        embedded(Path(folder), UNSAFE) as server,
    ):
        yield server


@pytest.fixture(scope="session")
def template(postgres: EmbeddedPostgres) -> str:
    """The name of a database that is migrated and empty."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE template_of_ours")
    database = Database(url_of(postgres, "template_of_ours"))
    database.migrate()
    database.close()
    return "template_of_ours"


@pytest.fixture
def empty_url(postgres: EmbeddedPostgres) -> Iterator[str]:
    """A database without any table."""
    yield from _created(postgres, "template1")


@pytest.fixture
def database_url(postgres: EmbeddedPostgres, template: str) -> Iterator[str]:
    """A database that is migrated and empty."""
    yield from _created(postgres, template)


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """The same, connected."""
    database = Database(database_url, pool_size=8)
    yield database
    database.close()


def _created(postgres: EmbeddedPostgres, template: str) -> Iterator[str]:
    name = f"test_{next(_numbers)}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}".encode())
    yield url_of(postgres, name)
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
