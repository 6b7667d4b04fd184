"""A phone that is killed between any two writes of its file, and at chance instants, in every step.

`python -m support.killed_phone KIND FOLDER [FAULT]` plays a phase of that kind with real summation:
eleven phones in memory, and one in a file, whose process is killed at every write of every step
before it may go on. It prints what it saw as JSON. It forks, so it is a process of its own.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.memory import MemoryStore
from earshot_client.store.sealed_file import SealedFile
from earshot_protocol.messages import decode_answer
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.privacy.ledger import Ledger
from earshot_protocol.wire import Answer, Task, encode
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore
from support import discovery_phase, played_phase
from support.kills import in_child
from support.parameters import statistics_parameters
from support.points import HeardPoints
from support.policies import without_budget

Steps = tuple[tuple[str, str, str], ...]
"""Of a ledger: step, unit and ε."""

KEY = bytes(range(32))
CLASSES = ("bus", "park")
KINDS: dict[str, Parameters] = {
    "learning": played_phase.PARAMETERS,
    "statistics": statistics_parameters(phones=12, dropout=0.25, labels=CLASSES),
    "discovery": discovery_phase.parameters(),
}
VICTIM = 0
INSTANTS = 6
"""Kills at chance instants of each step, also in the midst of what SQLite writes."""
_WRITES = (
    *("INSERT", "UPDATE", "DELETE", "CREATE"),
    *("SAVEPOINT", "RELEASE", "ROLLBACK", "BEGIN", "COMMIT"),
)


class Seen(msgspec.Struct):
    """What became of all kills.

    Attributes:
        kills: how many there were.
        unpaid: kills after which a step that releases had not been entered into the ledger.
        paid: kills after which it had, and no answer had left.
        wrong: what should never be.
        ledger: steps, as the phone's ledger has them in the end.
        planned: the same, as the plan has them.
    """

    kills: int = 0
    unpaid: int = 0
    paid: int = 0
    wrong: list[str] = msgspec.field(default_factory=list)
    ledger: list[tuple[str, str, str]] = msgspec.field(default_factory=list)
    planned: list[tuple[str, str, str]] = msgspec.field(default_factory=list)


class LatePhone(Phone):
    """A planted fault: it enters a release into its ledger once the answer is kept, not with it."""

    def answer(self, task: Task) -> Answer | None:
        held: list[Any] = []
        record = self._record
        self._record = lambda *what: held.append(what)  # type: ignore[method-assign]
        answer = super().answer(task)
        self._record = record  # type: ignore[method-assign]
        for what in held:
            with self._store.transaction():
                self._record(*what)
        return answer


class ForgetfulPhone(Phone):
    """A planted fault: it does not keep what it answered."""

    def answer(self, task: Task) -> Answer | None:
        answer = super().answer(task)
        self._store.delete("answered")
        return answer


PHONES = {"": Phone, "late": LatePhone, "forgetful": ForgetfulPhone}


class Chance:
    """The system's randomness, which counts what is drawn."""

    def __init__(self) -> None:
        self.drawn = 0

    def __call__(self, size: int) -> bytes:
        self.drawn += size
        return os.urandom(size)


class Victim:
    """The phone in a file."""

    def __init__(self, folder: Path, fault: str) -> None:
        self.path, self._saved = folder / "phone.db", folder / "saved"
        self._kind = PHONES[fault]
        self.seen = Seen()
        points, choices = _heard(VICTIM)
        with closing(self._store()) as store:
            for point, choice in zip(points, choices, strict=True):
                store.label(store.add(point), choice)

    def answer(self, task: Task, releases: bool) -> bytes:
        """Answer a task, after being killed at every write; what is checked goes into `seen`."""
        self._saved.mkdir()
        for file in self.path.parent.glob("phone.db*"):
            shutil.copy2(file, self._saved)
        for killing in self._killings(task):
            self._restore()
            before = self._ledger()
            left = self._killed(task, *killing)
            answer = self._resumed(task, before, left, releases)
            self.seen.kills += 1
        shutil.rmtree(self._saved)
        self._expect(answer != b"", "a step without an answer")
        return answer

    def _killings(self, task: Task) -> Iterator[tuple[int, float]]:
        """Before which write, or after how many seconds, to kill; ends with none."""
        self._restore()
        began = time.perf_counter()
        writes = self._count(task)
        seconds = time.perf_counter() - began
        for fraction in np.linspace(0.3, 1.0, INSTANTS):
            yield sys.maxsize, float(fraction) * seconds
        for write in range(writes + 2):  # the last one kills nobody
            yield write, 0.0

    def _restore(self) -> None:
        for file in self.path.parent.glob("phone.db*"):
            file.unlink()
        for file in self._saved.iterdir():
            shutil.copy2(file, self.path.parent)

    def _count(self, task: Task) -> int:
        """How many writes it takes, in a process of its own."""
        written = count()

        def answer() -> int:
            _before_each_write(lambda: next(written))
            self._phone().answer(task)
            return next(written)

        return int(in_child(answer)[1])

    def _killed(self, task: Task, write: int, seconds: float) -> bytes:
        """What leaves a process that is killed before this write, or after so many seconds."""
        written = count()

        def die_in_time() -> None:
            if next(written) == write:
                os.kill(os.getpid(), signal.SIGKILL)

        def answer() -> str:
            _before_each_write(die_in_time)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends a process at once
            signal.setitimer(signal.ITIMER_REAL, seconds)
            answer = self._phone().answer(task)
            die_in_time()  # all is written, and nothing has left
            return "" if answer is None else encode(answer).hex()

        _, left = in_child(answer)
        return bytes.fromhex(left or "")

    def _resumed(self, task: Task, before: Steps, left: bytes, releases: bool) -> bytes:
        """Open the file again, and answer the same task: the ledger tells what may happen."""
        opened, chance = self._ledger(), Chance()
        grown = opened != before
        self.seen.paid += releases and grown and not left
        self.seen.unpaid += releases and not grown
        self._expect(opened[: len(before)] == before, "an entry was lost")
        self._expect(releases or not grown, "a step that releases nothing was paid for")
        if releases and left:
            self._expect(grown, "an answer left before its entry was kept")
        with self._phone(chance) as phone:
            try:
                answer = phone.answer(task)
            except Exception as error:
                self._expect(False, f"it cannot go on: {error}")
                return left
        sent = b"" if answer is None else encode(answer)
        if grown or left:
            self._expect(chance.drawn == 0, "noise was drawn anew for what was released")
            self._expect(not left or sent == left, "two answers to one task")
        after = self._ledger()
        self._expect(not grown or after == opened, "a release was paid for twice")
        self._expect(len(set(after)) == len(after), "a step stands twice in the ledger")
        self._expect((after != before) == releases, "a release was not paid for")
        return sent

    def _expect(self, right: bool, otherwise: str) -> None:
        if not right and otherwise not in self.seen.wrong:
            self.seen.wrong.append(otherwise)

    def _phone(self, random: Chance | None = None) -> Phone:
        return self._kind(
            self._store(),
            HeardPoints("points", 2),
            without_budget(least_phones=3),
            hierarchy=LabelHierarchy.flat(CLASSES),
            random=random or os.urandom,
        )

    def _store(self) -> EncryptedStore:
        return EncryptedStore(self.path, KEY, dimensions=2)

    def _ledger(self) -> Steps:
        """What the file says that was released; its chain and its length are checked."""
        with closing(self._store()) as store:
            entries = Ledger(store.ledger()).export()
        return tuple((each["step"], each["unit"], str(each["epsilon"])) for each in entries)


def play(kind: str, folder: Path, fault: str = "") -> Seen:
    """A whole phase with the one phone that is killed."""
    parameters = KINDS[kind]
    coordinator = Coordinator.start(MemoryPhaseStore(), Optics(), parameters, now=0.0)
    others = {number: _other(number) for number in range(1, parameters.phones)}
    victim = Victim(folder, fault)
    while coordinator.missing():
        step = parameters.plan().step(coordinator.step)
        assert step is not None
        for number, phone in others.items():
            answer = phone.answer(coordinator.task_for(number))
            if answer is not None:
                coordinator.accept(number, answer)
        sent = victim.answer(coordinator.task_for(VICTIM), bool(step.releases))
        coordinator.accept(VICTIM, decode_answer(sent))
        assert coordinator.advance(0.0)
    seen = victim.seen
    seen.ledger = list(victim._ledger())
    seen.planned = [
        (each.release.step, each.release.unit.value, str(each.release.epsilon))
        for each in parameters.plan().expenses(0)
    ]
    return seen


def _heard(number: int) -> tuple[np.ndarray, list[str]]:
    random = np.random.default_rng([81, number])
    scenes = np.arange(8) % 2
    points = played_phase.CENTRES[scenes] + random.normal(0, 0.05, (8, 2))
    return points.astype(np.float32), [CLASSES[scene] for scene in scenes]


def _other(number: int) -> Phone:
    points, choices = _heard(number)
    return Phone(
        MemoryStore(points, choices),
        HeardPoints("points", 2),
        without_budget(least_phones=3),
        hierarchy=LabelHierarchy.flat(CLASSES),
    )


def _before_each_write(act: Any) -> None:
    """Call `act` before every statement that writes, in this process."""
    run = SealedFile.rows

    def rows(self: SealedFile, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        if statement.startswith(_WRITES):
            act()
        return run(self, statement, *values)

    SealedFile.rows = rows  # type: ignore[method-assign]


if __name__ == "__main__":
    print(
        msgspec.json.encode(play(sys.argv[1], Path(sys.argv[2]), *(sys.argv[3:] or [""]))).decode()
    )
