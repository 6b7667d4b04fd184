"""Storage of the phase of `closing` between the processes that work on it."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Protocol

import msgspec

from earshot_protocol.overriding import override
from earshot_protocol.phases.parameters import Parameters
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.database import Database
from earshot_server.store.interface import PhaseStore, PresentStep
from earshot_server.store.memory import MemoryPhaseStore
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_simulations.benchmarks.api.server import database_process
from earshot_simulations.benchmarks.api.usage import cpu_seconds, family

_HEADER = struct.Struct(">QQ")
_READ_TOGETHER = 1000
_STEP, _SNAPSHOT, _TASKS, _ANSWERS = "step", "snapshot", "tasks", "answers"

Entries = Iterable[tuple[int, bytes]]


class Ground(Protocol):
    """A holder of one phase that can be sent to another process."""

    def begin(self, parameters: Parameters) -> bytes:
        """Start a phase, and return its identifier."""

    def common(self) -> bytes:
        """Return the encoded task of all phones in the first step."""

    def tasks(self) -> Iterator[tuple[int, bytes]]:
        """Yield each phone's encoded task of the present step."""

    def give(self, answers: Entries) -> None:
        """Add phones' encoded answers to the present step."""

    @contextmanager
    def opened(self) -> Iterator[PhaseStore]:
        """Open a store that holds the phase."""

    def keep(self, store: PhaseStore, phase: bytes) -> None:
        """Hold the present contents of the store."""

    def database_cpu_seconds(self) -> float:
        """Return the CPU seconds that the database's processes have spent so far."""


class InFiles(Ground):
    """A ground for a store in memory, whose contents lie in files in between.

    Args:
        folder: Folder for the files.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._phase = b""

    @override
    def begin(self, parameters: Parameters) -> bytes:
        store = MemoryPhaseStore()
        self._phase = Coordinator.start(store, Optics(), parameters, 0.0).phase
        self.keep(store, self._phase)
        return self._phase

    @override
    def common(self) -> bytes:
        return self._step().common

    @override
    def tasks(self) -> Iterator[tuple[int, bytes]]:
        return self._entries(_TASKS)

    @override
    def give(self, answers: Entries) -> None:
        with (self._folder / _ANSWERS).open("wb") as file:
            for each in answers:
                _write(file, each)

    @override
    @contextmanager
    def opened(self) -> Iterator[PhaseStore]:
        store, step = MemoryPhaseStore(), self._step()
        snapshot = (self._folder / _SNAPSHOT).read_bytes()
        store.create(self._phase, snapshot, step, self.tasks())
        del snapshot
        for phone, answer in self._entries(_ANSWERS):
            store.add_answer(self._phase, step.number, phone, answer)
        yield store

    @override
    def keep(self, store: PhaseStore, phase: bytes) -> None:
        step, (_, snapshot) = store.present_step(phase), store.snapshot(phase)
        (self._folder / _STEP).write_bytes(msgspec.msgpack.encode(step))
        (self._folder / _SNAPSHOT).write_bytes(snapshot)
        phones = msgspec.msgpack.decode(step.sum)["phones"]
        with (self._folder / _TASKS).open("wb") as file:
            for phone in range(phones):
                task = store.assignment(phase, phone).task
                if task is not None:
                    _write(file, (phone, task))
        (self._folder / _ANSWERS).write_bytes(b"")

    @override
    def database_cpu_seconds(self) -> float:
        return 0.0

    def _step(self) -> PresentStep:
        return msgspec.msgpack.decode((self._folder / _STEP).read_bytes(), type=PresentStep)

    def _entries(self, name: str) -> Iterator[tuple[int, bytes]]:
        with (self._folder / name).open("rb") as file:
            while header := file.read(_HEADER.size):
                phone, size = _HEADER.unpack(header)
                yield phone, file.read(size)


def _write(file: BinaryIO, entry: tuple[int, bytes]) -> None:
    file.write(_HEADER.pack(entry[0], len(entry[1])) + entry[1])


class OnPostgres(Ground):
    """A ground for a store on PostgreSQL, which holds the phase throughout.

    Args:
        url: URL of the database.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._phase = b""

    @contextmanager
    def _database(self) -> Iterator[Database]:
        database = Database(self._url)
        try:
            yield database
        finally:
            database.close()

    @override
    def begin(self, parameters: Parameters) -> bytes:
        with self._database() as database:
            database.migrate()
            store = PostgresPhaseStore(database)
            self._phase = Coordinator.start(store, Optics(), parameters, 0.0).phase
        return self._phase

    @override
    def common(self) -> bytes:
        with self._database() as database:
            return PostgresPhaseStore(database).present_step(self._phase).common

    @override
    def tasks(self) -> Iterator[tuple[int, bytes]]:
        last = -1
        with self._database() as database:
            while rows := database.query(
                "SELECT phone, task FROM tasks WHERE phase = %s AND phone > %s"
                " ORDER BY phone LIMIT %s",
                (self._phase, last, _READ_TOGETHER),
            ):
                yield from rows
                last = rows[-1][0]

    @override
    def give(self, answers: Entries) -> None:
        with self._database() as database, database.transaction() as connection:
            number = PostgresPhaseStore(database).present_step(self._phase).number
            statement = "COPY answers (phase, number, phone, answer) FROM STDIN (FORMAT BINARY)"
            with connection.cursor().copy(statement) as copy:
                copy.set_types(["bytea", "int4", "int8", "bytea"])
                for phone, answer in answers:
                    copy.write_row((self._phase, number, phone, answer))

    @override
    @contextmanager
    def opened(self) -> Iterator[PhaseStore]:
        with self._database() as database:
            yield PostgresPhaseStore(database)

    @override
    def keep(self, store: PhaseStore, phase: bytes) -> None:
        """Do nothing: the database already holds the phase."""

    @override
    def database_cpu_seconds(self) -> float:
        """Return the CPU seconds of the database's processes, ended ones included."""
        import psutil

        first = psutil.Process(database_process(self._url))
        ended = first.cpu_times()
        alive = sum(map(cpu_seconds, family(first)))
        return float(alive + ended.children_user + ended.children_system)
