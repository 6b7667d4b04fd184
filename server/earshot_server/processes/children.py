"""Child processes that a supervisor keeps alive, among them the web server.

They may be killed at any time. The supervisor restarts those that end unexpectedly, and they end
when it does, even if it is killed. If a child keeps dying right after its start, the supervisor
gives up with an error.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Sequence
from multiprocessing import connection
from typing import TYPE_CHECKING

from earshot_protocol.errors import LocalError
from earshot_server.processes import logs
from earshot_server.processes.quick_deaths import CALM, GAVE_UP, QuickDeaths
from earshot_server.processes.settings import WebSettings

if TYPE_CHECKING:
    from flask import Flask

    from earshot_server.api.shared_counts import SharedCounts

_GRACE = 30.0
"""Seconds granted for requests under way, and then for other work of a process."""

_log = logging.getLogger(__name__)


class AddressError(LocalError):
    """The server cannot listen at the given address."""


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket, whose connections are not accepted yet.

    `::` is every address of the machine, including IPv4.

    Raises:
        AddressError: The address is in use or not ours.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        both = family == socket.AF_INET6 and not host.strip("0:") and socket.has_dualstack_ipv6()
        listener = socket.create_server(
            (host, port), family=family, backlog=2048, dualstack_ipv6=both
        )
    except (OSError, TypeError, UnicodeError) as error:  # a host name may not encode
        reason = getattr(error, "strerror", None) or error
        raise AddressError(
            f"cannot listen at {host}:{port} ({reason}): choose another --host or --port"
        ) from error
    # Connections inherit it, including those that are not accepted yet.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


class QuickDeathsError(LocalError):
    """Processes keep dying right after their start; the message says why."""


class Child:
    """Process that the supervisor keeps alive; the constructor starts it.

    Args:
        name: Name in the log.
        log_level: Lowest level that it logs.
        target: Function that it runs; must be importable by a fresh interpreter.
        arguments: Arguments of the function.
    """

    def __init__(
        self, name: str, log_level: str, target: Callable[..., None], *arguments: object
    ) -> None:
        self.name = name
        self.deaths = QuickDeaths()
        self._arguments = (log_level, target, arguments)
        self.start()

    def start(self) -> None:
        """Start the process, or start it again."""
        # A fresh interpreter inherits neither threads nor connections.
        context = multiprocessing.get_context("spawn")
        self.process = context.Process(target=_run, args=self._arguments, name=self.name)
        self.began = time.monotonic()
        self.process.start()

    def end(self) -> None:
        """Stop the process; kill it if it does not stop in time."""
        self.process.terminate()
        self.process.join(_GRACE)
        if self.process.is_alive():
            _log.error("%s does not stop and is killed", self.name)
            self.process.kill()
            self.process.join()


def _run(log_level: str, target: Callable[..., None], arguments: tuple[object, ...]) -> None:
    """Run the function of a child process, and log the error that ends it."""
    os.setsid()  # only the supervisor gets Ctrl-C from the terminal
    logs.configure(log_level)
    try:
        target(*arguments)
    except Exception:
        _log.critical("this process has failed", exc_info=True)
        sys.exit(1)


def supervise(
    children: Sequence[Child],
    stop: threading.Event,
    meanwhile: Callable[[], None],
    last_words: Callable[[float], str],
) -> None:
    """Restart processes that end, until stopped.

    Args:
        children: Processes.
        stop: Event that ends the supervision.
        meanwhile: Function that is called a few times a second.
        last_words: Function that returns the last error logged since a time.

    Raises:
        QuickDeathsError: One of them keeps dying right after its start.
    """
    while not stop.is_set():
        meanwhile()
        connection.wait([child.process.sentinel for child in children], timeout=0.2)
        for child in children:
            if child.process.is_alive() or stop.is_set():
                continue
            code = child.process.exitcode
            if child.deaths.are_too_many(child.began) or code == GAVE_UP:
                said = last_words(child.began) or "see the log"
                raise QuickDeathsError(
                    f"{child.name} ends as soon as it has begun, again and again, the last time "
                    f"with status {code} ({said}): fix that, and start the server again"
                )
            _log.error("%s has ended with status %s and is started again", child.name, code)
            if time.monotonic() - child.began < CALM:
                stop.wait(1.0)
            child.start()


def end_with_parent(end: Callable[[], None]) -> None:
    """Call `end` in a thread once the supervisor has exited, even if it was killed."""
    parent = multiprocessing.parent_process()

    def wait() -> None:
        if parent is not None:
            parent.join()
            end()

    threading.Thread(target=wait, daemon=True).start()


def run_web(
    serving: WebSettings, make: Callable[[SharedCounts], Flask], listener: socket.socket
) -> None:
    """Run the web server: gunicorn's arbiter, whose workers each create their own app.

    Args:
        serving: Settings of the web processes.
        make: Function that creates an app, given the counts that all workers share.
        listener: Listening socket, which outlives restarts, so that no connection is lost.
    """
    end_with_parent(lambda: os.kill(os.getpid(), signal.SIGTERM))
    from earshot_server.processes.web import run

    run(serving, make, listener)
