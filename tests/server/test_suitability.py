"""Databases as others set them up: each is served, or is refused by name before anything is made.

All are tried on the wheel's PostgreSQL 18 and, where it says so, on Debian's.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from support.debian import program
from support.networked import await_
from support.played_phase import PARAMETERS
from support.pooler import PASSWORD, pooled

from earshot_server.backups.backing_up import back_up
from earshot_server.backups.restoring import restore
from earshot_server.credentials import Credentials
from earshot_server.processes import embedded as embedded_module
from earshot_server.processes.embedded import EmbeddedPostgres, embedded
from earshot_server.store.archive import Archive
from earshot_server.store.database import Database, DatabaseUnavailableError
from earshot_server.store.fingerprints import claim
from earshot_server.store.interface import PresentStep
from earshot_server.store.operators import Accounts, Role
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry
from earshot_server.store.suitability import UnsuitableDatabaseError, refuse_unsuitable

ODD = "Łódź, 東京 \\ '$"
BYTES = bytes(range(256))
_numbers = count()

TAKEN = (
    *("TimeZone = 'Asia/Kolkata'", "DateStyle = 'German, DMY'", "IntervalStyle = 'iso_8601'"),
    *("bytea_output = 'escape'", "extra_float_digits = -15", "standard_conforming_strings = off"),
    *("client_encoding = 'LATIN1'", "client_encoding = 'SQL_ASCII'", "quote_all_identifiers = on"),
    *("client_min_messages = debug5", "row_security = off", "transform_null_equals = on"),
    *("lock_timeout = '10s'", "idle_session_timeout = '10s'", "statement_timeout = '10min'"),
    *("synchronous_commit = local", "default_transaction_deferrable = on"),
    *("plan_cache_mode = force_generic_plan", "enable_seqscan = off"),
)
REFUSED = {
    "synchronous_commit = off": "a crash loses acknowledged .* SET synchronous_commit = on",
    "statement_timeout = '599s'": "statement_timeout is 599 s, .* SET statement_timeout = 0, or",
    "idle_in_transaction_session_timeout = '1s'": "idle_in_transaction_session_timeout is 1 s",
    "default_transaction_isolation = serializable": "isolation is serializable, .* SET default_t",
    "default_transaction_isolation = 'repeatable read'": "isolation is repeatable read",
    "search_path = ''": "no schema in the role's search_path: ALTER ROLE earshot SET search_path",
}
ENCODINGS = ("LATIN1", "SQL_ASCII", "EUC_JP")


@contextmanager
def debians() -> Iterator[EmbeddedPostgres]:
    """A PostgreSQL of Debian's, of another version than the wheel's."""
    programs = program("postgres", "postgresql").resolve().parent
    with ExitStack() as stack:
        folder = stack.enter_context(opened())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(embedded_module, "_programs", lambda cluster: programs)
            running = stack.enter_context(embedded(folder, {"fsync": "off"}))
        yield running


@contextmanager
def opened() -> Iterator[Path]:
    """A folder that PostgreSQL's account may pass through, unlike pytest's."""
    with tempfile.TemporaryDirectory(prefix="earshot-") as folder:
        Path(folder).chmod(0o711)
        yield Path(folder)


@pytest.fixture(scope="module", params=["wheel", pytest.param("debian", marks=pytest.mark.slow)])
def given(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    if request.param == "wheel":
        yield request.getfixturevalue("postgres")
        return
    with debians() as running:
        yield running


@contextmanager
def created(given: EmbeddedPostgres, *more: str) -> Iterator[str]:
    """A database on this server, made with these options; its URL."""
    name = f"given_{next(_numbers)}"
    with psycopg.connect(given.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0 {' '.join(more)}".encode())
        yield given.url.replace("/postgres?", f"/{name}?")
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())


def set_to(url: str, setting: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {connection.info.dbname} SET {setting}".encode())


def use(url: str) -> None:
    """Write and read whatever depends on how a session writes it."""
    with closing(Database(url)) as database:
        refuse_unsuitable(database)
        database.migrate()
        for _ in range(2):
            claim(database, Path("folder"), {"operator.token": BYTES[-32:]})
        phase, registry = bytes(16), Registry(database)
        registry.gather(phase, PARAMETERS, 10, 0.1 + 0.2, name=ODD, cohorts=(ODD, "{},"))
        assert registry.join(phase, registry.enrol(bytes(32), bytes(16), 1, cohort=ODD)) == 0
        (found,) = Archive(database).phases()
        assert (found.name, found.cohorts, found.gather_until) == (ODD, (ODD, "{},"), 0.1 + 0.2)
        assert abs(found.created - time.time()) < 3600
        store = PostgresPhaseStore(database)
        store.create(phase, BYTES, PresentStep(0, ODD, 0.1 + 0.2, 1, BYTES), [(1, BYTES)])
        store.add_answer(phase, 0, 1, BYTES)
        store.add_answer(phase, 0, 1, BYTES)
        assert dict(store.answers(phase)) == {1: BYTES}
        assert store.assignment(phase, 1).task == BYTES
        store.replace(phase, BYTES, PresentStep(1, ODD, 0.1 + 0.2, 1, BYTES), [])
        assert store.snapshot(phase) == (1, BYTES)
        assert store.present_step(phase) == PresentStep(1, ODD, 0.1 + 0.2, 1, BYTES)
        accounts = Accounts(database)
        holder = accounts.add("olga", Role.ADMIN)
        accounts.record("olga", holder, ODD)
        assert accounts.audit()[0].subject == ODD
        database.check()


# ------------------------------------------------------------------------------------- settings


@pytest.mark.slow
@pytest.mark.parametrize("setting", TAKEN)
def test_a_setting_of_the_role_or_database_makes_no_difference(
    given: EmbeddedPostgres, setting: str
) -> None:
    with created(given) as url:
        set_to(url, setting)
        use(url)


def test_all_of_them_together_make_none(given: EmbeddedPostgres) -> None:
    with created(given) as url:
        for setting in TAKEN:
            set_to(url, setting)
        use(url)


@pytest.mark.parametrize("setting", REFUSED)
def test_a_setting_under_which_answers_are_lost_is_refused(
    given: EmbeddedPostgres, setting: str
) -> None:
    with created(given) as url:
        set_to(url, setting)
        with closing(Database(url)) as database:
            with pytest.raises(UnsuitableDatabaseError, match=REFUSED[setting]):
                refuse_unsuitable(database)
            assert not database.tables()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_an_encoding_that_cannot_hold_every_name_is_refused(
    given: EmbeddedPostgres, encoding: str
) -> None:
    made = (f"ENCODING '{encoding}'", "LC_COLLATE 'C'", "LC_CTYPE 'C'")
    with (
        created(given, *made) as url,
        closing(Database(url)) as database,
        pytest.raises(UnsuitableDatabaseError, match=f"is {encoding}, .* ENCODING 'UTF8'"),
    ):
        refuse_unsuitable(database)


@pytest.mark.slow
def test_the_start_and_a_restore_refuse_what_does_not_suit(
    postgres: EmbeddedPostgres, own_database: Database, own_database_url: str, tmp_path: Path
) -> None:
    Credentials.load_or_create(tmp_path / "data")
    back_up(tmp_path / "backup", tmp_path / "data", own_database_url)
    with created(postgres, "ENCODING 'LATIN1' LC_COLLATE 'C' LC_CTYPE 'C'") as url:
        with pytest.raises(UnsuitableDatabaseError, match="its encoding is LATIN1"):
            restore(tmp_path / "backup", tmp_path / "new", url)
        assert not (tmp_path / "new").exists()
        run = subprocess.run(  # noqa: S603 - our own command
            [sys.executable, "-m", "earshot_client", "serve", "--data", tmp_path, "--port", "0"],
            env={**os.environ, "EARSHOT_DATABASE": url},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
    assert run.returncode == 2
    assert "its encoding is LATIN1" in run.stderr.splitlines()[-1]
    assert "Traceback" not in run.stderr


# ------------------------------------------------------------------------------------- addresses


def test_every_form_of_a_url_is_understood(
    postgres: EmbeddedPostgres, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(postgres._socket_folder)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        dead = taken.getsockname()[1]
    with pooled(postgres, asks=True) as port:
        (tmp_path / "services").write_text(
            f"[earshot]\nhost=127.0.0.1\nport={port}\nuser=earshot\ndbname=postgres\n"
            f"password={PASSWORD}\n"
        )
        (tmp_path / "passwords").write_text(f"127.0.0.1:{port}:*:earshot:{PASSWORD}\n")
        (tmp_path / "passwords").chmod(0o600)
        monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
        monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
        socket_, secret = quote(folder, safe=""), quote(PASSWORD, safe="")
        for url in (
            f"postgresql://earshot@/postgres?host={socket_}",
            f"postgres://earshot@{socket_}/postgres",
            f"host='{folder}' user=earshot dbname=postgres",
            f"postgresql://earshot@{socket_}/postgres?options=-c%20bytea_output%3Descape",
            f"postgresql://earshot@{socket_}/postgres?client_encoding=LATIN1",
            f"postgresql://earshot:{secret}@127.0.0.1:{port}/postgres?sslmode=prefer",
            f"postgresql://earshot:{secret}@127.0.0.1:{dead},127.0.0.1:{port}/postgres"
            "?target_session_attrs=read-write",
            f"host=127.0.0.1,127.0.0.1 port={dead},{port} user=earshot dbname=postgres"
            f" password='{PASSWORD}'",
            f"host=db.example hostaddr=127.0.0.1 port={port} user=earshot dbname=postgres"
            f" password='{PASSWORD}'",
            f"postgresql://earshot@127.0.0.1:{port}/postgres?passfile={tmp_path / 'passwords'}",
            "service=earshot",
            "postgresql:///?service=earshot",
        ):
            with closing(Database(url, patience=5.0)) as database:
                assert database.query("SELECT %s::text", (ODD,)) == [(ODD,)], url


# -------------------------------------------------------------------------------- other versions


@pytest.mark.slow
def test_a_backup_of_one_version_is_restored_in_another(
    postgres: EmbeddedPostgres, tmp_path: Path
) -> None:
    Credentials.load_or_create(tmp_path / "data")
    with (
        debians() as older,
        created(older) as first,
        created(postgres) as newer,
        created(older) as last,
    ):
        use(first)
        back_up(tmp_path / "one", tmp_path / "data", first)
        assert restore(tmp_path / "one", tmp_path / "first", newer) == 1
        back_up(tmp_path / "other", tmp_path / "data", newer)
        assert restore(tmp_path / "other", tmp_path / "second", last) == 0
        with closing(Database(last)) as database:
            (phase,) = Archive(database).phases()
            assert phase.name == ODD
            assert [entry.action for entry in Accounts(database).audit()][:2] == [
                "restore server",
                "restore server",
            ]


@contextmanager
def standby(postgres: EmbeddedPostgres) -> Iterator[Path]:
    """A server that follows this one; the folder of its socket, whose number is 5433."""
    identity, programs = postgres._identity(), embedded_module._programs(postgres._cluster)
    with opened() as folder:
        copy = folder / "copy"
        postgres._give(folder)
        subprocess.run(  # noqa: S603 - PostgreSQL's program
            [programs / "pg_basebackup", "-R", "-c", "fast", "-D", copy, "-d", postgres.url],
            check=True,
            capture_output=True,
            cwd="/",
            timeout=60,
            **identity,
        )
        for left in copy.glob(".s.PGSQL.*"):
            left.unlink()
        settings = ("listen_addresses=", f"unix_socket_directories={folder}", "port=5433")
        options = [word for setting in settings for word in ("-c", setting)]
        with (folder / "log").open("w") as log:
            running = subprocess.Popen(  # noqa: S603 - PostgreSQL's program
                [programs / "postgres", "-D", copy, *options],
                stderr=log,
                cwd="/",
                **identity,
            )
        try:
            yield folder
        finally:
            running.terminate()
            running.wait(60)


@pytest.mark.slow
def test_a_standby_is_refused_and_another_host_taken(
    own_database: Database, own_database_url: str, postgres: EmbeddedPostgres
) -> None:
    name = own_database_url.split("/")[3].split("?")[0]
    with standby(postgres) as folder:
        url = f"postgresql://earshot@/{name}?host={folder},{postgres._socket_folder}&port=5433,5432"
        with closing(Database(url, patience=5.0)) as database:
            await_(lambda: _recovers(database), "a first answer")
            for refused in (database.check, database.migrate):
                with pytest.raises(DatabaseUnavailableError, match="it is read-only: connect"):
                    refused()
        with closing(Database(url + "&target_session_attrs=read-write")) as database:
            database.check()
            assert not _recovers(database)


def _recovers(database: Database) -> bool:
    try:
        recovers = bool(database.query("SELECT pg_is_in_recovery()")[0][0])
    except DatabaseUnavailableError:  # it is starting
        return False
    if not recovers:
        database._pool.drain()  # another connection may reach the first host by then
    return recovers
