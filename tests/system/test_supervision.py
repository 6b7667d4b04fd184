"""A server goes on though nobody reads what it says, and ends with a reason if it cannot go on."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.helper_server import HelperProcess
from support.networked import PATIENCE, ServerProcess, await_
from support.unsafe_postgres import UNSAFE

from earshot_client.transport.http import HttpTransport
from earshot_protocol.api import Invite
from earshot_server.processes.embedded import EmbeddedPostgres, embedded

PIPE = 2**16
"""Bytes that a pipe holds."""


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    with embedded(tmp_path_factory.mktemp("database"), UNSAFE) as running:
        yield running


@pytest.fixture
def database(postgres: EmbeddedPostgres) -> str:
    name = f"of_one_test_{os.urandom(8).hex()}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return postgres.url.replace("/postgres?", f"/{name}?")


# ------------------------------------------------------------------------------ who reads the log


@contextlib.contextmanager
def log_that_nobody_reads(path: Path) -> Iterator[int]:
    """A named pipe in the place of a log; the test may read it after all, or close it."""
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield reader
    with contextlib.suppress(OSError):
        os.close(reader)


def ask(port: int, path: str) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", path)
    status = connection.getresponse().status
    connection.close()
    return status


def fill(port: int) -> int:
    """Ask more than any pipe holds lines about; the number of requests."""
    count = 4 * PIPE // 200
    for _ in range(count):
        assert ask(port, "/nothing") == 404
    return count


@pytest.mark.slow
def test_a_log_that_nobody_reads_stops_nothing_and_goes_on_when_it_is_read(
    tmp_path: Path, database: str
) -> None:
    server = ServerProcess(tmp_path, database)
    with log_that_nobody_reads(server.log) as reader, server:
        count = fill(server.port)
        assert ask(server.port, "/health/live") == 200
        assert server.is_ready()
        phone = HttpTransport(server.address, Ed25519PrivateKey.generate())
        phone.enrol(server.operator().invite(Invite()).code)
        phone.close()
        os.set_blocking(reader, True)
        with open(os.dup(reader), "rb") as log:
            lines = []
            while not lines or lines[-1].get("endpoint") != "/v1/phones":
                lines.append(json.loads(log.readline()))
        assert sum(line.get("status") == 404 for line in lines) == count
        fill(server.port)
        assert server.stop() == 0


@pytest.mark.slow
def test_a_reader_of_a_helper_s_log_may_stand_still_or_go(tmp_path: Path) -> None:
    helper = HelperProcess(tmp_path / "helper")
    with log_that_nobody_reads(helper.log) as reader:
        helper.start()
        try:
            fill(helper.port)
            assert helper.is_ready()
            _, log = run_to_its_end("helper", "serve", "--data", str(helper.data), "--port", "0")
            assert f"{helper.data} is in use by another server" in log[-1]
            os.close(reader)
            fill(helper.port)
            assert helper.is_ready()
        finally:
            assert helper.stop() == 0


# ---------------------------------------------------------------------------------- quick deaths


def run_to_its_end(*words: str, **environment: str) -> tuple[str, list[str]]:
    """What `earshot …` prints, and the lines of its log, if it ends with a status of 2."""
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "earshot_client", *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, **environment},
    )
    assert done.returncode == 2, done.stderr
    return done.stdout, done.stderr.splitlines()


def broken(tmp_path: Path, library: str) -> str:
    """A PYTHONPATH on which a library is of a version that lacks what we use."""
    place = tmp_path / "path" / library
    place.mkdir(parents=True)
    (place / "__init__.py").write_text(f"raise ImportError('{library} lacks something')\n")
    return os.pathsep.join([str(place.parent), *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.mark.slow
def test_a_web_server_that_dies_at_each_start_ends_a_helper_with_the_reason(
    tmp_path: Path,
) -> None:
    data = str(HelperProcess(tmp_path / "helper").data)
    _, log = run_to_its_end(
        *("helper", "serve", "--data", data, "--port", "0"),
        PYTHONPATH=broken(tmp_path, "gunicorn"),
    )
    assert "web ends as soon as it has begun, again and again, the last time with" in log[-1]
    assert "ImportError: gunicorn lacks something" in log[-1]


def drivers(server: ServerProcess) -> list[psutil.Process]:
    """The driver: the child of the supervisor that runs Python code and has no children."""
    assert server.process is not None
    children = psutil.Process(server.process.pid).children()
    spawned = [each for each in children if "spawn_main" in " ".join(each.cmdline())]
    return [each for each in spawned if not each.children()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("victims", "said"),
    [
        (
            ServerProcess.workers,  # gunicorn would start others for ever
            "web ends as soon as it has begun, again and again, the last time with status 70 "
            "(Reason: workers end as soon as they have begun, again and again)",
        ),
        (drivers, "driver ends as soon as it has begun, again and again, the last time with"),
    ],
    ids=("workers", "drivers"),
)
def test_what_is_killed_as_soon_as_it_has_begun_ends_the_server(
    tmp_path: Path,
    database: str,
    victims: Callable[[ServerProcess], list[psutil.Process]],
    said: str,
) -> None:
    server = ServerProcess(tmp_path, database, "--workers", "1")
    server.start()
    family = server.processes()

    def has_ended() -> bool:
        with contextlib.suppress(psutil.NoSuchProcess):
            for victim in victims(server):
                victim.kill()
        assert server.process is not None
        return server.process.poll() is not None

    try:
        await_(has_ended, "the end of the server")
    except BaseException:
        server.kill()
        raise
    assert server.stop() == 2
    assert said in server.log.read_text().splitlines()[-1]
    await_(lambda: not any(each.is_running() for each in family), "the end of all")
