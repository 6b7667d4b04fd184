"""Processes that a supervisor keeps alive, and the web server among them.

They may be killed at any time. The supervisor restarts those that end without being told to, and
they end when it does, however it ends.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import connection
from pathlib import Path
from typing import TYPE_CHECKING

from earshot_protocol.errors import LocalError
from earshot_server.processes import logs
from earshot_server.processes.settings import WebSettings

if TYPE_CHECKING:
    from flask import Flask

_GRACE = 30.0
"""Seconds granted for requests under way, and then for what else a process is at."""
CALM = 10.0
"""Seconds a process must have lived to be restarted at once; others are after a pause."""

_log = logging.getLogger(__name__)


class AddressError(LocalError):
    """The server cannot listen at the address that it was given."""


class DataFolderError(LocalError):
    """The data folder cannot be written."""


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens there, before anybody accepts connections.

    `::` is every address of the machine, those of IPv4 as well.

    Raises:
        AddressError: The address is in use or not ours.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        both = family == socket.AF_INET6 and not host.strip("0:") and socket.has_dualstack_ipv6()
        listener = socket.create_server(
            (host, port), family=family, backlog=2048, dualstack_ipv6=both
        )
    except (OSError, TypeError, UnicodeError) as error:  # a name may have no form in ASCII
        reason = getattr(error, "strerror", None) or error
        raise AddressError(
            f"cannot listen at {host}:{port} ({reason}): choose another --host or --port"
        ) from error
    # Connections inherit it, even those that come before anybody accepts them.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def check_writable(folder: Path) -> None:
    """Check the folder here, before a process that would be restarted again and again fails.

    Raises:
        DataFolderError: The folder cannot be made or written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        if folder.stat().st_mode & (stat.S_IRWXG | stat.S_IROTH | stat.S_IWOTH):
            _log.warning("the data folder %s is open to other users: chmod 700 it", folder)
    except OSError as error:
        raise DataFolderError(
            f"the data folder {folder} cannot be written ({error.strerror}): choose another --data"
        ) from error


class Child:
    """Process that the supervisor keeps alive; it starts at once.

    Args:
        name: Name in the log.
        target: Function that it runs, found by its name in a fresh interpreter.
        arguments: Arguments of the function.
    """

    def __init__(self, name: str, target: Callable[..., None], *arguments: object) -> None:
        self.name = name
        self._target = target
        self._arguments = arguments
        self.start()

    def start(self) -> None:
        """Start the process, at first or once more."""
        # A fresh interpreter has neither threads nor connections of this one.
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=self._target, args=self._arguments, name=self.name)
        self.process.start()
        self.started = time.monotonic()

    def end(self) -> None:
        """End the process, by force if it does not stop."""
        self.process.terminate()
        self.process.join(_GRACE)
        if self.process.is_alive():
            _log.error("%s does not stop and is killed", self.name)
            self.process.kill()
            self.process.join()


def supervise(
    children: Sequence[Child], stop: threading.Event, meanwhile: Callable[[], None]
) -> None:
    """Start processes again that end, until told to stop.

    Args:
        children: Processes.
        stop: Event that ends this.
        meanwhile: Function that is called a few times a second.
    """
    while not stop.is_set():
        meanwhile()
        connection.wait([child.process.sentinel for child in children], timeout=0.2)
        for child in children:
            if child.process.is_alive() or stop.is_set():
                continue
            code = child.process.exitcode
            _log.error("%s has ended with status %s and is started again", child.name, code)
            if time.monotonic() - child.started < CALM:
                stop.wait(1.0)
            child.start()


def end_with_parent(end: Callable[[], None]) -> None:
    """Call `end` once the supervisor is gone, even if it was killed."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            end()

    threading.Thread(target=wait, daemon=True).start()


def run_web(serving: WebSettings, make: Callable[[Path], Flask], listener: socket.socket) -> None:
    """Run the web server: gunicorn's arbiter, whose workers each make their own app.

    Args:
        serving: Settings of the web processes.
        make: Function that makes an app, given the folder of all workers' figures.
        listener: Socket that is already listening, so that a restart loses no connection.
    """
    os.setsid()  # only the supervisor is to get a Ctrl-C from the terminal
    end_with_parent(lambda: os.kill(os.getpid(), signal.SIGTERM))
    logs.configure(serving.log_level)
    from earshot_server.processes.web import run

    run(serving, make, listener)
