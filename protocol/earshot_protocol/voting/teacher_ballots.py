"""What a teacher may cast on one query, as whole numbers that a secure sum adds up.

A teacher is whoever keeps labelled data of its own: a phone, a group of phones, a hospital. Every
ballot says how far it can move a sum: against zeros, where a teacher is left out, and against any
other ballot, where its data, or one record of them, are exchanged for others: a model that is
trained anew may answer anything (Papernot et al., ICLR 2017 and 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.mechanisms import Unit

NONE = -1
"""The answer of a teacher that abstains, and of a tally that has none."""
MOST_CLASSES = 2**16
"""Of one query: entries of one ballot."""
MOST_WEIGHT = 2**10

Whole = npt.NDArray[np.int64]


class Ballot(Protocol):
    """What one teacher may cast on one query."""

    @property
    def length(self) -> int:
        """Entries of a ballot."""

    @property
    def vote(self) -> int:
        """What one whole vote of weight 1 is in an entry."""

    @property
    def least_entry(self) -> int:
        """The least that a ballot adds to an entry."""

    @property
    def largest_entry(self) -> int:
        """The most that a ballot adds to an entry."""

    def l1(self, unit: Unit) -> float:
        """L1 distance between sums of neighbours, in entries."""

    def l2(self, unit: Unit) -> float:
        """L2 distance between sums of neighbours, in entries."""

    def cast(self, answers: npt.NDArray[np.integer]) -> Whole:
        """The ballots for what teachers answer.

        Args:
            answers: of a single winner, integers of any shape (…), classes or `NONE`; of several,
                zeros and ones (…, labels).

        Returns:
            int64 (…, length).

        Raises:
            InvalidInputError: answers that are none.
        """


@dataclass(frozen=True)
class OneHot:
    """One vote for one class, or none.

    Attributes:
        classes: m, from 2.

    Raises:
        InvalidParametersError: too few classes, or too many.
    """

    classes: int
    vote: ClassVar[int] = 1
    least_entry: ClassVar[int] = 0
    largest_entry: ClassVar[int] = 1

    def __post_init__(self) -> None:
        checks.whole("classes", self.classes, 2, MOST_CLASSES)

    @property
    def length(self) -> int:
        """See `Ballot.length`."""
        return self.classes

    def l1(self, unit: Unit) -> float:
        """See `Ballot.l1`."""
        return 1.0 if unit is Unit.PHONE else 2.0

    def l2(self, unit: Unit) -> float:
        """See `Ballot.l2`: a moved vote leaves one class for another."""
        return 1.0 if unit is Unit.PHONE else math.sqrt(2.0)

    def cast(self, answers: npt.NDArray[np.integer]) -> Whole:
        """See `Ballot.cast`."""
        chosen = integers("answers", answers)
        if chosen.size and not NONE <= chosen.min() <= chosen.max() < self.classes:
            raise InvalidInputError(
                f"answers from {chosen.min()} to {chosen.max()}: classes are 0 to "
                f"{self.classes - 1}, and {NONE} abstains"
            )
        return one_hot(chosen, self.classes)


@dataclass(frozen=True)
class Agreement:
    """One vote for a proposed answer, or none: the check of a sum whose votes nobody sees."""

    length: ClassVar[int] = 1
    vote: ClassVar[int] = 1
    least_entry: ClassVar[int] = 0
    largest_entry: ClassVar[int] = 1

    def l1(self, unit: Unit) -> float:
        """See `Ballot.l1`."""
        return 1.0

    def l2(self, unit: Unit) -> float:
        """See `Ballot.l2`."""
        return 1.0

    def cast(self, answers: npt.NDArray[np.integer]) -> Whole:
        """Of zeros and ones (…): whether a teacher agrees."""
        return bits("answers", answers)[..., None]


@dataclass(frozen=True)
class Weighted:
    """Any ballot, times a teacher's weight (Mühl, 2021, Definition 5.4).

    A weight of 0 is a teacher that vanishes: nobody who sees the sum can tell.

    Attributes:
        ballot: of weight 1.
        weight: ψ, whole.

    Raises:
        InvalidParametersError: a weight that is negative, too large or not whole.
    """

    ballot: Ballot
    weight: int

    def __post_init__(self) -> None:
        checks.whole("weight", self.weight, 0, MOST_WEIGHT)

    @property
    def length(self) -> int:
        """See `Ballot.length`."""
        return self.ballot.length

    @property
    def vote(self) -> int:
        """See `Ballot.vote`: of weight 1."""
        return self.ballot.vote

    @property
    def least_entry(self) -> int:
        """See `Ballot.least_entry`."""
        return self.weight * self.ballot.least_entry

    @property
    def largest_entry(self) -> int:
        """See `Ballot.largest_entry`."""
        return self.weight * self.ballot.largest_entry

    def l1(self, unit: Unit) -> float:
        """See `Ballot.l1`."""
        return self.weight * self.ballot.l1(unit)

    def l2(self, unit: Unit) -> float:
        """See `Ballot.l2`."""
        return self.weight * self.ballot.l2(unit)

    def cast(self, answers: npt.NDArray[np.integer]) -> Whole:
        """See `Ballot.cast`."""
        return self.weight * self.ballot.cast(answers)


def one_hot(chosen: Whole, length: int) -> Whole:
    """A one in the entry of each number, int64 (…, length); zeros where there is none."""
    ones: Whole = (chosen[..., None] == np.arange(length)).astype(np.int64)
    return ones


def integers(name: str, values: npt.NDArray[np.integer]) -> Whole:
    """As int64.

    Raises:
        InvalidInputError: other values.
    """
    array = np.asarray(values)
    if not (array.dtype == np.bool_ or np.can_cast(array.dtype, np.int64)):
        raise InvalidInputError(f"{name} must be integers, not {array.dtype}")
    return array.astype(np.int64)


def bits(name: str, values: npt.NDArray[np.integer]) -> Whole:
    """Zeros and ones, as int64.

    Raises:
        InvalidInputError: other values.
    """
    array = integers(name, values)
    if array.size and not 0 <= array.min() <= array.max() <= 1:
        raise InvalidInputError(
            f"{name} from {array.min()} to {array.max()}: must be zeros and ones"
        )
    return array
