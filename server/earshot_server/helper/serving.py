"""`earshot helper serve`: settings, and a supervisor over a web server with N workers."""

from __future__ import annotations

import logging
import os
import signal
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from earshot_server.helper.folder import HelperFolder
from earshot_server.processes import logs
from earshot_server.processes.address import Address
from earshot_server.processes.children import Child, listen, run_web, supervise
from earshot_server.processes.data_folder import check_writable, owning
from earshot_server.processes.relay import relayed
from earshot_server.processes.settings import check_ranges, check_web
from earshot_server.store.database import DatabaseUnavailableError

if TYPE_CHECKING:
    from flask import Flask

    from earshot_server.api.shared_counts import SharedCounts

_TIDY_EVERY = 60.0
"""Seconds between two erasures of expired keys, parts, offers and totals."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class HelperServing:
    """Settings for serving a helper: the options of `earshot helper serve`.

    Attributes:
        data: Folder of the helper.
        host: Address to listen at; an address that other machines reach requires --proxies.
        port: Port to listen at; 0 for any free one.
        workers: Number of web processes.
        threads: Threads of each web process.
        address_requests_per_minute: Most requests from one address to each worker in a minute.
        address_connections: Most connections from one address to each worker; no limit behind
            --proxies.
        proxies: Number of reverse proxies before the helper, whose X-Forwarded-For is trusted.
        log_level: Least severe level that is logged: debug, info, warning, error or critical.
    """

    data: Path = Path("earshot-helper")
    host: str = "127.0.0.1"
    port: int = 8001
    workers: int = 2
    threads: int = 4
    address_requests_per_minute: int = 6000
    address_connections: int = 100
    proxies: int = 0
    log_level: str = "INFO"

    def check(self) -> None:
        """Check constraints that the types do not express.

        Raises:
            InvalidInputError: An option is invalid; the message says what is possible.
        """
        check_ranges(self)
        check_web(self, self.host)


def serve(serving: HelperServing, ready: Callable[[str, str], None]) -> None:
    """Serve until SIGTERM or SIGINT; requests under way are answered first.

    Args:
        serving: Settings.
        ready: Function that is called once the helper listens, with its URL and its identity in
            hexadecimal.

    Raises:
        LocalError: The folder cannot be opened or written, another process serves it, its keys are
            a copy, the address is in use or not ours, or the web server fails at its start.
    """
    os.umask(0o077)  # only we may read the files that our processes create
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    with ExitStack() as stack:
        errors = stack.enter_context(relayed())
        logs.configure(serving.log_level)
        folder = HelperFolder.open(serving.data)
        stack.enter_context(closing(folder.database))
        check_writable(serving.data)
        stack.enter_context(owning(serving.data))
        folder.book.begin(time.time())
        listener = stack.enter_context(listen(serving.host, serving.port))
        address = Address(serving.host, listener.getsockname()[1])
        app = partial(_app, serving)
        web = Child("web", serving.log_level, run_web, serving, app, listener)
        stack.callback(web.end)
        ready(address.reachable.url, folder.identity.public_key().public_bytes_raw().hex())
        supervise((web,), stop, _Tidying(folder), errors.last_words)


class _Tidying:
    """Deletion of expired data once a minute, even without requests."""

    def __init__(self, folder: HelperFolder) -> None:
        self._folder = folder
        self._next = 0.0

    def __call__(self) -> None:
        now = time.monotonic()
        if now >= self._next:
            self._next = now + _TIDY_EVERY
            try:
                self._folder.tidy(time.time())
            except DatabaseUnavailableError as error:  # the disk may be full, for now
                _log.error("expired keys or totals could not be erased: %s", error)


def _app(serving: HelperServing, counts: SharedCounts) -> Flask:
    """Create one worker's application after the fork, so that no database is shared."""
    from earshot_server.helper.api import HelperSettings, create_helper_app

    return create_helper_app(
        HelperSettings(
            data_folder=serving.data,
            address_requests_per_minute=serving.address_requests_per_minute,
            proxies=serving.proxies,
            counts=counts,
        )
    )
