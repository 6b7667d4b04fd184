"""PgBouncer before a PostgreSQL: two connections for all clients of a database and role."""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from earshot_server.processes.embedded import EmbeddedPostgres
from support.debian import program
from support.networked import await_, own_port

PASSWORD = "a word, or two"  # noqa: S105 - of nobody
_ROLES = ("earshot", "earshot_web", "earshot_driver")


@contextmanager
def pooled(
    postgres: EmbeddedPostgres,
    mode: str = "transaction",
    *,
    port: int | None = None,
    asks: bool = False,
) -> Iterator[int]:
    """Run a pooler, and yield the port of this machine at which it listens.

    Args:
        postgres: The server behind it, reached as `earshot`, `earshot_web` or `earshot_driver`.
        mode: When a client gives its connection to the server back.
        port: Where it listens; None for a port that is free.
        asks: Whether it asks for `PASSWORD`.
    """
    bouncer = program("pgbouncer", "pgbouncer")
    port = port or own_port()
    folder = Path(tempfile.mkdtemp(prefix="earshot-pooler-"))
    settings = {
        "listen_addr": "127.0.0.1",
        "listen_port": port,
        "unix_socket_dir": "",
        "auth_type": "scram-sha-256" if asks else "trust",
        "auth_file": folder / "roles",
        "pool_mode": mode,
        "default_pool_size": 2,
        "max_client_conn": 500,
    }
    (folder / "roles").write_text("".join(f'"{role}" "{PASSWORD}"\n' for role in _ROLES))
    (folder / "settings").write_text(
        f"[databases]\n* = host='{postgres._socket_folder}'\n[pgbouncer]\n"
        + "".join(f"{name} = {value}\n" for name, value in settings.items())
    )
    for each in (folder, *folder.iterdir()):
        postgres._give(each)
    with (folder / "log").open("w") as log:
        running = subprocess.Popen(  # noqa: S603 - a program of the distribution
            [bouncer, folder / "settings"],
            stdout=log,
            stderr=log,
            cwd="/",
            **postgres._identity(),  # it refuses to be root, too
        )
    try:
        await_(lambda: _listens(port) or running.poll() is not None, "the pooler")
        assert running.poll() is None, (folder / "log").read_text()
        yield port
    finally:
        running.kill()
        running.wait()
        shutil.rmtree(folder)


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True
