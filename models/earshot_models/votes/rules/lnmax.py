"""LNMax: the class with the largest noisy count, by Laplace noise."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs import costs
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.counts import checked_votes
from earshot_models.votes.electorate import PollForm
from earshot_models.votes.rules.laws import laplace_law
from earshot_models.votes.rules.one_winner import OneWinnerRule, Winners
from earshot_models.votes.rules.rule import Times, VoteKind
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.overriding import override
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.privacy.events import Event, Pure
from earshot_protocol.privacy.mechanisms import BallotSum, Unit
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import OneHot


@dataclass(frozen=True)
class LNMax:
    """Sampler of the class with the largest count, Laplace noise added (Papernot et al. 2017).

    argmax_j n_j + Lap(1/γ).

    Attributes:
        gamma: Inverse of the noise's scale, γ.

    Raises:
        InvalidParametersError: The inverse scale γ is not positive and finite.
    """

    gamma: float

    def __post_init__(self) -> None:
        checks.positive("gamma", self.gamma)

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Winners:
        """Return one class for every query, as `gnmax.GNMax.winners` does."""
        table = checked_votes(votes)
        return np.asarray(noisy_counts.with_laplace(table, 1 / self.gamma, random).argmax(axis=1))


@dataclass(frozen=True, kw_only=True)
class LNMaxRule(OneWinnerRule):
    """Answer with the class that has most votes, by Laplace noise.

    Attributes:
        sigma: Scale of the Laplace noise on a count (1/γ), in votes.
    """

    name: ClassVar[str] = "lnmax"
    noise_name: ClassVar[str] = "gamma's inverse"
    exact: ClassVar[bool] = False

    @classmethod
    @override
    def least_noise(cls, epsilon: float, delta: float, queries: int, unit: Unit) -> float:
        from earshot_models.votes.costs import calibration

        return calibration.laplace_scale(epsilon, delta, queries, OneHot(2).l1(unit))

    @property
    def sampler(self) -> LNMax:
        """Sampler of answers."""
        return LNMax(1 / self.sigma)

    @override
    def drawn(self, votes: Numbers, random: RandomBytes) -> Winners:
        return self.sampler.winners(votes, random)

    @override
    def law(self, votes: Numbers) -> Numbers:
        return laplace_law(votes, 1 / self.sigma)

    @override
    def answer_divergences(
        self, votes: Numbers, orders: Numbers, method: Method, weight: float
    ) -> Numbers:
        return costs.laplace_answer(1 / self.sigma, votes, orders, method, weight)

    @override
    def curator_events(
        self, poll: PollForm, times: Times, unit: Unit, weight: int
    ) -> tuple[Event, ...]:
        """Return a curator's releases: pure ε, γ for each count that one vote changes.

        A moved vote changes two counts; a teacher left out changes one.
        """
        cost = weight * self.ballot(poll).l1(unit) / self.sigma
        return (Pure(cost, times[VoteKind.VOTES]),) if cost and times[VoteKind.VOTES] else ()

    @override
    def summed(
        self,
        poll: PollForm,
        kind: VoteKind,
        queries: int,
        weight: int,
        delta: float,
        survivors: int,
    ) -> BallotSum:
        return BallotSum(2 / self.sigma, weight * queries, survivors, largest_entry=weight)

    @override
    def lead_in_doubt(self, confidence: float) -> float:
        from scipy import optimize

        # P(|D| > x) of a difference of two Laplace variables of scale 1.
        tail = optimize.brentq(lambda x: math.exp(-x) * (1 + x / 2) - (1 - confidence), 0.0, 50.0)
        return float(tail) * self.sigma
