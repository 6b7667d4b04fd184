"""Ballots that a teacher may cast on one query, as whole numbers that a secure sum adds up.

A teacher keeps labelled data of its own: a phone, a group of phones, a hospital. Every ballot
states how far it can move a sum: against zeros, where a teacher is left out, and against any other
ballot, where its data, or one record of them, are replaced: a retrained model may answer anything
(Papernot et al., ICLR 2017 and 2018).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.arrays import Whole
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.mechanisms import Unit

NONE = -1
"""Answer of a teacher that abstains, and of a tally that has none."""
MOST_CLASSES = 2**16
"""Most classes of one query: entries of one ballot."""
MOST_WEIGHT = 2**10


class Ballot(Protocol):
    """Kind of ballot that one teacher may cast on one query."""

    @property
    def length(self) -> int:
        """Entries of a ballot."""

    @property
    def vote(self) -> int:
        """Value of one whole vote of weight 1 in an entry."""

    @property
    def largest_entry(self) -> int:
        """Most that a ballot adds to an entry."""

    def l1(self, unit: Unit) -> float:
        """Return the L1 distance between sums of neighbours, in entries."""

    def l2(self, unit: Unit) -> float:
        """Return the L2 distance between sums of neighbours, in entries."""

    def cast(self, answers: npt.NDArray[np.integer]) -> Whole:
        """Return the ballots of teachers' answers.

        Args:
            answers: Integers of any shape (…), classes or `NONE`, for a single winner; zeros and
                ones (…, labels) for several.

        Returns:
            int64 (…, length).

        Raises:
            InvalidInputError: The values are not such answers.
        """


@dataclass(frozen=True)
class OneHot:
    """One vote for one class, or none.

    Attributes:
        classes: Number of classes, m, from 2.

    Raises:
        InvalidParametersError: There are too few classes, or too many.
    """

    classes: int
    vote: ClassVar[int] = 1
    largest_entry: ClassVar[int] = 1

    def __post_init__(self) -> None:
        checks.whole("classes", self.classes, 2, MOST_CLASSES)

    @property
    def length(self) -> int:
        """Entries of a ballot."""
        return self.classes

    def l1(self, unit: Unit) -> float:
        """Return the L1 distance between sums of neighbours, in entries."""
        return 1.0 if unit is Unit.PHONE else 2.0

    def l2(self, unit: Unit) -> float:
        """Return the L2 distance: a moved vote leaves one class for another."""
        return 1.0 if unit is Unit.PHONE else math.sqrt(2.0)

    def cast(self, answers: npt.NDArray[np.integer]) -> Whole:
        """Return the ballots of answers, int64 (…, classes)."""
        chosen = integers("answers", answers)
        if chosen.size and not NONE <= chosen.min() <= chosen.max() < self.classes:
            raise InvalidInputError(
                f"answers from {chosen.min()} to {chosen.max()}: classes are 0 to "
                f"{self.classes - 1}, and {NONE} abstains"
            )
        return one_hot(chosen, self.classes)


@dataclass(frozen=True)
class Agreement:
    """One vote for a proposed answer, or none: the check of a sum of hidden votes."""

    length: ClassVar[int] = 1
    vote: ClassVar[int] = 1
    largest_entry: ClassVar[int] = 1

    def l1(self, unit: Unit) -> float:
        """Return the L1 distance between sums of neighbours, in entries."""
        return 1.0

    def l2(self, unit: Unit) -> float:
        """Return the L2 distance between sums of neighbours, in entries."""
        return 1.0

    def cast(self, answers: npt.NDArray[np.integer]) -> Whole:
        """Return the ballots of zeros and ones (…) that say whether a teacher agrees."""
        return bits("answers", answers)[..., None]


@dataclass(frozen=True)
class Weighted:
    """Any ballot, times a teacher's weight (Mühl, 2021, Definition 5.4).

    A weight of 0 leaves a teacher out, and the sum does not reveal it.

    Attributes:
        ballot: Ballot of weight 1.
        weight: Weight of the teacher, ψ, whole.

    Raises:
        InvalidParametersError: The weight is negative, too large or not whole.
    """

    ballot: Ballot
    weight: int

    def __post_init__(self) -> None:
        checks.whole("weight", self.weight, 0, MOST_WEIGHT)

    @property
    def length(self) -> int:
        """Entries of a ballot."""
        return self.ballot.length

    @property
    def vote(self) -> int:
        """Value of one whole vote of weight 1 in an entry."""
        return self.ballot.vote

    @property
    def largest_entry(self) -> int:
        """Most that a ballot adds to an entry."""
        return self.weight * self.ballot.largest_entry

    def l1(self, unit: Unit) -> float:
        """Return the L1 distance between sums of neighbours, in entries."""
        return self.weight * self.ballot.l1(unit)

    def l2(self, unit: Unit) -> float:
        """Return the L2 distance between sums of neighbours, in entries."""
        return self.weight * self.ballot.l2(unit)

    def cast(self, answers: npt.NDArray[np.integer]) -> Whole:
        """Return the weighted ballots of answers, int64 (…, length)."""
        return self.weight * self.ballot.cast(answers)


def one_hot(chosen: Whole, length: int) -> Whole:
    """Return a one in the entry of each number, int64 (…, length); zeros where there is none."""
    ones: Whole = (chosen[..., None] == np.arange(length)).astype(np.int64)
    return ones


def integers(name: str, values: npt.NDArray[np.integer]) -> Whole:
    """Return values as int64.

    Raises:
        InvalidInputError: The values are not integers.
    """
    array = np.asarray(values)
    if not (array.dtype == np.bool_ or np.can_cast(array.dtype, np.int64)):
        raise InvalidInputError(f"{name} must be integers, not {array.dtype}")
    return array.astype(np.int64)


def bits(name: str, values: npt.NDArray[np.integer]) -> Whole:
    """Return zeros and ones as int64.

    Raises:
        InvalidInputError: There are other values.
    """
    array = integers(name, values)
    if array.size and not 0 <= array.min() <= array.max() <= 1:
        raise InvalidInputError(
            f"{name} from {array.min()} to {array.max()}: must be zeros and ones"
        )
    return array
