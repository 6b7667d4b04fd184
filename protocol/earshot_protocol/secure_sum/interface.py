"""What every secure summation offers: its rounds, the phone's side and the server's.

Both sides are objects without I/O or clock: tasks in, answers out, and a state that can be saved
between any two of them. A summation is a value, so that a second one is a second value and not a
second branch.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.messages import AdvertiseKeys, SumAnswer, SumTask
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.wire import Answer


class Asks(enum.Enum):
    """Which phones a step asks."""

    EVERYONE = "everyone"
    """All with the same task, but for their own number."""
    REMAINING = "remaining"
    """Those that answered the step before, each with a task of its own."""


class SumRound(NamedTuple):
    """One round of a summation.

    Attributes:
        name: for people, and in stores.
        asks: which phones.
        carries_input: whether the phones' inputs leave them in this round.
    """

    name: str
    asks: Asks
    carries_input: bool = False


class Participant(Protocol):
    """One phone in one sum."""

    def __init__(self, task: AdvertiseKeys, values: npt.ArrayLike, told: bytes = b"") -> None:
        """Take part, with a private input of the sum's shape, in what the first task describes.

        What the sum is about is `told` in the same bytes to every phone: those that were told
        different things agree on no keys.
        """

    @classmethod
    def restore(cls, saved: bytes) -> Self:
        """The participant that `save` wrote."""

    def save(self) -> bytes:
        """The state, secrets included: seal it before it touches a disk."""

    @property
    def round(self) -> str:
        """The name of the round whose task it answers next."""

    @property
    def done(self) -> bool:
        """Whether it has answered its last task."""

    def answer(self, task: SumTask) -> SumAnswer:
        """Do what the task asks.

        Raises:
            RemoteError: the task does not fit; nothing has changed.
        """


Saved = bytes | bytearray | memoryview
"""What was saved, in whatever holds bytes: that of a large sum is not copied without need."""


class Aggregator(Protocol):
    """The server's side of one sum."""

    def __init__(
        self, sum_id: bytes, parameters: SumParameters, random: RandomBytes, told: bytes = b""
    ) -> None:
        """Begin a sum under an identifier of 16 bytes that no other sum has.

        All phones are `told` the same of what it is about.
        """

    @classmethod
    def restore(cls, saved: Saved) -> Self:
        """The aggregator that `save` wrote, without what it was written behind."""

    def save(self, behind: bytes = b"") -> Saved:
        """The state as one MessagePack object, written behind what is there already.

        What `tasks` has handed over may be left out.
        """

    @property
    def parameters(self) -> SumParameters:
        """Of the sum."""

    @property
    def done(self) -> bool:
        """Whether the sum has its result."""

    def check_version(self) -> None:
        """Refuse to go on with what a former version of the protocol began.

        Raises:
            RemoteError: phones of this version could not agree on keys with those that answered.
        """

    def expected(self) -> Collection[int]:
        """The phones that have a task in the present round."""

    def tasks(self) -> Iterator[tuple[int, SumTask]]:
        """All tasks of the present round, by ascending number of the phone, as they are asked for.

        They are handed over: whoever saves the sum from now on keeps them as well.
        """

    def task_for(self, phone: int) -> SumTask | None:
        """What the phone is to do in the present round; None if nothing, or if it is out.

        Raises:
            WrongStateError: `tasks` has handed it over.
        """

    def accept(self, phone: int, answer: Answer) -> None:
        """Take one phone's answer; what of it is not needed later is not kept.

        Raises:
            RemoteError: the answer does not fit; nothing has changed.
        """

    def advance(self) -> None:
        """Close the present round and begin the next.

        Raises:
            RemoteError: the sum cannot go on; it has failed, and nothing was opened.
        """

    def result(self) -> npt.NDArray[np.int64 | np.float64]:
        """The sum of the inputs that arrived, in the sum's shape."""


@dataclass(frozen=True)
class Summation:
    """A protocol that adds up the phones' inputs and shows nobody more than the sum.

    Attributes:
        rounds: in order.
        participant: the phone's side.
        aggregator: the server's side.
        check: refuses an answer (of a phone, under the sum's parameters) that does not fit its
            task, before anything is kept of it; raises `RemoteError`.
    """

    rounds: tuple[SumRound, ...]
    participant: type[Participant]
    aggregator: type[Aggregator]
    check: Callable[[SumTask, int, Answer, SumParameters], None]
