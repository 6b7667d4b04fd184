"""Interactive-GNMax: the winner where teachers correct a student."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.counts import checked_scores, checked_votes
from earshot_models.votes.electorate import Electorate
from earshot_models.votes.rules.gnmax import GNMax
from earshot_models.votes.rules.one_winner import (
    GaussianAnswering,
    OneWinnerRule,
    Winners,
    check_numbers,
)
from earshot_models.votes.rules.rule import Numbers, Passing
from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.overriding import override
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE, Whole


class StudentAnswers(NamedTuple):
    """Answers that a student gets to some queries.

    Attributes:
        winners: Class of each query, or `NONE`, int64 (queries,).
        voted: Whether the answer is the teachers', which costs, or else the student's own, bool
            (queries,).
    """

    winners: Winners
    voted: Passing


@dataclass(frozen=True)
class InteractiveGNMax(GaussianAnswering):
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
        check_numbers(self.threshold, self.check_deviation, self.deviation)
        checks.share("confidence", self.confidence)

    takes_scores: ClassVar[bool] = True

    @property
    def check(self) -> ConfidentCheck:
        """Check before an answer."""
        return ConfidentCheck(self.threshold, self.check_deviation)

    def agreement(
        self, votes: npt.NDArray[np.number], scores: npt.NDArray[np.number] | None = None
    ) -> Numbers:
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
        return self.check.passing(self.agreement(votes, scores), random)

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
        scores: npt.NDArray[np.number] | None,
        random: RandomBytes = os.urandom,
    ) -> StudentAnswers:
        """Return one class for every query, or `NONE`, and whose answer it is.

        Args:
            votes: Votes of each class, (queries, classes); weighted votes need not be whole.
            scores: Probability of each class by the student, (queries, classes).
            random: Source of bytes; a seeded one belongs in simulations only.

        Raises:
            InvalidInputError: The votes or scores are invalid (see `counts`).
        """
        table, expected = _votes_and_scores(votes, scores)
        passing = self.passing(table, expected, random)
        sure = expected.max(axis=1) > self.confidence
        found = np.where(sure, expected.argmax(axis=1), NONE).astype(np.int64)
        found[passing] = GNMax(self.deviation).winners(table[passing], random)
        return StudentAnswers(found, passing)


def _votes_and_scores(
    votes: npt.NDArray[np.number], scores: npt.NDArray[np.number] | None
) -> tuple[Numbers, Numbers]:
    table = checked_votes(votes)
    if scores is None:
        raise InvalidInputError("scores: a student's are needed")
    return table, checked_scores(scores, (table.shape[0], table.shape[1]))


@dataclass(frozen=True, kw_only=True)
class InteractiveRule(OneWinnerRule):
    """Answer as a student does, and as teachers do where they do not agree with it.

    Attributes:
        threshold: Votes that the check asks for (T), noise included.
        check_sigma: Standard deviation of the noise on the check (σ₁), in votes.
        confidence: Confidence above which the student's own answer is used.
    """

    threshold: float
    check_sigma: float
    confidence: float

    name: ClassVar[str] = "interactive"
    takes_scores: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.share("confidence", self.confidence)
        _ = self.check

    @property
    @override
    def check(self) -> ConfidentCheck:
        return ConfidentCheck(self.threshold, self.check_sigma)

    @property
    def voting(self) -> InteractiveGNMax:
        """Curator's vote."""
        return InteractiveGNMax(self.threshold, self.check_sigma, self.sigma, self.confidence)

    @override
    def decide(
        self, asked: Electorate, weights: Whole, scores: Numbers | None, random: RandomBytes
    ) -> tuple[Whole, Passing]:
        found = self.voting.answers(asked.counts(weights), scores, random)
        return found.winners, found.voted

    @override
    def proposals(self, scores: Numbers) -> Whole:
        """Return the class of which a student is sure, for every query, or `NONE`."""
        sure = scores.max(axis=1) > self.confidence
        return np.where(sure, scores.argmax(axis=1), NONE)
