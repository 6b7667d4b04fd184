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
    """One step of a phase, as every process that talks to phones must know it.

    Attributes:
        number: Number of the step within its phase, from 0; one more with every replacement.
        name: Name of the step, for people.
        deadline: End of the step in seconds since 1970, on the store's clock.
        expected: Phones that have a task.
        common: Task of every phone without one of its own, encoded; empty if there is none.
        sum: Parameters of the secure sum under way, encoded; empty if there is none.
        over: Whether the phase is over, so that nothing is expected any more.
        wait: Seconds after which a phone that has nothing to do asks again.
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
    """Assignment of one phone in the present step, as a store knows it.

    Attributes:
        step: The present step.
        closed: Whether the step takes no more answers.
        task: Task of the phone's own, encoded; None if it has none.
        answered: Whether the phone's answer is in.
    """

    step: PresentStep
    closed: bool
    task: bytes | None
    answered: bool


class PhaseStore(Protocol):
    """Store of phases: for each, a snapshot, the present step with its tasks, and its answers.

    Going from one step to the next is a single atomic change, so that a coordinator that dies at
    any point is rebuilt without loss. Any number of processes may use one store.

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
        """Return what the phone is to do in the present step, and whether it has done it."""

    def add_answer(self, phase: bytes, number: int, phone: int, answer: bytes) -> None:
        """Keep an answer to step `number`; it is durable when this returns.

        Repeating the same answer is acknowledged and changes nothing.

        Raises:
            UnexpectedMessageError: The step is closed, or another one is open.
            RepeatedMessageError: The phone has given another answer to this step.
        """

    def answer_count(self, phase: bytes) -> int:
        """Return how many phones have answered the present step."""

    def close(self, phase: bytes, number: int) -> None:
        """Take no more answers to step `number`; do nothing if another one is open."""

    def answers(self, phase: bytes) -> Iterator[tuple[int, bytes]]:
        """Return the answers to the present step: (phone, answer), in order of arrival.

        They are those present at the call, read one by one as requested, so that few of them are in
        memory at a time. Answers taken back meanwhile may be left out.
        """

    def kept_answers(self, phase: bytes) -> Iterator[tuple[int, bytes]]:
        """Return the kept answers to the previous step.

        Nothing takes one of them back, since somebody else has a list of them.
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
        """Open the next step with a new snapshot and tasks; the last ones and the answers go.

        With `keep_answers`, those to the step that ends stay until the next one ends.

        Tasks are taken one by one and may be made meanwhile; if making one raises, nothing changes.

        Raises:
            StepTakenError: The present step is not number `step.number` - 1: another process has
                opened the next one.
        """
