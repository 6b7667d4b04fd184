"""Health of this process, whether it lives and whether it can serve; for load balancers."""

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
"""Key in a request's environment: whether no thread that answers phones has become free in time."""
LEAST_FREE = 128 * 2**20
"""Bytes that must be free on the data folder's disk: PostgreSQL stops for good on a full one."""
WRITE_EVERY = 3.0
"""Seconds between two probing writes, however often health is asked for."""


class Writable(Protocol):
    """A database on which the readiness of this process depends."""

    def check(self) -> None:
        """Check that it is there and up to date."""

    def write(self) -> None:
        """Probe that the database is writable."""


def health(database: Writable, folder: Path | None) -> Blueprint:
    """Return the two endpoints, to be mounted.

    Args:
        database: Database that must be there and accept writes.
        folder: Data folder, on whose disk there must be room; None if there is none.
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
        """Confirm that threads answer, the database can be written, and the disk has room."""
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
    """Check that there is room on the disk of a folder.

    Raises:
        DiskError: There is too little, or the folder is gone.
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
