"""Start the installed server once, in an empty folder, and check that it becomes ready."""

from __future__ import annotations

import http.client
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from earshot_protocol.connecting import connection

PATIENCE = 300.0
"""Seconds until it is ready, or has stopped: on a slow disk, a database takes a minute."""


def main(folder: Path) -> None:
    """Serve until `/health/ready` answers, then stop."""
    command = Path(sys.executable).with_name("earshot")
    with (folder / "log").open("wb") as log:
        server = subprocess.Popen(  # noqa: S603 - ourselves
            [command, "serve", "--data", folder / "data", "--port", "0", "--workers", "1"],
            stdout=subprocess.PIPE,
            stderr=log,
            encoding="utf-8",
            errors="replace",
        )
        try:
            await_ready(server)
        finally:
            server.terminate()
            status = server.wait(PATIENCE)
    if status != 0:
        sys.exit(f"the server was ready, and ended with status {status}")


def await_ready(server: subprocess.Popen[str]) -> None:
    """Wait until the server is ready; exit if it ends before, or takes too long."""
    assert server.stdout is not None  # noqa: S101 - it is a pipe
    line = server.stdout.readline()
    address = next((word for word in line.split() if word.startswith("http://")), None)
    if address is None:
        sys.exit("the server ended before it listened")
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with closing(connection(address, None, 10.0)) as there:
                there.request("GET", "/health/ready")
                response = there.getresponse()
                if response.status == 200:
                    return
                said = response.read(1000).decode("utf-8", "replace")
        except (OSError, http.client.HTTPException) as error:
            said = str(error)
        if server.poll() is not None or time.monotonic() > deadline:
            sys.exit(f"the server does not become ready: {said}")
        time.sleep(0.2)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
