"""The measured server, the phones enrolled in its database, and the floor under its requests."""

from __future__ import annotations

import json
import os
import re
import secrets
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_protocol.connecting import connection
from earshot_protocol.errors import InvalidInputError
from earshot_server.store.database import Database
from earshot_server.store.registry import Registry
from earshot_simulations.benchmarks.api.timed import Timed
from earshot_simulations.benchmarks.failure import BenchmarkError
from earshot_simulations.workers import own_command

_FLOOR_REQUESTS = 500
_FLOOR_COMMITS = 200
_LOG = "server.log"
_MOST_COMPLAINTS = 10


@contextmanager
def serving(data: Path, url: str, workers: int, *options: str) -> Iterator[tuple[str, int]]:
    """Run a server in separate processes; yield its address and the PID of its first process.

    Args:
        data: Data folder of the server.
        url: URL of its database.
        workers: Web processes.
        options: Further options of `earshot serve`.

    Raises:
        BenchmarkError: The server does not start.
    """
    log = (data / _LOG).open("wb")
    # S603: our own command.
    process = subprocess.Popen(  # noqa: S603
        [
            *own_command("serve", "--data", str(data)),
            *("--port", "0", "--workers", str(workers), "--pause", "0.2"),
            *("--requests-per-minute", "6000", "--address-requests-per-minute", "10000000"),
            *options,
        ],
        stdout=subprocess.PIPE,
        stderr=log,
        encoding="utf-8",
        errors="replace",
        env={**os.environ, "EARSHOT_DATABASE": url},
    )
    try:
        address = re.search(r"http://\S+", process.stdout.readline() if process.stdout else "")
        if address is None:
            log.flush()
            last = (data / _LOG).read_text(encoding="utf-8", errors="replace")[-2000:]
            raise BenchmarkError(f"the server does not start: {last}")
        yield address[0], process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)
        if process.stdout:
            process.stdout.close()
        log.close()


def complaints(data: Path) -> list[str]:
    """Return the first ten errors that the server logged."""
    found = []
    with (data / _LOG).open(encoding="utf-8", errors="replace") as log:
        for line in log:
            try:
                entry = json.loads(line)
            except ValueError:
                continue  # a line of another program
            if isinstance(entry, dict) and entry.get("level") in ("ERROR", "CRITICAL"):
                found.append(f"{entry.get('message')}: {entry.get('exc_info', '')}".strip(": "))
                if len(found) == _MOST_COMPLAINTS:
                    break
    return found


def enrol(url: str, keys: Sequence[bytes]) -> list[str]:
    """Enrol phones directly in the database, in one transaction, under one new invitation.

    This bypasses only the request to the API; it needs access to the database.

    Args:
        url: URL of the database, with its tables.
        keys: Private keys, 32 bytes each.

    Returns:
        Names of the phones, in order.

    Raises:
        InvalidInputError: Two phones have the same key.
    """
    if not keys:
        return []
    invitation = secrets.token_bytes(16)
    public = [
        Ed25519PrivateKey.from_private_bytes(key).public_key().public_bytes_raw() for key in keys
    ]
    if len(set(public)) < len(public):
        raise InvalidInputError("two phones have the same key; give each phone its own")
    with closing(Database(url, pool_size=1)) as database, database.transaction():
        registry = Registry(database)
        return [str(registry.enrol(key, invitation, len(public))) for key in public]


def floor(address: str, url: str) -> dict[str, float]:
    """Return the 95th percentiles of an empty request and of a durable commit of 4 KiB, in ms."""
    import psycopg

    timed = Timed()
    with closing(connection(address, None, 60.0)) as line:

        def request() -> None:
            line.request("GET", "/health/live")
            line.getresponse().read()

        for _ in range(_FLOOR_REQUESTS):
            timed("request", request)
    with psycopg.connect(url, autocommit=True) as database:
        insert = "INSERT INTO benchmark_floor VALUES (%s)"
        database.execute("CREATE TABLE benchmark_floor (body bytea)")
        for _ in range(_FLOOR_COMMITS):
            timed("commit", lambda: database.execute(insert, (os.urandom(4096),)))
        database.execute("DROP TABLE benchmark_floor")
    return {
        f"floor_{name}_p95_ms": float(np.percentile(seconds, 95)) * 1e3
        for name, seconds in timed.seconds.items()
    }


def database_process(url: str) -> int:
    """Return the PID of PostgreSQL's first process on this machine."""
    import psutil
    import psycopg

    with psycopg.connect(url) as database:
        return int(psutil.Process(database.info.backend_pid).ppid())


def database_bytes(url: str) -> int:
    """Return the size of the database in bytes."""
    import psycopg

    with psycopg.connect(url) as database:
        row = database.execute("SELECT pg_database_size(current_database())").fetchone()
    return int(row[0]) if row else 0
