"""The database that is not there, not ours, not writable or full; and its return."""

from __future__ import annotations

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest
from support.networked import PATIENCE

from earshot_protocol.errors import InvalidInputError
from earshot_server.processes.embedded import EmbeddedPostgres
from earshot_server.store import database as database_module
from earshot_server.store.database import (
    Database,
    DatabaseUnavailableError,
    NewerSchemaError,
    OccupiedDatabaseError,
)
from earshot_server.store.interface import PresentStep
from earshot_server.store.postgres import PostgresPhaseStore

PHASE = b"one phase, 16 by"
OPENING = PresentStep(number=0, name="step", deadline=0.0, expected=1)
PASSWORD = "5ecret-pass-word"  # noqa: S105 - of nobody


@pytest.fixture
def empty(own_url: str) -> Iterator[Database]:
    database = Database(own_url, patience=3.0)
    yield database
    database.close()


def tables(database: Database) -> set[str]:
    return {
        name
        for (name,) in database.query(
            "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public'"
        )
    }


def versions(database: Database) -> list[int]:
    return [v for (v,) in database.query("SELECT version FROM schema_version ORDER BY version")]


# ------------------------------------------------------------------------------- migrations


def test_migrations_are_numbered_from_one_without_gaps() -> None:
    numbers = [version for version, _, _ in database_module._migrations()]
    assert numbers == list(range(1, len(numbers) + 1))
    assert numbers


def test_many_processes_may_migrate_at_once(empty: Database, own_url: str) -> None:
    starting = [Database(own_url) for _ in range(6)]
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(Database.migrate, starting))
    for database in starting:
        database.close()
    assert versions(empty) == [version for version, _, _ in database_module._migrations()]
    empty.check()


def test_migrating_again_keeps_what_is_there(database: Database) -> None:
    PostgresPhaseStore(database).create(PHASE, b"kept", OPENING, [])
    database.migrate()
    assert PostgresPhaseStore(database).snapshot(PHASE) == (0, b"kept")


def test_a_migration_that_fails_half_way_leaves_nothing(
    empty: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = database_module._migrations()
    broken = (len(whole) + 1, "broken", b"CREATE TABLE half (); SELECT nowhere;")
    monkeypatch.setattr(database_module, "_migrations", lambda: [*whole, broken])
    with pytest.raises(psycopg.errors.UndefinedColumn):
        empty.migrate()
    assert "half" not in tables(empty)
    assert versions(empty) == [version for version, _, _ in whole]
    mended = (broken[0], "mended", b"CREATE TABLE half ();")
    monkeypatch.setattr(database_module, "_migrations", lambda: [*whole, mended])
    empty.migrate()
    assert "half" in tables(empty)


@pytest.mark.parametrize(
    ("something", "named"),
    [
        ("CREATE TABLE phones (number text)", 'relation "phones" already exists'),
        (
            "CREATE FUNCTION seconds_now() RETURNS integer LANGUAGE sql AS 'SELECT 1'",
            'function "seconds_now" already exists',
        ),
    ],
)
def test_a_database_of_something_else_is_refused_by_name(
    empty: Database, something: str, named: str
) -> None:
    empty.query(something)  # type: ignore[arg-type]
    with pytest.raises(OccupiedDatabaseError, match=named):
        empty.migrate()
    assert "audit" not in tables(empty)


def test_a_newer_schema_is_refused_and_left_alone(own_database: Database) -> None:
    newer = versions(own_database)[-1] + 1
    own_database.query("INSERT INTO schema_version (version, name) VALUES (%s, 'later')", (newer,))
    before = tables(own_database)
    for use in (own_database.migrate, own_database.check):
        with pytest.raises(NewerSchemaError, match=f"schema {newer}, .* knows {newer - 1}"):
            use()
    assert tables(own_database) == before


@pytest.mark.parametrize("table", [False, True])
def test_a_database_that_was_not_migrated_is_not_ready(empty: Database, table: bool) -> None:
    if table:
        with empty.transaction() as connection:
            database_module._schema_version(connection)
    with pytest.raises(DatabaseUnavailableError, match="tables are missing"):
        empty.check()
    empty.migrate()
    empty.check()


# --------------------------------------------------------------------------------- what is wrong


@contextmanager
def connected(url: str) -> Iterator[Database]:
    database = Database(url, patience=0.3)
    try:
        yield database
    finally:
        database.close()


def uses(database: Database) -> list[Callable[[], object]]:
    def transact() -> None:
        with database.transaction():
            raise AssertionError("a transaction without a connection")

    return [database.check, database.migrate, database.now, transact]


def test_a_server_that_is_not_there_is_named() -> None:
    with connected("postgresql://someone@127.0.0.1:1/db") as database:
        for use in uses(database):
            with pytest.raises(DatabaseUnavailableError, match=r"127\.0\.0\.1.*port 1"):
                use()


def test_a_database_that_is_not_there_is_named(postgres: EmbeddedPostgres) -> None:
    with (
        connected(postgres.url.replace("/postgres?", "/nowhere?")) as database,
        pytest.raises(DatabaseUnavailableError, match='"nowhere" does not exist'),
    ):
        database.check()


def test_a_wrong_password_is_not_told(
    postgres: EmbeddedPostgres, caplog: pytest.LogCaptureFixture
) -> None:
    """A server that asks for a password is imitated: the tests' own asks for none."""
    caplog.set_level(logging.DEBUG)
    with _refusing_server(PASSWORD) as port:
        url = f"postgresql://someone:{PASSWORD}@127.0.0.1:{port}/db?sslmode=disable"
        with (
            connected(url) as database,
            pytest.raises(DatabaseUnavailableError, match="authentication failed") as caught,
        ):
            database.check()
    assert PASSWORD not in str(caught.value)


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://someone:{PASSWORD}%zz@host/db",
        f"postgresql://someone:a@{PASSWORD}@host/db",
        f"postgresql://someone:{PASSWORD}/x@host/db",
        f"host=here {PASSWORD}",
        f"mysql://someone:{PASSWORD}@host/db",
    ],
)
def test_a_url_that_is_none_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(InvalidInputError, match="postgresql://user:password@host") as caught:
        Database(url)
    assert PASSWORD not in str(caught.value)


@pytest.mark.slow
def test_a_read_only_database_is_named_and_works_when_it_is_not(
    empty: Database, own_url: str
) -> None:
    empty.migrate()
    with psycopg.connect(own_url, autocommit=True) as connection:
        name = connection.info.dbname
        connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
        with connected(own_url) as database:
            store = PostgresPhaseStore(database)
            for use in (
                database.check,
                database.migrate,
                lambda: store.create(PHASE, b"", OPENING, []),
            ):
                with pytest.raises(DatabaseUnavailableError, match="it is read-only"):
                    use()
            assert store.phases() == ()
        connection.execute("SET default_transaction_read_only = off")
        connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())
    with connected(own_url) as database:
        database.check()


def test_a_full_disk_is_named_and_nothing_is_half_done(own_database: Database) -> None:
    store = PostgresPhaseStore(own_database)
    store.create(PHASE, b"before", OPENING, [(1, b"task")])
    own_database.query(
        "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS"
        " $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
    )
    for table in ("tasks", "answers"):
        with own_database.transaction() as connection:
            connection.execute(
                f"CREATE TRIGGER full_disk BEFORE INSERT ON {table}"
                " EXECUTE FUNCTION full_disk()".encode()
            )
    following = PresentStep(number=1, name="next", deadline=0.0, expected=1)
    for use in (
        lambda: store.add_answer(PHASE, 0, 1, b"x"),
        lambda: store.replace(PHASE, b"after", following, [(1, b"new")]),
    ):
        with pytest.raises(DatabaseUnavailableError, match="its disk is full; free some space"):
            use()
    assert store.snapshot(PHASE) == (0, b"before")
    assert store.assignment(PHASE, 1).task == b"task"
    with own_database.transaction() as connection:
        connection.execute("DROP FUNCTION full_disk CASCADE")
    store.add_answer(PHASE, 0, 1, b"x")
    assert tuple(store.answers(PHASE)) == ((1, b"x"),)


def test_a_busy_pool_is_told_from_a_missing_server(database_url: str) -> None:
    database = Database(database_url, pool_size=1, patience=0.2)
    with (
        database.transaction(),
        ThreadPoolExecutor(1) as another,  # this thread's statements join the transaction
        pytest.raises(DatabaseUnavailableError, match=r"connections were busy for 0\.2 s"),
    ):
        another.submit(database.now).result()
    assert database.now() > 0
    database.close()


# ------------------------------------------------------------------------------ gone and back


def test_a_restarted_server_is_not_noticed(
    mortal_postgres: EmbeddedPostgres, mortal_database: Database
) -> None:
    postgres, database = mortal_postgres, mortal_database
    store = PostgresPhaseStore(database)
    store.create(PHASE, b"before", OPENING, [])
    for crash in (False, True):
        _fill_pool(database)
        postgres.stop(crash=crash)
        postgres.start()
        assert store.snapshot(PHASE) == (0, b"before")
        _fill_pool(database)
        postgres.stop(crash=crash)
        postgres.start()
        with database.transaction() as connection:
            connection.execute("SELECT 1")
    database.check()


def test_a_server_that_is_away_is_named_and_works_when_it_is_back(
    mortal_postgres: EmbeddedPostgres, mortal_url: str
) -> None:
    with connected(mortal_url) as database:
        _fill_pool(database)
        mortal_postgres.stop()
        try:
            for use in uses(database):
                with pytest.raises(DatabaseUnavailableError, match=r"cannot be used: .*connection"):
                    use()
        finally:
            mortal_postgres.start()
        database.check()


def test_a_server_that_crashes_within_a_transaction_has_done_nothing(
    mortal_postgres: EmbeddedPostgres, mortal_database: Database
) -> None:
    postgres, store = mortal_postgres, PostgresPhaseStore(mortal_database)

    def tasks() -> Iterator[tuple[int, bytes]]:
        yield 1, b"task"
        postgres.stop(crash=True)
        yield from ((phone, b"task" * 1000) for phone in range(2, 1000))

    try:
        with pytest.raises(DatabaseUnavailableError):
            store.create(PHASE, b"", OPENING, tasks())
    finally:
        postgres.start()
    assert store.phases() == ()
    store.create(PHASE, b"", OPENING, [(1, b"task")])
    assert store.assignment(PHASE, 1).task == b"task"


def test_answers_acknowledged_while_the_server_crashes_are_kept(
    mortal_postgres: EmbeddedPostgres, mortal_url: str
) -> None:
    """What was not acknowledged may be there or not, and is accepted when it is sent again."""
    postgres, database = mortal_postgres, Database(mortal_url, pool_size=4, patience=60.0)
    store = PostgresPhaseStore(database)
    store.create(PHASE, b"", OPENING, [])
    acknowledged: set[int] = set()
    enough = threading.Event()

    def answer(first: int) -> None:
        for phone in range(first, 400, 4):
            try:
                store.add_answer(PHASE, 0, phone, b"x")
            except DatabaseUnavailableError:
                continue
            acknowledged.add(phone)
            if len(acknowledged) > 100:
                enough.set()

    with ThreadPoolExecutor(4) as pool:
        done = [pool.submit(answer, first) for first in range(4)]
        assert enough.wait(PATIENCE)
        postgres.stop(crash=True)
        postgres.start()
        for future in done:
            future.result()
    assert acknowledged <= {phone for phone, _ in store.answers(PHASE)}
    for phone in range(400):
        store.add_answer(PHASE, 0, phone, b"x")
    assert sorted(store.answers(PHASE)) == [(phone, b"x") for phone in range(400)]
    database.close()


def _fill_pool(database: Database) -> None:
    """Open as many connections as two threads need."""
    with database.transaction() as one:
        one.execute("SELECT 1")
        if database._pool.max_size > 1:
            with database.transaction() as other:
                other.execute("SELECT 1")


@contextmanager
def _refusing_server(password: str) -> Iterator[int]:
    """Asks for a password, expects this one, and refuses it as PostgreSQL does."""
    refusal = b'SFATAL\0C28P01\0Mpassword authentication failed for user "someone"\0\0'

    def serve() -> None:
        while True:
            try:
                peer, _ = listener.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(PATIENCE)
                peer.recv(4096)
                peer.sendall(b"R\0\0\0\x08\0\0\0\x03")
                assert password.encode() in peer.recv(4096)
                peer.sendall(b"E" + (len(refusal) + 4).to_bytes(4, "big") + refusal)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
