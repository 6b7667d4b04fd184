"""Two operators over HTTP, each of whose processes is killed at every write of a phase, once.

Web worker, driver and helper are forks of the test's process. A write is a statement or a change of
a disk in one step of the phase. Who has made it for the first time is killed, and another fork
takes the place, at the same address. A web worker is also killed before it, and again and again
later on.
"""

from __future__ import annotations

import hashlib
import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import psycopg
from psycopg import BaseConnection
from werkzeug.serving import make_server

from earshot_server.api.app import ApiSettings, create_app
from earshot_server.credentials import Credentials
from earshot_server.helper.api import HelperSettings, create_helper_app
from earshot_server.helper.helper import HelperPolicy
from earshot_server.helper_line import HelperLine
from earshot_server.store.database import Database
from support import killed_helper, killed_leader
from support.killed_helper import opened
from support.killed_leader import LEADER, Stage
from support.kills import Call

_LONGEST_LIFE = 25
"""Moments of writes, before and after, that a web worker lives to see."""


@dataclass(frozen=True)
class ServedStage(Stage):
    """A stage whose helper is at an address."""

    address: str

    def line(self) -> HelperLine:
        return HelperLine(self.address, LEADER)


class Deaths:
    """Moments at which a process was killed, each in a file, so that it is not killed again."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self._folder = folder

    def at(self, process: str, moment: str) -> None:
        """Die, if no process of that name has died at that moment."""
        digest = hashlib.sha256(moment.encode()).hexdigest()[:16]
        try:
            (self._folder / f"{process} {digest}").touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    def of(self, process: str) -> int:
        """Return how often processes of that name have died."""
        return len(list(self._folder.glob(f"{process} *")))


class Operators:
    """A leader and its helper, whose processes come back when they have died.

    Args:
        url: of the leader's migrated database.
        folder: for the files of both.
    """

    def __init__(self, url: str, folder: Path) -> None:
        self.deaths = Deaths(folder / "deaths")
        self._folder = folder
        self._step = folder / "step"
        self._listeners = {name: socket.create_server(("127.0.0.1", 0)) for name in _SERVERS}
        self._keepers = list[BaseProcess]()
        address = self.address("helper")
        self.stage = ServedStage(url, folder / "helper", address)
        with opened(self.stage.path, time.time()) as made:
            leaders = frozenset({LEADER.public_key().public_bytes_raw()})
            made.leaders.allow(HelperPolicy(leaders=leaders, least_reports=2, least_noise=0.0))
        self.credentials = Credentials.load_or_create(folder)
        self.begin("gathering")

    def address(self, name: str) -> str:
        return f"http://127.0.0.1:{self._listeners[name].getsockname()[1]}"

    def begin(self, step: str) -> None:
        """Say which step comes: its writes are others than those of the same form before it."""
        self._step.write_text(step)

    def serve(self) -> None:
        """Start both servers; each has a process that replaces it when it is killed."""
        for name, serve in _SERVERS.items():
            keeper = get_context("fork").Process(target=self._keep, args=(name, serve))
            keeper.start()
            self._keepers.append(keeper)

    def _keep(self, name: str, serve: Callable[[Operators], None]) -> None:
        os.setpgrp()  # so that both end together
        while True:
            server = self._forked(name, partial(serve, self))
            server.join()
            assert server.exitcode == -signal.SIGKILL, (name, server.exitcode)

    def drive(self, phase: str, *steps: str) -> None:
        """Drive the phase to the first of these steps, or further, by one driver after another."""
        self.begin(steps[0])
        run = partial(self.stage.driven, phase, steps)
        while True:
            driver = self._forked("driver", run)
            driver.join()
            if driver.exitcode == 0:
                return
            assert driver.exitcode == -signal.SIGKILL, driver.exitcode
            self.stage.wait_for_leases()
            with psycopg.connect(self.stage.url, autocommit=True) as connection:
                # A step in which a dozen drivers died is given up; here, each death is the first.
                connection.execute("DELETE FROM troubles")

    def end(self) -> None:
        """Kill what is left."""
        for keeper in self._keepers:
            assert keeper.pid is not None
            assert keeper.is_alive(), "a server failed"
            os.killpg(keeper.pid, signal.SIGKILL)
            keeper.join()
        for listener in self._listeners.values():
            listener.close()

    def _forked(self, name: str, run: Callable[[], object]) -> BaseProcess:
        process = get_context("fork").Process(target=self._watched, args=(name, run))
        process.start()
        return process

    def _watched(self, name: str, run: Callable[[], object]) -> None:
        log = logging.FileHandler(self._folder / f"{name}.log")
        logging.basicConfig(handlers=[log], level=logging.WARNING, force=True)
        with (
            killed_helper.watched(self._dies_at_a_call)
            if name == "helper"
            else killed_leader.watched(_Statements(self, name))
        ):
            run()

    def _dies_at_a_call(self, name: str, call: Call, given: tuple[Any, ...]) -> Any:
        about = given[0]
        if isinstance(about, int):
            about = os.readlink(f"/proc/self/fd/{about}")
        if name != "execute":  # a file, whose name is a sum's but for its end
            about = str(about).rpartition(".")[2]
        elif about.startswith("SELECT"):
            return call(*given)
        text = f"{self._step.read_text()}: {name} {about}"
        done = call(*given)
        self.deaths.at("helper", text)
        return done


class _Statements:
    """A hook that kills its process at each statement, and each commit of one, that is new.

    Before a write of a driver all is as after the one before, unless somebody has answered.
    """

    def __init__(self, operators: Operators, name: str) -> None:
        self._operators, self._name = operators, name
        self._last = threading.local()
        self._made = 0

    def __call__(self, connection: BaseConnection[Any], statement: str, moment: str) -> None:
        step = self._operators._step.read_text()
        about = f"{statement} of {getattr(self._last, 'text', '')}"
        if statement != "COMMIT":
            about = self._last.text = statement
        self._made += 1
        if self._name == "web" and self._made == _LONGEST_LIFE:
            self._operators.deaths.at("web", str(os.getpid()))
        if moment == "after" or self._name == "web" or statement.startswith("WITH open"):
            self._operators.deaths.at(self._name, f"{step}: {moment} {about}")


def _serve_phones(operators: Operators) -> None:
    with closing(Database(operators.stage.url)) as database:
        settings = ApiSettings(
            database,
            operators.credentials,
            idle_seconds=0.05,
            phone_requests_per_minute=10**6,
            address_requests_per_minute=10**6,
        )
        _serve(create_app(settings), operators._listeners["web"])


def _serve_operator(operators: Operators) -> None:
    settings = HelperSettings(operators.stage.path, address_requests_per_minute=10**6)
    _serve(create_helper_app(settings), operators._listeners["helper"])


def _serve(app: Any, listener: socket.socket) -> None:
    with make_server("127.0.0.1", 0, app, fd=os.dup(listener.fileno())) as server:
        server.serve_forever()


_SERVERS: dict[str, Callable[[Operators], None]] = {"web": _serve_phones, "helper": _serve_operator}


@contextmanager
def operating(url: str, folder: Path) -> Iterator[Operators]:
    """Two operators, whose processes end with the block."""
    operators = Operators(url, folder)
    try:
        operators.serve()
        yield operators
    finally:
        operators.end()
