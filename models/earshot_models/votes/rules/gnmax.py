"""GNMax: the class with the largest noisy count, by Gaussian noise."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs import costs, smooth
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.outcomes import log_winning
from earshot_models.votes.costs.releases import Costs, VotesCost
from earshot_models.votes.counts import checked_votes, vote_counts
from earshot_models.votes.electorate import Electorate, PollForm
from earshot_models.votes.rules.one_winner import OneWinnerRule, Winners
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers, Whole
from earshot_protocol.overriding import override
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE, OneHot


@dataclass(frozen=True)
class GNMax:
    """Sampler of the class with the largest count, Gaussian noise added (Papernot et al. 2018).

    argmax_j n_j + N(0, σ²).

    Attributes:
        deviation: Standard deviation of the noise, σ, in votes.

    Raises:
        InvalidParametersError: The deviation σ is not positive and finite.
    """

    deviation: float

    def __post_init__(self) -> None:
        checks.positive("deviation", self.deviation)

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Winners:
        """Return one class for every query, int64 (queries,).

        Args:
            votes: Votes of each class, (queries, classes); weighted votes need not be whole.
            random: Source of bytes; a seeded one belongs in simulations only.

        Raises:
            InvalidInputError: The votes are invalid (see `counts.checked_votes`).
        """
        table = checked_votes(votes)
        return np.asarray(noisy_counts.with_normal(table, self.deviation, random).argmax(axis=1))


@dataclass(frozen=True, kw_only=True)
class GaussianRule(OneWinnerRule):
    """A rule by which the class with the largest count wins, Gaussian noise added."""

    @property
    def sampler(self) -> GNMax:
        """Sampler of answers, without the check."""
        return GNMax(self.sigma)

    @override
    def drawn(self, votes: Numbers, random: RandomBytes) -> Winners:
        return self.sampler.winners(votes, random)

    @override
    def law(self, votes: Numbers) -> Numbers:
        return np.asarray(np.exp(log_winning(votes, self.sigma)))

    @override
    def answer_divergences(
        self, votes: Numbers, orders: Numbers, method: Method, weight: float
    ) -> Numbers:
        return costs.gaussian_answer(self.sigma, votes, orders, method, weight)

    @override
    def release(
        self, cost: VotesCost, asked: Electorate, outcomes: Whole, order: float, unit: Unit
    ) -> Costs:
        if cost not in self.publishes:
            return super().release(cost, asked, outcomes, order, unit)
        alike = np.ones(asked.teachers, dtype=np.int64)
        votes = vote_counts(asked.predictions, alike, asked.classes)
        voted = outcomes != NONE
        each = self.divergences(votes, [order], Method(cost.value), voted=voted)
        exact = cost is VotesCost.EXACT
        near = smooth.exact_sensitivities if exact else smooth.local_sensitivities
        sensitivities = near(self.sigma, self.check, votes, voted, order, asked.teachers)
        return Costs(float((each.asked + each.answered).sum()), sensitivities)

    @override
    def check_release(self, cost: VotesCost, poll: PollForm, order: float) -> None:
        if cost is VotesCost.DEPENDENT and cost in self.publishes:
            unanimous, all_voted = np.eye(1, poll.classes), np.ones(1, bool)
            smooth.local_sensitivities(self.sigma, self.check, unanimous, all_voted, order, 1)


@dataclass(frozen=True, kw_only=True)
class GNMaxRule(GaussianRule):
    """Answer with the class that has most votes, by Gaussian noise."""

    name: ClassVar[str] = "gnmax"
    publishes: ClassVar[frozenset[VotesCost]] = frozenset(VotesCost)

    @classmethod
    @override
    def least_noise(cls, epsilon: float, delta: float, queries: int, unit: Unit) -> float:
        from earshot_models.votes.costs import calibration

        return calibration.gaussian_deviation(epsilon, delta, queries, OneHot(2).l2(unit))
