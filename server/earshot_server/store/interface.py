"""What a coordinator asks of its store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from earshot_protocol.errors import WrongStateError
from earshot_protocol.secure_sum.interface import Saved


class StepTakenError(WrongStateError):
    """Somebody else has opened the next step, or is about to: what was done here is discarded."""


@dataclass(frozen=True)
class PresentStep:
    """One step of a phase, as everyone who talks to phones must know it.

    Attributes:
        number: of the step within its phase: 0 for the first, and one more with every replacement.
        name: for people.
        deadline: seconds since 1970, on the store's clock.
        expected: how many phones have a task.
        common: the task of every phone that has none of its own, encoded; empty if there is none.
        sum: parameters of the secure sum under way, encoded; empty if there is none.
        over: whether the phase is over, so that nothing is expected any more.
        wait: seconds after which a phone that has nothing to do asks again.
    """

    number: int
    name: str
    deadline: float
    expected: int
    common: bytes = b""
    sum: bytes = b""
    over: bool = False
    wait: float = 60.0


@dataclass(frozen=True)
class Assignment:
    """What a store knows of one phone in the present step.

    Attributes:
        step: the step.
        closed: whether the step takes no more answers.
        task: the phone's own task, encoded; None if it has none of its own.
        answered: whether its answer is in.
    """

    step: PresentStep
    closed: bool
    task: bytes | None
    answered: bool


class PhaseStore(Protocol):
    """Keeps phases: for each, a snapshot, the present step with its tasks, and its answers.

    All that leads from one step to the next is one atomic change, so that a coordinator which dies
    at any point is rebuilt without loss. Any number of processes may use one store.

    Where there is no such phase, every method but `create` raises `InvalidInputError`.
    """

    def create(
        self, phase: bytes, snapshot: Saved, step: PresentStep, tasks: Iterable[tuple[int, bytes]]
    ) -> None:
        """Add a phase, with the tasks (phone, encoded task) of its first step.

        Raises:
            InvalidInputError: the phase exists.
        """

    def phases(self) -> tuple[bytes, ...]:
        """All phases, oldest first."""

    def present_step(self, phase: bytes) -> PresentStep:
        """The present step."""

    def snapshot(self, phase: bytes) -> tuple[int, Saved]:
        """The number of the present step, and the snapshot taken at its start."""

    def assignment(self, phase: bytes, phone: int) -> Assignment:
        """What the phone is to do in the present step, and whether it has."""

    def add_answer(self, phase: bytes, number: int, phone: int, answer: bytes) -> None:
        """Keep an answer to step `number`; durable when this returns.

        The same answer once more is acknowledged and changes nothing.

        Raises:
            UnexpectedMessageError: the step is closed, or another one is open.
            RepeatedMessageError: the phone has given another answer to this step.
        """

    def answer_count(self, phase: bytes) -> int:
        """How many phones have answered the present step."""

    def close(self, phase: bytes, number: int) -> None:
        """Take no more answers to step `number`; nothing happens if another one is open."""

    def answers(self, phase: bytes) -> Iterator[tuple[int, bytes]]:
        """The answers to the present step: (phone, answer), in order of arrival.

        They are those of the time of the call, read as they are asked for, so that few of them are
        in memory at a time. What is taken back meanwhile may be left out.
        """

    def replace(
        self, phase: bytes, snapshot: Saved, step: PresentStep, tasks: Iterable[tuple[int, bytes]]
    ) -> None:
        """Open the next step: new snapshot and tasks; those of the last step and its answers go.

        Tasks are taken one by one and may be made meanwhile; if making one raises, nothing happens.

        Raises:
            StepTakenError: the present step is not number `step.number` - 1: somebody else
                has opened the next one.
        """
