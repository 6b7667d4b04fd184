"""Interface of every secure summation: its rounds, the phone's side and the server's.

Both sides are objects without I/O or clock: tasks in, answers out, and a state that can be saved
between any two of them. A summation is a value, so that a second one is a second value and not a
second branch.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.messages import SumAnswer, SumTask
from earshot_protocol.wire import Answer

HELPER = -1
"""Number of the helper of a sum by two operators; no phone has it."""


class SummationName(enum.StrEnum):
    """Protocols by which phones' inputs are added up; a phase's parameters name one."""

    BELL = "bell"
    """Phones mask their inputs for each other, and add shares of the noise."""
    TWO_OPERATORS = "two-operators"
    """Phones split inputs, which they prove, between two operators, which add the noise."""
    TWO_OPERATORS_UNPROVED = "two-operators-unproved"
    """The same without proofs: one phone may put in anything, and nobody can tell."""

    @property
    def by_operators(self) -> bool:
        """Whether two operators add up the inputs and add the noise."""
        return self is not SummationName.BELL

    @property
    def proved(self) -> bool:
        """Whether inputs prove to both operators that they are valid, where they can."""
        return self is SummationName.TWO_OPERATORS

    @property
    def survivors(self) -> int | None:
        """Any number of phones that share the noise, for costs; None where operators add it."""
        return None if self.by_operators else 1


class Asks(enum.Enum):
    """Parties that a step asks."""

    EVERYONE = "everyone"
    """All phones, with the same task except for their own number."""
    REMAINING = "remaining"
    """Phones that answered the step before, each with a task of its own."""
    HELPER = "helper"
    """The helper, which is not a phone."""


class SumRound(NamedTuple):
    """One round of a summation.

    Attributes:
        name: Name of the round, for people and in stores.
        asks: Parties that the round asks.
        carries_input: Whether the phones' inputs leave them in this round.
        keeps_answers: Whether its answers are needed once more, after the round that follows.
    """

    name: str
    asks: Asks
    carries_input: bool = False
    keeps_answers: bool = False


class Participant(Protocol):
    """One phone's side of one sum."""

    def __init__(self, task: Any, values: npt.ArrayLike, told: bytes = b"") -> None:
        """Take part with a private input of the sum's shape in the sum that the first task opens.

        `told` is the description of the sum, the same bytes for every phone: phones with different
        descriptions agree on no keys.
        """

    @classmethod
    def restore(cls, saved: bytes) -> Self:
        """Return the participant that `save` wrote."""

    def save(self) -> bytes:
        """Return the state, secrets included: seal it before it touches a disk."""

    @property
    def round(self) -> str:
        """Name of the round whose task the participant answers next."""

    @property
    def done(self) -> bool:
        """Whether the participant has answered its last task."""

    def answer(self, task: SumTask) -> SumAnswer:
        """Do what the task asks.

        Raises:
            RemoteError: The task does not fit; nothing has changed.
        """


Saved = bytes | bytearray | memoryview
"""Saved state in any object that holds bytes, so that a large sum is not copied without need."""


class Aggregator(Protocol):
    """The server's side of one sum."""

    def save(self, behind: bytes = b"") -> Saved:
        """Return the state as one MessagePack object, appended to the bytes of `behind`.

        Tasks that `tasks` has handed over may be left out.
        """

    @property
    def parameters(self) -> Any:
        """Parameters of the sum: a struct with `phones` and `shape`."""

    @property
    def done(self) -> bool:
        """Whether the sum has its result."""

    def deadline(self, now: float, step_seconds: float) -> float:
        """Return the end of the present round, on the clock of `now`.

        Args:
            now: Present time.
            step_seconds: Time for which a step waits for phones.
        """

    def expected(self) -> Collection[int]:
        """Return the parties that have a task in the present round."""

    def tasks(self) -> Iterator[tuple[int, SumTask]]:
        """Yield all tasks of the present round on demand, by ascending number of the phone.

        They are handed over: a caller that saves the sum from now on must save them as well.
        """

    def task_for(self, phone: int) -> SumTask | None:
        """Return the phone's task in the present round; None if it has none or is out.

        Raises:
            WrongStateError: `tasks` has handed the task over.
        """

    def recall(self, task: SumTask) -> None:
        """Take back the helper's task, which `tasks` handed over, before the helper's answer."""

    def accept(self, phone: int, answer: Answer) -> None:
        """Take one party's answer; keep only the parts that are needed later.

        Answers of a round that keeps them are passed once more, in the same order, after the
        answers of the next round.

        Raises:
            RemoteError: The answer does not fit; nothing has changed.
        """

    def advance(self) -> None:
        """Close the present round and begin the next.

        Raises:
            RemoteError: The sum cannot continue; it has failed, and nothing was revealed.
        """

    def result(self) -> npt.NDArray[np.int64 | np.float64]:
        """Return the sum of the inputs that arrived, in the sum's shape."""


class Aggregators(Protocol):
    """Maker of aggregators; a class may be one."""

    def __call__(
        self, sum_id: bytes, parameters: Any, random: RandomBytes, told: bytes = b""
    ) -> Aggregator:
        """Begin a sum under an identifier of 16 bytes that no other sum has.

        `told` is the description of the sum, the same for all phones.
        """

    def restore(self, saved: Saved) -> Aggregator:
        """Return the aggregator that `save` wrote, without the bytes that it was written behind."""


@dataclass(frozen=True)
class Summation:
    """A protocol that adds up the phones' inputs and reveals only the sum.

    Attributes:
        name: Name of the protocol.
        rounds: Rounds in order.
        participant: Class of the phone's side.
        aggregator: Maker of the server's side.
        open: Function that returns the task that opens a sum for phone 0, from the sum's identifier
            and parameters; without fields that differ between phones.
        tasks: Types of its tasks.
        check: Function that refuses an answer (of a party, under the sum's encoded parameters) that
            does not fit its task, before any of it is kept; raises `RemoteError`.
    """

    name: SummationName
    rounds: tuple[SumRound, ...]
    participant: type[Participant]
    aggregator: Aggregators
    open: Callable[[bytes, Any], Any]
    tasks: frozenset[type[SumTask]]
    check: Callable[[Any, int, Answer, bytes], None]
