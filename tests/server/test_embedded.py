"""The embedded PostgreSQL: it starts as whoever we are, survives us, is adopted, and stops."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from support.networked import await_

from earshot_server.processes.data_folder import FolderInUseError
from earshot_server.processes.embedded import EmbeddedDatabaseError, EmbeddedPostgres, embedded

UNSAFE = {"fsync": "off"}
OWNER = """
import sys, time
from pathlib import Path
from earshot_server.processes.embedded import embedded
with embedded(Path(sys.argv[1]), {"fsync": "off"}) as postgres:
    print(postgres.url, flush=True)
    time.sleep(600)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="earshot-") as name:
        yield Path(name) / "data"


def owning_process(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(  # noqa: S603 - ourselves
        [sys.executable, "-c", OWNER, str(folder)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def postmaster(folder: Path) -> int:
    return int((folder / "postgresql/postmaster.pid").read_text().split()[0])


def one(url: str, statement: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(statement.encode()).fetchone()
        assert row is not None
        return row[0]


def write(url: str, statement: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode())


def test_what_was_written_is_there_after_a_stop_and_a_start(folder: Path) -> None:
    with embedded(folder, UNSAFE) as postgres:
        write(postgres.url, "CREATE TABLE t AS SELECT 42 AS x")
        assert postgres.running
    assert not postgres.running
    assert not (folder / "postgresql/postmaster.pid").exists()
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres.url)
    with embedded(folder, UNSAFE) as postgres:
        assert one(postgres.url, "SELECT x FROM t") == 42


def test_it_listens_on_a_socket_that_is_closed_to_others_only(folder: Path) -> None:
    with embedded(folder, UNSAFE) as postgres:
        assert one(postgres.url, "SHOW listen_addresses") == ""
        place = Path(str(one(postgres.url, "SHOW unix_socket_directories")).strip('"'))
        assert place.stat().st_mode & 0o077 == 0
        assert (place / ".s.PGSQL.5432").is_socket()
        assert (place / ".s.PGSQL.5432").stat().st_mode & 0o077 == 0
        # Nor does the server run with the rights of root, whoever started it.
        assert os.stat(f"/proc/{postmaster(folder)}").st_uid != 0
        assert not (folder / "postgresql").stat().st_mode & 0o077


@pytest.mark.slow
def test_by_default_it_waits_for_the_disk(folder: Path) -> None:
    with embedded(folder) as postgres:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            assert one(postgres.url, f"SHOW {setting}") == "on"


def test_it_is_adopted_after_its_owner_was_killed(folder: Path) -> None:
    with owning_process(folder) as owner:
        assert owner.stdout is not None
        url = owner.stdout.readline().strip()
        write(url, "CREATE TABLE t AS SELECT 42 AS x")
        first = postmaster(folder)
        owner.kill()
    assert one(url, "SELECT x FROM t") == 42  # it outlived its owner
    with embedded(folder) as postgres:
        assert postmaster(folder) == first
        assert postgres.url == url
        assert one(postgres.url, "SELECT x FROM t") == 42
    assert not postgres.running
    await_(lambda: not Path(f"/proc/{first}").exists(), "the first server's end")


@pytest.mark.slow
def test_a_folder_has_one_owner(folder: Path) -> None:
    with owning_process(folder) as owner:
        assert owner.stdout is not None
        url = owner.stdout.readline().strip()
        with pytest.raises(FolderInUseError, match="in use by another"), embedded(folder):
            raise AssertionError("two owners")
        assert one(url, "SELECT 1") == 1
        owner.send_signal(signal.SIGINT)
        assert owner.wait(60) != 0
        # Interrupted, it has stopped its server.
        assert not (folder / "postgresql/postmaster.pid").exists()


@pytest.mark.slow
def test_what_a_crash_leaves_behind_does_not_keep_it_from_starting(folder: Path) -> None:
    """The number of the server that died is that of a process that lives: here, of ourselves."""
    with embedded(folder, UNSAFE) as postgres:
        write(postgres.url, "CREATE TABLE t AS SELECT 42 AS x")
        left = (folder / "postgresql/postmaster.pid").read_text().splitlines()
        os.kill(postmaster(folder), signal.SIGKILL)
        await_(lambda: not postgres.running, "its end")
    (folder / "postgresql/postmaster.pid").write_text("\n".join([str(os.getpid()), *left[1:]]))
    with embedded(folder, UNSAFE) as postgres:
        assert one(postgres.url, "SELECT x FROM t") == 42


@pytest.mark.slow
def test_it_is_started_again_if_it_dies(folder: Path) -> None:
    with embedded(folder, UNSAFE) as postgres:
        os.kill(postmaster(folder), signal.SIGKILL)
        await_(lambda: not postgres.running, "its end")
        postgres.stop()
        postgres.start()
        assert one(postgres.url, "SELECT 1") == 1


@pytest.mark.slow
def test_a_path_that_is_too_long_for_a_socket_will_do(folder: Path) -> None:
    deep = folder.parent / ("a rather long name, with a space " * 3) / "ü"
    with embedded(deep, UNSAFE) as postgres:
        assert one(postgres.url, "SELECT 1") == 1
        place = postgres._socket_folder
        assert not place.is_relative_to(deep)
        assert place.stat().st_mode & 0o077 == 0
    assert not place.exists()


@pytest.mark.slow
def test_why_it_does_not_start_is_told(folder: Path) -> None:
    with (
        pytest.raises(EmbeddedDatabaseError, match="max_connections"),
        embedded(folder, {"max_connections": "many"}),
    ):
        raise AssertionError("it started")
    with embedded(folder, UNSAFE) as postgres:
        assert postgres.running


def test_a_cluster_of_an_unknown_version_is_refused(folder: Path) -> None:
    cluster = folder / "postgresql"
    cluster.mkdir(parents=True)
    (cluster / "PG_VERSION").write_text("9\n")
    with pytest.raises(EmbeddedDatabaseError, match="9; available are"), embedded(folder):
        raise AssertionError("it started")


@pytest.mark.slow
def test_an_initialisation_that_was_cut_short_is_begun_again(folder: Path) -> None:
    draft = folder / "postgresql.draft"
    draft.mkdir(parents=True)
    (draft / "PG_VERSION").write_text("18\n")
    with embedded(folder, UNSAFE) as postgres:
        assert one(postgres.url, "SELECT 1") == 1
    assert not draft.exists()


def test_a_folder_that_cannot_be_made_is_named(folder: Path) -> None:
    folder.write_text("a file")
    with pytest.raises(EmbeddedDatabaseError, match=str(folder)), embedded(folder):
        raise AssertionError("it started")


def test_stopping_what_does_not_run_does_nothing(folder: Path) -> None:
    EmbeddedPostgres(folder).stop()
    assert not folder.exists()


def test_a_server_that_died_is_revived_under_its_old_url(folder: Path) -> None:
    long = folder / ("x" * 100)  # too long for a socket, which goes elsewhere
    with embedded(long) as postgres:
        url = postgres.url
        assert not postgres.revive()
        pid = int((long / "postgresql" / "postmaster.pid").read_text().split()[0])
        os.kill(pid, signal.SIGKILL)
        await_(postgres.revive, "its revival")
        assert postgres.url == url
        assert one(url, "SELECT 1") == 1
        assert not postgres.revive()


def test_a_dead_server_does_not_run_though_its_socket_is_still_open(folder: Path) -> None:
    """A child that it had just begun holds the socket until it has looked around."""
    cluster = folder / "postgresql"
    cluster.mkdir(parents=True)
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    with socket.socket(socket.AF_UNIX) as held:
        held.bind(str(cluster / ".s.PGSQL.5432"))
        held.listen()
        for pid, runs in ((gone.pid, False), (os.getpid(), True)):
            lines = [str(pid), "", "", "", str(cluster), "", "", "ready"]
            (cluster / "postmaster.pid").write_text("\n".join(lines))
            assert EmbeddedPostgres(folder).running is runs


@pytest.mark.slow
def test_a_folder_for_the_socket_that_is_somebody_else_s_is_not_used(folder: Path) -> None:
    long = folder / ("x" * 100)
    with embedded(long) as postgres:
        place = postgres._socket_folder
    place.mkdir(mode=0o755)
    try:
        with pytest.raises(EmbeddedDatabaseError, match="another user"), embedded(long):
            pass
    finally:
        place.rmdir()
