"""Web server: gunicorn's workers, each with uvicorn's event loop over an app of its own."""

from __future__ import annotations

import logging
import os
import resource
import shutil
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from earshot_protocol.overriding import override
from earshot_server.front.connections import Patience
from earshot_server.front.worker import Worker
from earshot_server.processes.settings import Serving

if TYPE_CHECKING:
    from earshot_server.front.gateway import Gateway

_TIMEOUT = 120
"""Seconds after which a worker that does nothing at all is considered dead."""
_GRACE = 25
_OTHER_FILES = 256
"""Files that a worker opens besides its clients' connections."""
_METRICS_LINK = "metrics-folder"
_METRICS_PREFIX = "earshot-metrics-"
_MEMORY = Path("/dev/shm")  # noqa: S108 - the folder in it is made for us alone


def run(serving: Serving, url: str, listener: socket.socket) -> None:
    """Serve until SIGTERM.

    Args:
        serving: Settings of the server.
        url: URL of the database.
        listener: Socket that is already listening, so that a restart loses no connection.
    """
    metrics = _metrics_folder(serving.data)
    # This is for the arbiter's own clean-up; each worker is told by its settings.
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = str(metrics)
    _Gunicorn(serving, url, listener, metrics).run()


def _metrics_folder(data: Path) -> Path:
    """Make the folder in which the figures of all workers, which come and go, are added up.

    They are written through memory maps, which kill their process when a disk is full; so they are
    kept in memory where there is a file system for that, and never on the database's disk. A link
    in the data folder says where, so that the next server removes what a killed one left.
    """
    _remove_metrics_folder(data)
    folder = tempfile.mkdtemp(prefix=_METRICS_PREFIX, dir=_MEMORY if _MEMORY.is_dir() else None)
    (data / _METRICS_LINK).symlink_to(folder)
    return Path(folder)


def _remove_metrics_folder(data: Path) -> None:
    link = data / _METRICS_LINK
    if not link.is_symlink():
        return
    folder = link.readlink()
    if folder.name.startswith(_METRICS_PREFIX):
        shutil.rmtree(folder, ignore_errors=True)
    link.unlink()


class _Gunicorn(BaseApplication):  # type: ignore[misc]  # gunicorn has no types
    def __init__(self, serving: Serving, url: str, listener: socket.socket, metrics: Path) -> None:
        self._serving = serving
        self._url = url
        self._listener = listener
        self._metrics = metrics
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
            "child_exit": _child_exit,
            # This runs at the arbiter's own end; code after run() would also run in every worker.
            "on_exit": lambda arbiter: _remove_metrics_folder(self._serving.data),
            "logger_class": ServerLogger,
        }
        for name, value in settings.items():
            self.cfg.set(name, value)

    def load(self) -> Gateway:
        """Make one worker's application after the fork, so that connections are not shared."""
        from earshot_server.api.app import ApiSettings, create_app
        from earshot_server.credentials import Credentials
        from earshot_server.front.connections import Connections
        from earshot_server.front.gateway import Gateway
        from earshot_server.store.database import Database

        app = create_app(
            ApiSettings(
                # One more lets readiness be checked while all threads are at work.
                database=Database(self._url, pool_size=self._serving.threads + 1),
                credentials=Credentials.load_or_create(
                    self._serving.data, leads=self._serving.leads
                ),
                helper_key=self._serving.helper_identity,
                phone_requests_per_minute=self._serving.requests_per_minute,
                address_requests_per_minute=self._serving.address_requests_per_minute,
                proxies=self._serving.proxies,
                metrics_folder=self._metrics,
                data_folder=self._serving.data,
            )
        )
        connections = Connections(_patience(self._serving))
        return Gateway(app, self._serving.threads, connections)


def _patience(serving: Serving) -> Patience:
    """Allow as many connections as open files; behind a proxy, all come from its address."""
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
    """Logger that gives gunicorn's messages the form and the name of all others."""

    @override
    def setup(self, cfg: object) -> None:
        """Leave handlers to the root logger; the application logs requests."""
        # Gunicorn calls it gunicorn.error, whatever the level of a message.
        self.error_log = logging.getLogger("earshot.server")
        for own in (self.error_log, self.access_log):
            own.handlers[:] = []
            own.propagate = True


def _child_exit(arbiter: object, worker: Any) -> None:
    from prometheus_client import multiprocess

    multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
