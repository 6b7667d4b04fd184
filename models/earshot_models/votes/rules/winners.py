"""Winners of a vote of teachers, by noise that a curator adds: one class for every query, or none.

The curator holds the votes; nothing but winners is published, not a noisy count and not how close a
vote was. The cost of that is computed in `earshot_models.votes.costs`. Noise is fresh for
every query, for every class, and for a check and the answer behind it.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_models.votes.counts import checked_scores, checked_votes
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.randomness import RandomBytes

NONE = -1
"""Value in the place of a class: no answer."""

Numbers = npt.NDArray[np.float64]
Winners = npt.NDArray[np.int64]
Passing = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LNMax:
    """The class with the largest noisy count, Laplace noise (Papernot et al., ICLR 2017).

    argmax_j n_j + Lap(1/γ).

    Attributes:
        gamma: Inverse of the noise's scale, γ.

    Raises:
        InvalidParametersError: γ is not positive and finite.
    """

    gamma: float

    def __post_init__(self) -> None:
        checks.positive("gamma", self.gamma)

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Winners:
        """Return one class for every query.

        Args:
            votes: Votes of each class, (queries, classes); weighted votes need not be whole.
            random: Source of bytes; a seeded one belongs in simulations only.

        Returns:
            int64 (queries,).

        Raises:
            InvalidInputError: The votes are invalid, see `counts.checked_votes`.
        """
        table = checked_votes(votes)
        return _largest(noisy_counts.with_laplace(table, 1 / self.gamma, random))


@dataclass(frozen=True)
class GNMax:
    """The class with the largest noisy count, Gaussian noise (Papernot et al., ICLR 2018, 4.1).

    argmax_j n_j + N(0, σ²).

    Attributes:
        deviation: Standard deviation of the noise, σ, in votes.

    Raises:
        InvalidParametersError: σ is not positive and finite.
    """

    deviation: float

    def __post_init__(self) -> None:
        checks.positive("deviation", self.deviation)

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Winners:
        """Return one class for every query, as `LNMax.winners` does."""
        table = checked_votes(votes)
        return _largest(noisy_counts.with_normal(table, self.deviation, random))


@dataclass(frozen=True)
class ConfidentGNMax:
    """The winner where teachers agree, by a noisy check (Papernot et al. 2018, Algorithm 1).

    Where max_j n_j + N(0, σ₁²) ≥ T, argmax_j n_j + N(0, σ₂²); else no answer.

    Attributes:
        threshold: Threshold of the check, T, in votes; above the number of teachers only noise
            passes it.
        check_deviation: Standard deviation of the check's noise, σ₁, in votes.
        deviation: Standard deviation of the answer's noise, σ₂, in votes.

    Raises:
        InvalidParametersError: A deviation is not positive, or a number is not finite.
    """

    threshold: float
    check_deviation: float
    deviation: float

    def __post_init__(self) -> None:
        _checked(self.threshold, self.check_deviation, self.deviation)

    def agreement(self, votes: npt.NDArray[np.number]) -> Numbers:
        """Return the votes of the class with most, which the check looks at, (queries,)."""
        most: Numbers = checked_votes(votes).max(axis=1)
        return most

    def passing(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Passing:
        """Return which queries pass the check, bool (queries,)."""
        return _passing(self.agreement(votes), self.threshold, self.check_deviation, random)

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Winners:
        """Return one class for every query, or `NONE` where teachers do not agree.

        Args:
            votes: Votes of each class, (queries, classes); weighted votes need not be whole.
            random: Source of bytes; a seeded one belongs in simulations only.

        Returns:
            int64 (queries,).

        Raises:
            InvalidInputError: The votes are invalid, see `counts.checked_votes`.
        """
        table = checked_votes(votes)
        found = np.full(len(table), NONE, dtype=np.int64)
        passing = self.passing(table, random)
        found[passing] = GNMax(self.deviation).winners(table[passing], random)
        return found


class Answers(NamedTuple):
    """Answers that a student gets to some queries.

    Attributes:
        winners: Class of each query, or `NONE`, int64 (queries,).
        voted: Whether the answer is the teachers', which costs, or else the student's own, bool
            (queries,).
    """

    winners: Winners
    voted: Passing


@dataclass(frozen=True)
class InteractiveGNMax:
    """The winner where teachers correct the student (Papernot et al. 2018, Algorithm 2).

    Where max_j (n_j − n·p_j) + N(0, σ₁²) ≥ T, argmax_j n_j + N(0, σ₂²); else the class of which the
    student is sure, p_j > γ, which costs nothing more; else no answer. The student's scores p must
    be known to all: what it learned was published before. One vote that moves, or that a teacher
    withholds, changes what is checked by one at most, n the votes that are cast.

    Attributes:
        threshold: Threshold of the check, T, in votes.
        check_deviation: Standard deviation of the check's noise, σ₁, in votes.
        deviation: Standard deviation of the answer's noise, σ₂, in votes.
        confidence: Score above which the student's own class is the answer, γ.

    Raises:
        InvalidParametersError: A deviation is not positive, a number is not finite, or γ is not
            from 0 to 1.
    """

    threshold: float
    check_deviation: float
    deviation: float
    confidence: float

    def __post_init__(self) -> None:
        _checked(self.threshold, self.check_deviation, self.deviation)
        checks.share("confidence", self.confidence)

    def agreement(self, votes: npt.NDArray[np.number], scores: npt.NDArray[np.number]) -> Numbers:
        """Return the most votes unexpected by the student, for the check, (queries,)."""
        table, expected = _votes_and_scores(votes, scores)
        most: Numbers = (table - table.sum(axis=1, keepdims=True) * expected).max(axis=1)
        return most

    def passing(
        self,
        votes: npt.NDArray[np.number],
        scores: npt.NDArray[np.number],
        random: RandomBytes = os.urandom,
    ) -> Passing:
        """Return which queries pass the check, bool (queries,)."""
        agreement = self.agreement(votes, scores)
        return _passing(agreement, self.threshold, self.check_deviation, random)

    def winners(
        self,
        votes: npt.NDArray[np.number],
        scores: npt.NDArray[np.number],
        random: RandomBytes = os.urandom,
    ) -> Winners:
        """Return the winners of `answers`."""
        return self.answers(votes, scores, random).winners

    def answers(
        self,
        votes: npt.NDArray[np.number],
        scores: npt.NDArray[np.number],
        random: RandomBytes = os.urandom,
    ) -> Answers:
        """Return one class for every query, or `NONE`, and whose answer it is.

        Args:
            votes: Votes of each class, (queries, classes); weighted votes need not be whole.
            scores: Probability of each class by the student, (queries, classes).
            random: Source of bytes; a seeded one belongs in simulations only.

        Raises:
            InvalidInputError: The votes or scores are invalid, see `counts`.
        """
        table, expected = _votes_and_scores(votes, scores)
        passing = self.passing(table, expected, random)
        sure = expected.max(axis=1) > self.confidence
        found = np.where(sure, expected.argmax(axis=1), NONE).astype(np.int64)
        found[passing] = GNMax(self.deviation).winners(table[passing], random)
        return Answers(found, passing)


def _checked(threshold: float, check_deviation: float, deviation: float) -> None:
    if not math.isfinite(threshold):
        raise InvalidParametersError(f"threshold={threshold}: must be a finite number of votes")
    checks.positive("check_deviation", check_deviation)
    checks.positive("deviation", deviation)


def _votes_and_scores(
    votes: npt.NDArray[np.number], scores: npt.NDArray[np.number]
) -> tuple[Numbers, Numbers]:
    table = checked_votes(votes)
    return table, checked_scores(scores, (table.shape[0], table.shape[1]))


def _passing(
    agreement: Numbers, threshold: float, deviation: float, random: RandomBytes
) -> Passing:
    passing: Passing = noisy_counts.with_normal(agreement, deviation, random) >= threshold
    return passing


def _largest(noisy: Numbers) -> Winners:
    winners: Winners = noisy.argmax(axis=1).astype(np.int64)
    return winners
