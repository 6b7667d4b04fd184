"""Interface between a coordinator and its store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from earshot_protocol.errors import WrongStateError
from earshot_protocol.secure_sum.interface import Saved


class StepTakenError(WrongStateError):
    """Another process is moving the phase on; the work done here is discarded."""


@dataclass(frozen=True)
class PresentStep:
    """Present step of a phase, with what processes need to serve phones.

    Attributes:
        number: Number of the step within its phase, from 0; incremented by every replacement.
        name: Name of the step, for people.
        deadline: End of the step in seconds since 1970, on the store's clock.
        expected: Number of phones that have a task.
        common: Task of every phone without its own, encoded; empty if there is none.
        sum: Parameters of the secure sum under way, encoded; empty if there is none.
        over: Whether the phase is over.
        wait: Seconds after which a phone without a task asks again.
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
    """Assignment of one phone in the present step.

    Attributes:
        step: The present step.
        closed: Whether the step accepts no more answers.
        task: The phone's own task, encoded; None if it has none.
        answered: Whether the phone has answered.
    """

    step: PresentStep
    closed: bool
    task: bytes | None
    answered: bool


class PhaseStore(Protocol):
    """Store of phases: for each, a snapshot, the present step with its tasks, and its answers.

    A step is replaced by the next in one atomic change, so that a coordinator that dies at any
    point can be rebuilt without loss. Any number of processes may use one store.

    If there is no such phase, every method except `create` raises `InvalidInputError`.
    """

    def create(
        self, phase: bytes, snapshot: Saved, step: PresentStep, tasks: Iterable[tuple[int, bytes]]
    ) -> None:
        """Add a phase, with the tasks (phone, encoded task) of its first step.

        Raises:
            InvalidInputError: The phase exists.
        """

    def phases(self) -> tuple[bytes, ...]:
        """Return all phases, oldest first."""

    def present_step(self, phase: bytes) -> PresentStep:
        """Return the present step."""

    def snapshot(self, phase: bytes) -> tuple[int, Saved]:
        """Return the number of the present step, and the snapshot taken at its start."""

    def assignment(self, phase: bytes, phone: int) -> Assignment:
        """Return the phone's task in the present step, and whether it has answered."""

    def add_answer(self, phase: bytes, number: int, phone: int, answer: bytes) -> None:
        """Store an answer to step `number`; it is durable when this returns.

        Repeating the same answer is acknowledged and changes nothing.

        Raises:
            UnexpectedMessageError: The step is closed, or another one is open.
            RepeatedMessageError: The phone has already given another answer to this step.
        """

    def answer_count(self, phase: bytes) -> int:
        """Return how many phones have answered the present step."""

    def close(self, phase: bytes, number: int) -> None:
        """Accept no more answers to step `number`; do nothing if another one is open."""

    def answers(self, phase: bytes) -> Iterator[tuple[int, bytes]]:
        """Return the answers to the present step: (phone, answer), in order of arrival.

        These are the answers present at the call, read lazily, so that few of them are in memory
        at a time. Answers deleted in the meantime may be left out.
        """

    def kept_answers(self, phase: bytes) -> Iterator[tuple[int, bytes]]:
        """Return the kept answers to the previous step.

        They are never deleted singly, since the helper has a list of them.
        """

    def replace(
        self,
        phase: bytes,
        snapshot: Saved,
        step: PresentStep,
        tasks: Iterable[tuple[int, bytes]],
        *,
        keep_answers: bool = False,
    ) -> None:
        """Open the next step with a new snapshot and tasks; delete the last ones and the answers.

        With `keep_answers`, the answers to the present step are kept until the next one ends.

        Tasks are consumed lazily; if the iterator raises, nothing changes.

        Raises:
            StepTakenError: The present step is not number `step.number` - 1: another process has
                opened the next one.
        """
