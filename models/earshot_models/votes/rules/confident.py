"""Confident-GNMax: the winner where enough teachers agree, by a noisy check."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.counts import checked_votes
from earshot_models.votes.rules.gnmax import GNMax
from earshot_models.votes.rules.one_winner import (
    GaussianAnswering,
    PublishingRule,
    Winners,
    Winning,
    check_numbers,
)
from earshot_models.votes.rules.rule import Numbers, Passing
from earshot_protocol.overriding import override
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE


@dataclass(frozen=True)
class ConfidentGNMax(GaussianAnswering, Winning):
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
        check_numbers(self.threshold, self.check_deviation, self.deviation)

    takes_scores: ClassVar[bool] = False

    @property
    def check(self) -> ConfidentCheck:
        """Check before an answer."""
        return ConfidentCheck(self.threshold, self.check_deviation)

    def times(self, factor: float) -> ConfidentGNMax:
        """Return the same for a multiple of the votes."""
        return ConfidentGNMax(
            factor * self.threshold, factor * self.check_deviation, factor * self.deviation
        )

    def agreement(
        self, votes: npt.NDArray[np.number], scores: npt.NDArray[np.number] | None = None
    ) -> Numbers:
        """Return the votes of the class with most, which the check looks at, (queries,)."""
        most: Numbers = checked_votes(votes).max(axis=1)
        return most

    def passing(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Passing:
        """Return which queries pass the check, bool (queries,)."""
        return self.check.passing(self.agreement(votes), random)

    @override
    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Winners:
        table = checked_votes(votes)
        found = np.full(len(table), NONE, dtype=np.int64)
        passing = self.passing(table, random)
        found[passing] = GNMax(self.deviation).winners(table[passing], random)
        return found


@dataclass(frozen=True, kw_only=True)
class ConfidentRule(PublishingRule):
    """Answer with the class that has most votes, where enough teachers agree.

    Attributes:
        threshold: Votes that the check asks for (T), noise included.
        check_sigma: Standard deviation of the noise on the check (σ₁), in votes.
    """

    threshold: float
    check_sigma: float

    name: ClassVar[str] = "confident"

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.check

    @property
    @override
    def check(self) -> ConfidentCheck:
        return ConfidentCheck(self.threshold, self.check_sigma)

    @property
    @override
    def voting(self) -> ConfidentGNMax:
        return ConfidentGNMax(self.threshold, self.check_sigma, self.sigma)

    @property
    @override
    def gaussian(self) -> ConfidentGNMax:
        return self.voting
