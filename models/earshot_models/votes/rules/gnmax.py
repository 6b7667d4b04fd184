"""GNMax: the class with the largest noisy count, by Gaussian noise."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.counts import checked_votes
from earshot_models.votes.rules.one_winner import (
    GaussianAnswering,
    PublishingRule,
    Unchecked,
    Winners,
    Winning,
    largest,
)
from earshot_protocol import checks
from earshot_protocol.overriding import override
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import OneHot


@dataclass(frozen=True)
class GNMax(Unchecked, GaussianAnswering, Winning):
    """The class with the largest noisy count, Gaussian noise (Papernot et al., ICLR 2018, 4.1).

    argmax_j n_j + N(0, σ²).

    Attributes:
        deviation: Standard deviation of the noise, σ, in votes.

    Raises:
        InvalidParametersError: The deviation σ is not positive and finite.
    """

    deviation: float

    def __post_init__(self) -> None:
        checks.positive("deviation", self.deviation)

    @override
    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Winners:
        table = checked_votes(votes)
        return largest(noisy_counts.with_normal(table, self.deviation, random))

    def times(self, factor: float) -> GNMax:
        """Return the same for a multiple of the votes."""
        return GNMax(factor * self.deviation)


@dataclass(frozen=True, kw_only=True)
class GNMaxRule(PublishingRule):
    """Answer with the class that has most votes, by Gaussian noise."""

    name: ClassVar[str] = "gnmax"

    @classmethod
    @override
    def least_noise(cls, epsilon: float, delta: float, queries: int, unit: Unit) -> float:
        from earshot_models.votes.costs import calibration

        return calibration.gaussian_deviation(epsilon, delta, queries, OneHot(2).l2(unit))

    @property
    @override
    def voting(self) -> GNMax:
        return GNMax(self.sigma)

    @property
    @override
    def gaussian(self) -> GNMax:
        return self.voting
