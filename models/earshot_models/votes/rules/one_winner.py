"""Winners of a vote of teachers, by noise that a curator adds: one class for every query, or none.

The curator holds the votes; nothing but winners is published, neither a noisy count nor how close a
vote was. The cost of that is computed in `earshot_models.votes.costs`. Noise is fresh for every
query, for every class, and for a check and the answer behind it.
"""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.costs import costs, smooth
from earshot_models.votes.costs.outcomes import log_winning
from earshot_models.votes.costs.releases import Costs, VotesCost
from earshot_models.votes.electorate import Electorate, PollForm
from earshot_models.votes.rules.rule import Numbers, Passing, VotingRule
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.overriding import override
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE, Agreement, OneHot, Whole

Winners = npt.NDArray[np.int64]


class Unchecked:
    """A curator's vote without a check, in which no student takes part."""

    takes_scores: ClassVar[bool] = False

    @property
    def check(self) -> ConfidentCheck | None:
        """Check before an answer: there is none."""
        return None

    def agreement(
        self, votes: npt.NDArray[np.number], scores: npt.NDArray[np.number] | None = None
    ) -> Numbers:
        """Return nothing: no number is checked.

        Raises:
            InvalidParametersError: Always.
        """
        raise InvalidParametersError("agreement: must not be asked of a vote without a check")


class Answering(Protocol):
    """A curator's vote for one winner."""

    exact: ClassVar[bool]
    """Whether the accounting knows the law of what is published."""

    def law(self, votes: Numbers) -> Numbers:
        """Return the probability that each class wins where there is an answer, (classes,)."""

    def answer_divergences(
        self, votes: Numbers, orders: Numbers, method: costs.Method, weight: float
    ) -> Numbers:
        """Return what answers cost the owner of a vote of this weight, (queries, orders)."""


class Winning(Answering, Protocol):
    """A curator's vote that needs nothing but votes."""

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Winners:
        """Return one class for every query, or `NONE` where teachers do not agree.

        Args:
            votes: Votes of each class, (queries, classes); weighted votes need not be whole.
            random: Source of bytes; a seeded one belongs in simulations only.

        Returns:
            int64 (queries,).

        Raises:
            InvalidInputError: The votes are invalid (see `counts.checked_votes`).
        """


class Deviating(Protocol):
    """A vote with Gaussian noise on its counts."""

    @property
    def deviation(self) -> float:
        """Standard deviation of the answer's noise, in votes."""


class GaussianAnswering(Answering):
    """A curator's vote whose answer is the class with the largest count, by Gaussian noise."""

    exact: ClassVar[bool] = True

    @override
    def law(self: Deviating, votes: Numbers) -> Numbers:
        return np.asarray(np.exp(log_winning(votes, self.deviation)))

    @override
    def answer_divergences(
        self: Deviating, votes: Numbers, orders: Numbers, method: costs.Method, weight: float
    ) -> Numbers:
        return costs.gaussian_answer(self.deviation, votes, orders, method, weight)


@dataclass(frozen=True, kw_only=True)
class OneWinnerRule(VotingRule):
    """A rule by which one class wins."""

    @override
    def ballot(self, poll: PollForm) -> OneHot:
        return OneHot(poll.classes)

    @override
    def check_ballot(self, poll: PollForm) -> Agreement:
        return Agreement()

    @override
    def read(self, poll: PollForm, totals: Whole, voters: float, teachers: float) -> Whole:
        winners: Whole = totals.argmax(axis=1).astype(np.int64)
        return winners

    @override
    def least_agreement(self, poll: PollForm, voters: float) -> float:
        return voters / poll.classes


@dataclass(frozen=True, kw_only=True)
class UnaidedRule(OneWinnerRule):
    """A rule by which one class wins, by votes alone."""

    @property
    @abstractmethod
    def voting(self) -> Winning:
        """Curator's vote."""

    @override
    def decide(
        self, asked: Electorate, weights: Whole, scores: Numbers | None, random: RandomBytes
    ) -> tuple[Whole, Passing]:
        found = self.voting.winners(asked.counts(weights), random)
        return found, found != NONE


@dataclass(frozen=True, kw_only=True)
class PublishingRule(UnaidedRule):
    """A rule for one winner whose cost by votes can be published."""

    publishes: ClassVar[frozenset[VotesCost]] = frozenset(VotesCost)

    @property
    @abstractmethod
    def gaussian(self) -> smooth.GaussianWinnerVoting:
        """Curator's vote, which is by Gaussian noise."""

    @override
    def release(
        self, cost: VotesCost, asked: Electorate, outcomes: Whole, order: float, unit: Unit
    ) -> Costs:
        votes = asked.counts(np.ones(asked.teachers, dtype=np.int64))
        voted = outcomes != NONE
        method = costs.Method(cost.value)
        each = costs.query_divergences(self.gaussian, votes, [order], method, voted=voted)
        exact = cost is VotesCost.EXACT
        near = smooth.exact_sensitivities if exact else smooth.local_sensitivities
        sensitivities = near(self.gaussian, votes, voted, order, asked.teachers)
        return Costs(float((each.asked + each.answered).sum()), sensitivities)

    @override
    def check_release(self, cost: VotesCost, poll: PollForm, order: float) -> None:
        if cost is VotesCost.DEPENDENT:
            unanimous = np.eye(1, poll.classes)
            smooth.local_sensitivities(self.gaussian, unanimous, np.ones(1, bool), order, 1)


def check_numbers(threshold: float, check_deviation: float, deviation: float) -> None:
    """Check the numbers of a vote with a check.

    Raises:
        InvalidParametersError: A deviation is not positive, or the threshold is not finite.
    """
    if not math.isfinite(threshold):
        raise InvalidParametersError(f"threshold={threshold}: must be a finite number of votes")
    checks.positive("check_deviation", check_deviation)
    checks.positive("deviation", deviation)


def largest(noisy: Numbers) -> Winners:
    """Return the class with the largest noisy count of every query."""
    winners: Winners = noisy.argmax(axis=1).astype(np.int64)
    return winners
