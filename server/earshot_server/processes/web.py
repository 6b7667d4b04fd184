"""Web server: gunicorn's workers, each with uvicorn's event loop over its own app."""

from __future__ import annotations

import logging
import resource
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import BaseApplication
from gunicorn.errors import HaltServer
from gunicorn.glogging import Logger

from earshot_protocol.overriding import override
from earshot_server.api.shared_counts import SharedCounts
from earshot_server.front.connections import Patience
from earshot_server.front.worker import Worker
from earshot_server.processes.quick_deaths import GAVE_UP, MOST_QUICK_DEATHS, QuickDeaths
from earshot_server.processes.settings import WebSettings

if TYPE_CHECKING:
    from flask import Flask

    from earshot_server.front.gateway import Gateway

_TIMEOUT = 120
"""Seconds after which an unresponsive worker is considered dead."""
_GRACE = 25
_OTHER_FILES = 256
"""Number of files reserved for uses other than clients' connections, per worker."""


def run(
    serving: WebSettings, make: Callable[[SharedCounts], Flask], listener: socket.socket
) -> None:
    """Serve until SIGTERM.

    Args:
        serving: Settings of the web processes.
        make: Function that creates one worker's app, given the counts that all workers share.
        listener: Listening socket, which outlives restarts, so that no connection is lost.
    """
    _Gunicorn(serving, make, listener).run()


class _Gunicorn(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    def __init__(
        self,
        serving: WebSettings,
        make: Callable[[SharedCounts], Flask],
        listener: socket.socket,
    ) -> None:
        self._serving = serving
        self._make = make
        self._listener = listener
        # On a signal, gunicorn starts new workers beside the old ones.
        self._parts = range(2 * serving.workers)
        self._counts = SharedCounts(len(self._parts))
        self._part: int | None = None
        self._deaths = QuickDeaths(MOST_QUICK_DEATHS * serving.workers)
        super().__init__()

    def load_config(self) -> None:
        settings: dict[str, Any] = {
            "bind": f"fd://{self._listener.fileno()}",
            "workers": self._serving.workers,
            "worker_class": Worker,
            "timeout": _TIMEOUT,
            "graceful_timeout": _GRACE,
            "proc_name": "earshot",
            "control_socket_disable": True,
            "pre_fork": self._prepare,
            "child_exit": self._count_death,
            "logger_class": ServerLogger,
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Gateway:
        """Create one worker's application after the fork, so that connections are not shared."""
        from earshot_server.front.connections import Connections
        from earshot_server.front.gateway import Gateway

        connections = Connections(_patience(self._serving))
        self._counts.take(self._part)
        return Gateway(self._make(self._counts), self._serving.threads, connections)

    def _prepare(self, arbiter: Any, worker: Any) -> None:
        """Assign a free part of the shared counts to a worker that is about to be forked."""
        worker.began = time.monotonic()
        taken = {each.part for each in arbiter.WORKERS.values()}
        worker.part = self._part = min(set(self._parts) - taken, default=None)
        worker.counted = self._counts.of_part(worker.part)

    def _count_death(self, arbiter: Any, worker: Any) -> None:
        """Give up if workers keep dying; the arbiter would restart them forever."""
        # A worker that has answered a request was killed, which may happen at any time.
        served = self._counts.of_part(worker.part) > worker.counted
        is_stopping = not arbiter.LISTENERS
        if not (is_stopping or served) and self._deaths.are_too_many(worker.began):
            raise HaltServer("workers end as soon as they have begun, again and again", GAVE_UP)


def _patience(serving: WebSettings) -> Patience:
    """Return limits that fit the allowed number of open files, and the proxies.

    Behind a proxy all connections come from its address, so there is no limit per address.
    """
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    unlimited = resource.RLIM_INFINITY
    wanted = Patience.altogether + _OTHER_FILES
    reachable = wanted if most == unlimited else min(wanted, most)
    if limit != unlimited and limit < reachable:
        resource.setrlimit(resource.RLIMIT_NOFILE, (reachable, most))
        limit = reachable
    spare = Patience.altogether if limit == unlimited else limit - _OTHER_FILES
    return Patience(
        per_address=None if serving.proxies else serving.address_connections,
        altogether=max(1, min(Patience.altogether, spare)),
    )


class ServerLogger(Logger):  # type: ignore[misc]  # gunicorn has no types
    """Logger that writes gunicorn's messages in the format of all others."""

    @override
    def setup(self, cfg: object) -> None:
        """Leave handlers to the root logger; the application logs requests."""
        # Gunicorn's own name is gunicorn.error, for messages of every level.
        self.error_log = logging.getLogger("earshot.server")
        for own in (self.error_log, self.access_log):
            own.handlers[:] = []
            own.propagate = True
