"""The plan of a phase: parts that follow one another, each answered by phones in one or more steps.

Phone and server derive the same plan from a phase's parameters. A part is either a `LocalRelease`,
in which every phone sends one answer in the clear that it made private itself, or a `SecureSum`, in
the rounds of its summation. A step is one round of one part. The plan says what a step releases,
and when that leaves the phone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import msgspec

from earshot_protocol.errors import UnexpectedMessageError
from earshot_protocol.privacy.accounting import Expense, Release, expenses
from earshot_protocol.privacy.local_mechanisms import held_by
from earshot_protocol.privacy.mechanisms import Mechanism, SumMechanism
from earshot_protocol.secure_sum.interface import Asks, SummationName
from earshot_protocol.summations import SUMMATIONS, Opening
from earshot_protocol.wire import Answer, Ending, Identifier, PhoneIndex, Task, canonical

PUBLISHED = "published"
"""State of a phase that has a result."""
FAILED = "failed"
"""State of a phase that ended without a result."""


class _PartTask(Task, frozen=True, kw_only=True):
    """Task that begins a part of a phase; that of the first part has the phase's `parameters`."""

    phase: Identifier


class ReleaseTask(_PartTask, frozen=True, kw_only=True):
    """Task that begins a `LocalRelease`."""

    repetition: ClassVar[int] = 0

    index: PhoneIndex

    def for_phone(self, phone: int) -> ReleaseTask:
        """Return the same task for the phone of that number."""
        return msgspec.structs.replace(self, index=phone)

    def check_answer(self, phone: int, answer: Answer) -> None:
        """Refuse an answer that does not fit this task.

        Args:
            phone: Sender of the answer, as authenticated by the caller.
            answer: Answer of any type.

        Raises:
            UnexpectedMessageError: The answer is of another phase or step, or in another's name.
            MalformedMessageError: Sizes or fields contradict the task.
        """
        if not isinstance(answer, ReleaseAnswer) or answer.phase != self.phase:
            raise UnexpectedMessageError(f"phone {phone}: an answer to another phase or step")
        if answer.sender != phone:
            raise UnexpectedMessageError(f"phone {phone}: an answer in the name of {answer.sender}")


class SumPartTask(_PartTask, frozen=True, kw_only=True):
    """Task that begins a `SecureSum`: it holds the first task of its summation."""

    if TYPE_CHECKING:  # every message declares it, in the order of its fields on the wire
        opening: Opening = msgspec.field(name="advertise")

    @property
    def repetition(self) -> int:
        """Index of this part among the plan's parts that begin with this type of task, from 0."""
        return 0

    @property
    def index(self) -> int:
        """Number of the phone."""
        return self.opening.index

    def told(self, parameters: msgspec.Struct) -> bytes:
        """Return the bytes that must be the same for all phones of the sum: see `Participant`.

        Args:
            parameters: Parameters of the phase.
        """
        alike = msgspec.structs.replace(self, opening=self.opening.told_alike)
        return canonical(parameters) + canonical(alike)

    def for_phone(self, phone: int) -> SumPartTask:
        """Return the same task for the phone of that number."""
        return msgspec.structs.replace(self, opening=self.opening.for_phone(phone))


PartTask = ReleaseTask | SumPartTask


class ReleaseAnswer(Answer, frozen=True, kw_only=True):
    """Answer to a `ReleaseTask`."""

    phase: Identifier
    sender: PhoneIndex


class Outcome(Ending, frozen=True, kw_only=True):
    """Published result of a phase, with the privacy that it cost."""

    if TYPE_CHECKING:  # every message declares it, in the order of its fields on the wire
        privacy: tuple[Release, ...]


class Step(NamedTuple):
    """One round of one part.

    Attributes:
        name: Name of the step, for people and in stores.
        part: Name of the part.
        asks: Parties that the step asks.
        releases: Private steps whose results leave the phone with its answer.
        keeps_answers: Whether its answers are needed once more, at the end of the next step.
    """

    name: str
    part: str
    asks: Asks
    releases: tuple[str, ...]
    keeps_answers: bool = False


@dataclass(frozen=True)
class LocalRelease:
    """A part in which every phone sends one answer in the clear, made private on the phone.

    Attributes:
        name: Name of the part, and of its one step.
        task: Type of task that begins the part.
        mechanisms: Mechanisms of the private steps behind an answer, by name.
    """

    name: str
    task: type[ReleaseTask]
    mechanisms: Mapping[str, Mechanism]
    repetition: ClassVar[int] = 0

    @property
    def steps(self) -> tuple[Step, ...]:
        """The only step."""
        return (Step(self.name, self.name, Asks.EVERYONE, tuple(self.mechanisms)),)


@dataclass(frozen=True)
class SecureSum:
    """A part in which phones send inputs, and only their sum is revealed, with noise.

    Attributes:
        name: Name of the part, and of its private step.
        task: Type of task that begins the part.
        mechanism: Mechanism of the sum, whose noise the phones share or the operators add.
        repetition: Repetition of the task, which tells parts of the same type apart.
    """

    name: str
    task: type[SumPartTask]
    mechanism: SumMechanism
    repetition: int = 0

    @property
    def summation(self) -> SummationName:
        """Summation that has such noise: with phones' shares, or with operators' whole noise."""
        shared = self.mechanism.honest_survivors is not None
        return SummationName.BELL if shared else SummationName.TWO_OPERATORS

    @property
    def mechanisms(self) -> Mapping[str, Mechanism]:
        """The only mechanism, by the part's name."""
        return {self.name: self.mechanism}

    @property
    def steps(self) -> tuple[Step, ...]:
        """One step for each round; the noisy input leaves the phone in one of them."""
        return tuple(
            Step(
                f"{self.name}: {each.name}",
                self.name,
                each.asks,
                (self.name,) if each.carries_input else (),
                each.keeps_answers,
            )
            for each in SUMMATIONS[self.summation].rounds
        )

    def carries_input(self, current: str) -> bool:
        """Return whether the phones' inputs leave them in the round of this name."""
        rounds = SUMMATIONS[self.summation].rounds
        return any(each.carries_input for each in rounds if each.name == current)


Part = LocalRelease | SecureSum


@dataclass(frozen=True)
class Plan:
    """The parts of a phase, in order.

    Attributes:
        parts: Parts of the phase, at least one.
    """

    parts: tuple[Part, ...]

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """Steps of all parts, in each of which phones answer."""
        return tuple(step for part in self.parts for step in part.steps)

    @property
    def mechanisms(self) -> dict[str, Mechanism]:
        """Mechanism of every private step, in order, by the step's name."""
        return {name: each for part in self.parts for name, each in part.mechanisms.items()}

    def part(self, name: str) -> Part:
        """Return the part of that name.

        Raises:
            UnexpectedMessageError: There is no such part.
        """
        for part in self.parts:
            if part.name == name:
                return part
        raise UnexpectedMessageError(f"this kind of phase has no part '{name}'")

    def part_of(self, task: PartTask) -> Part:
        """Return the part that the task begins.

        Raises:
            UnexpectedMessageError: There is no such part.
        """
        for part in self.parts:
            if isinstance(task, part.task) and task.repetition == part.repetition:
                return part
        raise UnexpectedMessageError(
            f"{type(task).__name__} in a phase that has no such part: its parts are "
            f"{', '.join(part.name for part in self.parts)}"
        )

    def released_in(self, name: str) -> Step | None:
        """Return the step in which the release of this private step leaves the phones."""
        return next((step for step in self.steps if name in step.releases), None)

    def step(self, name: str) -> Step | None:
        """Return the step of that name; None where phones are not asked."""
        return next((step for step in self.steps if step.name == name), None)

    def asks_helper(self, name: str) -> bool:
        """Return whether the step of that name asks the helper, and no phone."""
        found = self.step(name)
        return found is not None and found.asks is Asks.HELPER

    def after(self, step: Step) -> Step | None:
        """Return the step that follows; None after the last."""
        place = self.steps.index(step) + 1
        return self.steps[place] if place < len(self.steps) else None

    def expenses(self, recordings: int | None = None) -> tuple[Expense, ...]:
        """Return everything that a phase of this plan releases, in each unit.

        Args:
            recordings: Recordings of the releasing phone, for its own accounts (`held_by`); None
                for what is published, which counts the phase's nominal number.
        """
        return tuple(
            expense
            for name, each in self.mechanisms.items()
            for expense in expenses(name, each if recordings is None else held_by(each, recordings))
        )

    def releases(self) -> tuple[Release, ...]:
        """Return everything that is released, in the form in which it is published."""
        return tuple(expense.release for expense in self.expenses())
