"""A leader that is killed at any write of a phase by two operators, or loses its database at it.

Driver, errands and web worker are forks of the test's process over PostgreSQL, and each may be
killed. The helper is in them, over a folder that outlives them; phones are the test's own.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self
from unittest import mock

import psycopg
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from psycopg import BaseConnection

from earshot_protocol.messages import decode_answer
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.two_operators.leader import LeaderKeys
from earshot_protocol.wire import Answer, Task, encode
from earshot_server.discovery.optics import Optics
from earshot_server.helper.folder import HelperFolder
from earshot_server.helper.helper import Helper, HelperPolicy
from earshot_server.phases.coordinator import Coordinator
from earshot_server.processes.driver import Driver
from earshot_server.processes.embedded import embedded
from earshot_server.processes.errands import HelperErrands
from earshot_server.proofs.engine import fastest
from earshot_server.store.database import Database, DatabaseUnavailableError
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry
from support.killed_helper import opened
from support.kills import in_child
from support.networked import await_

LEADER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
Hook = Callable[[BaseConnection[Any], str, str], None]
"""What happens at a write: on this connection, of this statement, `before` or `after`."""
_WRITES = ("INSERT", "UPDATE", "DELETE", "COPY", "WITH", "COMMIT")
_TIME_PASSES = (
    b"UPDATE leases SET expires = 0;"
    b"UPDATE troubles SET next_try = 0; UPDATE errands SET next_try = 0"
)


@contextmanager
def lasting_database() -> Iterator[tuple[str, Path]]:
    """Address of a PostgreSQL that keeps what it has committed when it is killed, and its folder.

    What connects to it are forks of this process: it has no connection of its own to it.
    """
    with (
        tempfile.TemporaryDirectory(prefix="earshot-") as name,
        embedded(Path(name) / "database") as postgres,
    ):
        in_child(lambda: Database(postgres.url).migrate())
        yield postgres.url, Path(name)


@contextmanager
def watched(hook: Hook) -> Iterator[None]:
    """Let a hook know of each statement that writes, and of each commit, before and after it."""
    execute, copy = psycopg.Cursor.execute, psycopg.Cursor.copy
    command = BaseConnection._exec_command

    def told(connection: BaseConnection[Any], statement: object, moment: str) -> None:
        text = statement.decode() if isinstance(statement, bytes) else str(statement)
        if text.startswith(_WRITES) and statement != _TIME_PASSES:
            hook(connection, text, moment)

    def executing(self: Any, statement: Any, *given: Any, **named: Any) -> Any:
        told(self.connection, statement, "before")
        done = execute(self, statement, *given, **named)
        told(self.connection, statement, "after")
        return done

    @contextmanager
    def copying(self: Any, statement: Any) -> Iterator[Any]:
        told(self.connection, statement, "before")
        with copy(self, statement) as done:
            yield done
        told(self.connection, statement, "after")

    def commanding(self: Any, statement: Any, *given: Any) -> Generator[Any, Any, Any]:
        told(self, statement, "before")
        done = yield from command(self, statement, *given)
        told(self, statement, "after")
        return done

    with (
        mock.patch.object(psycopg.Cursor, "execute", executing),
        mock.patch.object(psycopg.Cursor, "copy", copying),
        mock.patch.object(BaseConnection, "_exec_command", commanding),
    ):
        yield


def moments(run: Callable[[], object]) -> list[tuple[int, str, str]]:
    """Run, and return each moment of each write: its number, the moment, and the statement."""
    found: list[tuple[int, str, str]] = []

    def noted(connection: BaseConnection[Any], statement: str, moment: str) -> None:
        found.append((len(found), moment, statement))

    with watched(noted):
        run()
    return found


def killed(run: Callable[[], object], number: int) -> object:
    """Run, and die at that moment."""
    return _disturbed(run, number, lambda connection: os.kill(os.getpid(), signal.SIGKILL))


def bereft(run: Callable[[], object], number: int) -> object:
    """Run, and have PostgreSQL's process killed at that moment: what it said last is lost."""
    return _disturbed(run, number, _lose)


def _lose(connection: BaseConnection[Any]) -> None:
    os.kill(connection.pgconn.backend_pid, signal.SIGKILL)
    connection.pgconn.finish()
    raise psycopg.OperationalError("the connection is lost")


def _disturbed(
    run: Callable[[], object], number: int, disturb: Callable[[BaseConnection[Any]], None]
) -> object:
    passed = 0

    def counted(connection: BaseConnection[Any], statement: str, moment: str) -> None:
        nonlocal passed
        passed += 1
        if passed - 1 == number:
            disturb(connection)

    with watched(counted):
        return run()


class _Line:
    """A line to a helper in this process, over its folder."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Nothing is open."""

    def answer(self, task: Task) -> Answer:
        leaders = frozenset({LEADER.public_key().public_bytes_raw()})
        policy = HelperPolicy(
            leaders=leaders, least_reports=2, least_noise=0.0, offers_a_day=1_000_000
        )
        with opened(self._path, time.time()) as folder:
            return Helper(folder.identity, folder.book, policy).answer(task)


class Seen(NamedTuple):
    """What the database holds of a phase; bytes as hexadecimal digits.

    Attributes:
        step: name of the present step.
        ending: what phones are told, once it is over.
        steps: of each step, how many answers were expected and came.
        left: answers and tasks that were not erased.
    """

    step: str
    ending: str
    steps: list[list[int]]
    left: int


@dataclass(frozen=True)
class Stage:
    """The processes of a leader of one phase, each as a function that a fork runs.

    Attributes:
        url: of the database, which is migrated.
        path: folder of the helper.
    """

    url: str
    path: Path

    @property
    def helper(self) -> bytes:
        """Identity of the helper."""
        with closing(HelperFolder.make(self.path).database) as database:
            ((identity,),) = database.rows("SELECT identity FROM helper")
        return bytes(identity)

    def line(self) -> Any:
        """A line to the helper, which is in the process that asks."""
        return _Line(self.path)

    def gathered(self, parameters: Parameters) -> str:
        """Let as many phones join as are wanted, and return the phase."""
        phase = os.urandom(16)
        with closing(Database(self.url)) as database:
            registry = Registry(database)
            registry.gather(phase, parameters, 2, database.now() + 1000.0)
            for _ in range(parameters.phones):
                registry.join(phase, registry.enrol(os.urandom(32), bytes(16), 10**6))
        return phase.hex()

    def driven(self, phase: str, step: str | tuple[str, ...]) -> None:
        """Drive the phase until it is at a step, or at one of several."""
        with closing(Database(self.url)) as database:
            keys = LeaderKeys(LEADER, self.helper, arithmetic=fastest)
            errands = HelperErrands(database, keys, self.line, os.urandom(8).hex())
            driver = Driver(database, Optics(), 1e6, errands=errands)
            driver._purged = time.monotonic()  # it would write while an errand does

            def there() -> bool:
                try:
                    before = _step(database, phase)
                    driver.turn()
                    for thread in threading.enumerate():
                        if thread.name == "errand":
                            thread.join()
                    after = _step(database, phase)
                except DatabaseUnavailableError:  # the driver's loop waits, too
                    return False
                if after == before:
                    self.wait_for_leases()
                return after.endswith(step)

            await_(there, str(step))

    def wait_for_leases(self) -> None:
        """Let the time pass after which others take over, and after which all is tried again."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(_TIME_PASSES)

    def tasks(self, phase: str, phones: Iterable[int]) -> dict[str, str]:
        """Return what the web worker tells phones."""
        with closing(Database(self.url)) as database:
            coordinator = _coordinator(database, phase)
            return {str(phone): encode(coordinator.task_for(phone)).hex() for phone in phones}

    def taken(self, phase: str, answers: Mapping[int, bytes]) -> None:
        """Let the web worker take the answers of phones, each of which sends until it is heard."""
        with closing(Database(self.url)) as database:
            coordinator = _coordinator(database, phase)
            for phone, answer in answers.items():

                def sent(phone: int = phone, answer: bytes = answer) -> bool:
                    try:
                        coordinator.accept(phone, decode_answer(answer))
                    except DatabaseUnavailableError:
                        return False
                    return True

                await_(sent, "the database")

    def seen(self, phase: str) -> Seen:
        """Return what there is of the phase."""
        with psycopg.connect(self.url, autocommit=True) as connection:

            def rows(query: str) -> list[tuple[Any, ...]]:
                return connection.execute(
                    query.encode(), {"phase": bytes.fromhex(phase)}
                ).fetchall()

            found = rows("SELECT step, over, common FROM phases WHERE phase = %(phase)s")
            step, over, common = found[0] if found else ("", False, b"")
            steps = rows(
                "SELECT expected, answered FROM steps WHERE phase = %(phase)s ORDER BY number"
            )
            ((left,),) = rows(
                "SELECT (SELECT count(*) FROM answers WHERE phase = %(phase)s)"
                " + (SELECT count(*) FROM tasks WHERE phase = %(phase)s)"
            )
        return Seen(step, common.hex() if over else "", [list(each) for each in steps], left)

    def keys(self) -> list[str]:
        """Names of the keys that the helper holds."""
        return [each.name for each in (self.path / "keys").iterdir() if ".key" in each.name]


def _step(database: Database, phase: str) -> str:
    rows = database.query("SELECT step FROM phases WHERE phase = %s", (bytes.fromhex(phase),))
    return str(rows[0][0]) if rows else ""


def _coordinator(database: Database, phase: str) -> Coordinator:
    return Coordinator(PostgresPhaseStore(database), None, bytes.fromhex(phase))
