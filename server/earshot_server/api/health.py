"""Health checks for load balancers: whether this process is alive, and whether it can serve."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path
from typing import Protocol

from flask import Blueprint, Response, request

from earshot_protocol.api import JSON
from earshot_server.api.problems import DiskError, StuckError

LIVE = "/health/live"
READY = "/health/ready"
STUCK = "earshot.stuck"
"""Key in a request's environment: whether all threads have been held too long (overload)."""
LEAST_FREE = 128 * 2**20
"""Bytes that must be free on the data folder's disk: PostgreSQL stops on a full one."""
WRITE_EVERY = 3.0
"""Least seconds between two probing writes."""


class Writable(Protocol):
    """A database on which the readiness of this process depends."""

    def check(self) -> None:
        """Check that the database is reachable and its schema up to date."""

    def write(self) -> None:
        """Probe that the database is writable."""


def health(database: Writable, folder: Path | None) -> Blueprint:
    """Return the two endpoints.

    Args:
        database: Database that must be reachable and writable.
        folder: Data folder whose disk must have free space; None if there is none.
    """
    blueprint = Blueprint("health", __name__)
    lock = threading.Lock()
    written = -WRITE_EVERY

    @blueprint.get(LIVE)
    def live() -> Response:
        """Confirm that the process answers."""
        return Response(b'{"status":"live"}', content_type=JSON)

    @blueprint.get(READY)
    def ready() -> Response:
        """Confirm that threads are free, the database is writable, and the disk has room."""
        nonlocal written
        if request.environ.get(STUCK):
            raise StuckError
        if folder is not None:
            check_room(folder)
        database.check()
        with lock:
            if time.monotonic() - written >= WRITE_EVERY:
                database.write()
                written = time.monotonic()
        return Response(b'{"status":"ready"}', content_type=JSON)

    return blueprint


def check_room(folder: Path) -> None:
    """Check the free space on the disk of a folder.

    Raises:
        DiskError: Less than `LEAST_FREE` bytes are free, or the folder cannot be read.
    """
    try:
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise DiskError(f"the data folder cannot be read: {error.strerror}") from error
    if free < LEAST_FREE:
        raise DiskError(
            f"{free >> 20} MiB are free on the disk of the data folder; at least "
            f"{LEAST_FREE >> 20} MiB are needed"
        )
