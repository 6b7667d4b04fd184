"""Ballots for several winners: on each label, or on a set of labels.

A teacher's zeros and ones, (…, labels), become whole numbers that a secure sum adds up.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.arrays import Whole
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import MOST_CLASSES, NONE, bits, one_hot

CLIPPED_VOTE = 2**10
"""Steps of a whole vote on clipped ballots."""
MOST_LABELS = 2**10
"""Most labels in a query that may have several winners."""


@dataclass(frozen=True)
class Approval:
    """A vote for each label that a teacher finds.

    Attributes:
        labels: Number of labels, k.

    Raises:
        InvalidParametersError: There are no labels, or too many.
    """

    labels: int
    vote: ClassVar[int] = 1
    largest_entry: ClassVar[int] = 1

    def __post_init__(self) -> None:
        checks.whole("labels", self.labels, 1, MOST_LABELS)

    @property
    def length(self) -> int:
        """Entries of a ballot."""
        return self.labels

    def l1(self, unit: Unit) -> float:
        """Return the L1 distance between sums of neighbours, in entries."""
        return float(self.labels)

    def l2(self, unit: Unit) -> float:
        """Return the L2 distance: no label changes by more than one vote between any neighbours."""
        return math.sqrt(self.labels)

    def cast(self, answers: npt.NDArray[np.integer]) -> Whole:
        """Return the ballots of answers, int64 (…, labels)."""
        return _labels(answers, self.labels)


@dataclass(frozen=True)
class Clipped:
    """Votes for labels, scaled down to a maximal length: τ voting.

    v = b · min(1, τ / ‖b‖) in whole steps, rounded down; its length is computed from these steps
    (in L2 by Dziedzic et al., PoPETs 2023, Definition 7; in L1 by Zhu et al., CVPR 2020).

    Attributes:
        labels: Number of labels, k.
        tau: Length to which ballots are clipped, τ; below √k in L2 and k in L1, from which on
            nothing is clipped.
        norm: Norm used to clip ballots: 1 or 2.

    Raises:
        InvalidParametersError: There are no labels, another norm, or a τ that clips everything or
            nothing.
    """

    labels: int
    tau: float
    norm: int = 2
    vote: ClassVar[int] = CLIPPED_VOTE

    def __post_init__(self) -> None:
        checks.whole("labels", self.labels, 1, MOST_LABELS)
        if self.norm not in (1, 2):
            raise InvalidParametersError(f"norm={self.norm}: must be 1 or 2")
        free = self.labels if self.norm == 1 else math.sqrt(self.labels)
        if not 1 / CLIPPED_VOTE <= self.tau < free:
            raise InvalidParametersError(
                f"tau={self.tau}: must be from 1/{CLIPPED_VOTE} to below {free:.6g}, from which on "
                "nothing is clipped and the ballot is an Approval"
            )

    @property
    def length(self) -> int:
        """Entries of a ballot."""
        return self.labels

    @property
    def largest_entry(self) -> int:
        """Most that a ballot adds to an entry, in steps."""
        return int(self.steps[1])

    @property
    def steps(self) -> Whole:
        """Steps of each vote by the number of votes on the ballot, int64 (labels + 1,)."""
        ones = np.arange(1, self.labels + 1)
        norms = ones if self.norm == 1 else np.sqrt(ones)
        steps = np.floor(CLIPPED_VOTE * np.minimum(1.0, self.tau / norms)).astype(np.int64)
        return np.concatenate([[0], steps])

    def l1(self, unit: Unit) -> float:
        """Return the L1 distance between sums of neighbours, in steps."""
        return self._farthest(unit, 1)

    def l2(self, unit: Unit) -> float:
        """Return the L2 distance: at most √2 τ, less if two such ballots cannot be disjoint."""
        return math.sqrt(self._farthest(unit, 2))

    def _farthest(self, unit: Unit, power: int) -> float:
        """Return the largest Σ |v − v'|^power of two ballots, one of them zeros in the phone unit.

        Ballots are farthest apart with the fewest shared labels: one more shared label replaces e +
        e' by |e − e'|, or their squares.
        """
        ones = np.arange(self.labels + 1)
        each = self.steps.astype(np.float64)
        if unit is Unit.PHONE:
            return float((ones * each**power).max())
        shared = np.maximum(0, ones[:, None] + ones - self.labels)
        apart = (ones[:, None] - shared) * each[:, None] ** power + (ones - shared) * each**power
        return float((apart + shared * np.abs(each[:, None] - each) ** power).max())

    def cast(self, answers: npt.NDArray[np.integer]) -> Whole:
        """Return the ballots of answers, int64 (…, labels), in steps."""
        found = _labels(answers, self.labels)
        each: Whole = self.steps[found.sum(axis=-1)][..., None]
        return found * each


@dataclass(frozen=True)
class Subset:
    """One vote for the set of labels that a teacher finds: powerset voting.

    Sets are numbered by size, then by members; with a set of more than `most` labels a teacher
    abstains (Dziedzic et al., PoPETs 2023, Definition 8).

    Attributes:
        labels: Number of labels, k.
        most: Most labels of a set, v; all by default.

    Raises:
        InvalidParametersError: There are no labels, more in a set than there are, or too many sets.
    """

    labels: int
    most: int | None = None
    vote: ClassVar[int] = 1
    largest_entry: ClassVar[int] = 1

    def __post_init__(self) -> None:
        checks.whole("labels", self.labels, 1, MOST_LABELS)
        if self.most is not None:
            checks.whole("most", self.most, 1, self.labels)
        if self.length > MOST_CLASSES:
            raise InvalidParametersError(
                f"{self.length} sets of at most {self._most} of {self.labels} labels: at most "
                f"{MOST_CLASSES} can be voted on; make the sets smaller"
            )

    @property
    def _most(self) -> int:
        return self.labels if self.most is None else self.most

    @property
    def length(self) -> int:
        """Entries of a ballot: Σ C(k, i) for i ≤ v."""
        return sum(math.comb(self.labels, size) for size in range(self._most + 1))

    def l1(self, unit: Unit) -> float:
        """Return the L1 distance between sums of neighbours, in entries."""
        return 1.0 if unit is Unit.PHONE else 2.0

    def l2(self, unit: Unit) -> float:
        """Return the L2 distance between sums of neighbours, in entries."""
        return 1.0 if unit is Unit.PHONE else math.sqrt(2.0)

    def cast(self, answers: npt.NDArray[np.integer]) -> Whole:
        """Return the ballots of answers, int64 (…, length)."""
        return one_hot(self.number(answers), self.length)

    def number(self, answers: npt.NDArray[np.integer]) -> Whole:
        """Return the number of each answer's set, int64 (…); `NONE` for one of too many labels."""
        found = _labels(answers, self.labels)
        before, places = _ranks(self.labels, self._most)
        sizes = found.sum(axis=-1)
        order = np.minimum(np.cumsum(found, axis=-1), self._most)
        within = (found * places[np.arange(self.labels), order]).sum(axis=-1)
        fits = sizes <= self._most
        return np.where(fits, before[np.where(fits, sizes, 0)] + within, NONE)

    def sets(self) -> Whole:
        """Return the sets in the order of their numbers, zeros and ones, int64 (length, labels)."""
        rows = np.zeros((self.length, self.labels), dtype=np.int64)
        for size in range(self._most + 1):
            for members in itertools.combinations(range(self.labels), size):
                row = np.zeros(self.labels, dtype=np.int64)
                row[list(members)] = 1
                rows[self.number(row)] = row
        return rows


@functools.lru_cache(maxsize=16)
def _ranks(labels: int, most: int) -> tuple[Whole, Whole]:
    """Return the number of sets below each size, and C(place, j).

    A set of places c₁ < … < c_s is number Σ C(c_j, j) among those of its size: the combinatorial
    number system.
    """
    before = np.cumsum([0, *(math.comb(labels, size) for size in range(most))])
    places = [[math.comb(place, j) if j else 0 for j in range(most + 1)] for place in range(labels)]
    return before.astype(np.int64), np.array(places, dtype=object).astype(np.int64)


def _labels(answers: npt.NDArray[np.integer], labels: int) -> Whole:
    array = bits("answers", answers)
    if array.ndim == 0 or array.shape[-1] != labels:
        raise InvalidInputError(
            f"answers of shape {array.shape}: the last axis must be {labels} labels"
        )
    return array
