"""Who wins a vote of teachers, by noise that a curator adds: one class for every query, or none.

The curator holds the votes; nothing but winners is published, not a noisy count and not how close
a vote was. What that costs is worked out in `earshot_server.accounting.votes`. Noise is fresh for
every query, for every class, and for a check and the answer behind it.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.counts import checked_scores, checked_votes

NONE = -1
"""In the place of a class: no answer."""

Numbers = npt.NDArray[np.float64]
Winners = npt.NDArray[np.int64]
Passing = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class LNMax:
    """The class with the largest noisy count, Laplace noise (Papernot et al., ICLR 2017).

    argmax_j n_j + Lap(1/γ).

    Attributes:
        gamma: γ, the inverse of the noise's scale.

    Raises:
        InvalidParametersError: γ is not positive and finite.
    """

    gamma: float

    def __post_init__(self) -> None:
        checks.positive("gamma", self.gamma)

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Winners:
        """One class for every query.

        Args:
            votes: (queries, classes), how many each class has; weighted votes need not be whole.
            random: source of bytes; a seeded one belongs in simulations only.

        Returns:
            int64 (queries,).

        Raises:
            InvalidInputError: votes that are none, see `counts.checked_votes`.
        """
        table = checked_votes(votes)
        return _largest(noisy_counts.with_laplace(table, 1 / self.gamma, random))


@dataclass(frozen=True)
class GNMax:
    """The class with the largest noisy count, Gaussian noise (Papernot et al., ICLR 2018, 4.1).

    argmax_j n_j + N(0, σ²).

    Attributes:
        deviation: σ, in votes.

    Raises:
        InvalidParametersError: σ is not positive and finite.
    """

    deviation: float

    def __post_init__(self) -> None:
        checks.positive("deviation", self.deviation)

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Winners:
        """One class for every query, as `LNMax.winners`."""
        table = checked_votes(votes)
        return _largest(noisy_counts.with_normal(table, self.deviation, random))


@dataclass(frozen=True)
class ConfidentGNMax:
    """A winner where teachers agree, by a noisy check (Papernot et al. 2018, Algorithm 1).

    Where max_j n_j + N(0, σ₁²) ≥ T, argmax_j n_j + N(0, σ₂²); else no answer.

    Attributes:
        threshold: T, in votes; above the number of teachers only noise passes it.
        check_deviation: σ₁ of the check.
        deviation: σ₂ of the answer.

    Raises:
        InvalidParametersError: a deviation is not positive, or a number not finite.
    """

    threshold: float
    check_deviation: float
    deviation: float

    def __post_init__(self) -> None:
        _checked(self.threshold, self.check_deviation, self.deviation)

    def agreement(self, votes: npt.NDArray[np.number]) -> Numbers:
        """What the check looks at, (queries,): the votes of the class with most."""
        most: Numbers = checked_votes(votes).max(axis=1)
        return most

    def passing(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Passing:
        """Which queries pass the check, bool (queries,)."""
        return _passing(self.agreement(votes), self.threshold, self.check_deviation, random)

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Winners:
        """One class for every query, or `NONE` where teachers do not agree.

        Args:
            votes: (queries, classes), how many each class has; weighted votes need not be whole.
            random: source of bytes; a seeded one belongs in simulations only.

        Returns:
            int64 (queries,).

        Raises:
            InvalidInputError: votes that are none, see `counts.checked_votes`.
        """
        table = checked_votes(votes)
        found = np.full(len(table), NONE, dtype=np.int64)
        passing = self.passing(table, random)
        found[passing] = GNMax(self.deviation).winners(table[passing], random)
        return found


class Answers(NamedTuple):
    """What a student gets for some queries.

    Attributes:
        winners: a class, or `NONE`, int64 (queries,).
        voted: whether the teachers said so, which costs; else it is what the student thought,
            bool (queries,).
    """

    winners: Winners
    voted: Passing


@dataclass(frozen=True)
class InteractiveGNMax:
    """A winner where teachers correct the student (Papernot et al. 2018, Algorithm 2).

    Where max_j (n_j − n·p_j) + N(0, σ₁²) ≥ T, argmax_j n_j + N(0, σ₂²); else the class of which
    the student is sure, p_j > γ, which costs nothing more; else no answer. The student's scores p
    must be known to all: what it learned was published before. One vote that moves, or that a
    teacher withholds, changes what is checked by one at most, n the votes that are cast.

    Attributes:
        threshold: T, in votes.
        check_deviation: σ₁ of the check.
        deviation: σ₂ of the answer.
        confidence: γ, above which a student's score reinforces its class.

    Raises:
        InvalidParametersError: a deviation is not positive, a number not finite, or γ not from 0
            to 1.
    """

    threshold: float
    check_deviation: float
    deviation: float
    confidence: float

    def __post_init__(self) -> None:
        _checked(self.threshold, self.check_deviation, self.deviation)
        checks.share("confidence", self.confidence)

    def agreement(self, votes: npt.NDArray[np.number], scores: npt.NDArray[np.number]) -> Numbers:
        """What the check looks at, (queries,): the most votes that the student did not expect."""
        table, expected = _votes_and_scores(votes, scores)
        most: Numbers = (table - table.sum(axis=1, keepdims=True) * expected).max(axis=1)
        return most

    def passing(
        self,
        votes: npt.NDArray[np.number],
        scores: npt.NDArray[np.number],
        random: RandomBytes = os.urandom,
    ) -> Passing:
        """Which queries pass the check, bool (queries,)."""
        agreement = self.agreement(votes, scores)
        return _passing(agreement, self.threshold, self.check_deviation, random)

    def winners(
        self,
        votes: npt.NDArray[np.number],
        scores: npt.NDArray[np.number],
        random: RandomBytes = os.urandom,
    ) -> Winners:
        """The winners of `answers`."""
        return self.answers(votes, scores, random).winners

    def answers(
        self,
        votes: npt.NDArray[np.number],
        scores: npt.NDArray[np.number],
        random: RandomBytes = os.urandom,
    ) -> Answers:
        """One class for every query, or `NONE`, and who said so.

        Args:
            votes: (queries, classes), how many each class has; weighted votes need not be whole.
            scores: (queries, classes), how probable the student finds each class.
            random: source of bytes; a seeded one belongs in simulations only.

        Raises:
            InvalidInputError: votes or scores that are none, see `counts`.
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
