"""Votes with several winners over many queries: the winners and their cost, by noise.

Noise is stated as in Private Multi-Winner Voting, so that figures can be compared: σ of Binary and
τ voting is `printed_deviation(σ)` on the votes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from earshot_models.votes.costs.claims import (
    claimed_binary,
    claimed_clipped,
    claimed_powerset,
    classic_rho,
    printed_deviation,
)
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.dependent import dependent_divergence, log_other_winner
from earshot_models.votes.costs.multi_winner import gaussian_divergence
from earshot_models.votes.electorate import PollForm
from earshot_models.votes.rules.binary import BinaryRule
from earshot_models.votes.rules.label_votes import LabelRule
from earshot_models.votes.rules.powerset import PowersetRule
from earshot_models.votes.rules.tau import TauRule
from earshot_models.votes.subsets import SubsetVotes, subset_votes
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.overriding import override

ORDERS: Numbers = np.unique(np.concatenate([np.linspace(1.1, 5, 40), np.geomspace(5, 256, 30)]))
"""Orders λ of the divergences; at ε = 20 the best is about 2.5."""

_HARDLY = 1e-6
"""Value of σ that is used for no noise."""


class Contest(Protocol):
    """The votes on some queries under one rule."""

    def winners(self, sigma: float, generator: np.random.Generator) -> NDArray[np.int64]:
        """Return outcomes 0 or 1, int64 (queries, labels); σ = 0 adds no noise."""

    def claimed(self, sigma: float) -> Numbers:
        """Return the claimed cost of each query, (queries, orders).

        It is, for each label or over all sets, Theorem 6 of Papernot et al. (2018), or
        `independently_claimed` if that is less.
        """

    def independently_claimed(self, sigma: float) -> Numbers:
        """Return the claimed cost of a query whatever the votes, (orders,)."""

    def exactly(self, sigma: float) -> Numbers:
        """Return the exact cost of each query's published winners, (queries, orders)."""

    def counted(self, sigma: float) -> Numbers:
        """Return the cost of the noisy counts of one query, whatever the votes, (orders,)."""

    def gap(self) -> float:
        """Return the winner's mean lead over the second, in votes."""

    def rows(self, start: int, end: int) -> Contest:
        """Return the votes on some of the queries."""

    def __len__(self) -> int:
        """Return the number of queries."""


@dataclass(frozen=True)
class ByLabel(Contest):
    """Binary voting, or τ voting, in which ballots are clipped.

    Attributes:
        counts: Positive votes V¹ for each label, float64 (queries, labels).
        teachers: Number of teachers (n).
        tau: Norm τ to which ballots are clipped; None for Binary voting, also where τ would clip
            nothing.
        norm: Norm used to clip ballots: 1 or 2.
    """

    counts: Numbers
    teachers: int
    tau: float | None = None
    norm: int = 2

    def __len__(self) -> int:
        return len(self.counts)

    def _rule(self, sigma: float) -> LabelRule:
        deviation = printed_deviation(max(sigma, _HARDLY))
        if self.tau is None:
            return BinaryRule(sigma=deviation)
        return TauRule(sigma=deviation, tau=self.tau, norm=self.norm)

    @override
    def winners(self, sigma: float, generator: np.random.Generator) -> NDArray[np.int64]:
        return self._rule(sigma).outcomes(self.counts, self.teachers, generator.bytes)

    @override
    def claimed(self, sigma: float) -> Numbers:
        values, which = np.unique(self.counts, return_inverse=True)
        logs = log_other_winner(np.stack([self.teachers - values, values], axis=1), sigma)
        each = dependent_divergence(logs, sigma, ORDERS)
        places = which.reshape(self.counts.shape)
        found = np.zeros((len(self), len(ORDERS)))
        for label in range(self.counts.shape[1]):
            found += each[places[:, label]]
        return np.minimum(found, self.independently_claimed(sigma))

    @override
    def independently_claimed(self, sigma: float) -> Numbers:
        """Return the claimed cost whatever the votes, "L2-DI" or "L1-DI" with τ, (orders,)."""
        if self.tau is None:
            return claimed_binary(self.counts.shape[1], sigma, ORDERS)
        return claimed_clipped(self.tau, self.norm, sigma, ORDERS)

    @override
    def exactly(self, sigma: float) -> Numbers:
        rule = self._rule(sigma)
        return rule.divergences(self.counts, self.teachers, ORDERS, Method.EXACT).answered

    @override
    def counted(self, sigma: float) -> Numbers:
        rule = self._rule(sigma)
        ballot = rule.ballot(PollForm(self.counts.shape[1], self.teachers))
        return gaussian_divergence(ballot, rule.sigma, ORDERS)

    @override
    def gap(self) -> float:
        return float(np.abs(2 * self.counts - self.teachers).mean())

    @override
    def rows(self, start: int, end: int) -> ByLabel:
        return ByLabel(self.counts[start:end], self.teachers, self.tau, self.norm)


@dataclass(frozen=True)
class BySet(Contest):
    """Powerset voting.

    Attributes:
        votes: Votes for the sets.
    """

    votes: SubsetVotes

    def __len__(self) -> int:
        return len(self.votes.starts)

    def _rule(self, sigma: float) -> PowersetRule:
        return PowersetRule(sigma=max(sigma, _HARDLY))

    @override
    def winners(self, sigma: float, generator: np.random.Generator) -> NDArray[np.int64]:
        return self._rule(sigma).outcomes(self.votes, generator.bytes)

    @override
    def claimed(self, sigma: float) -> Numbers:
        return self._rule(sigma).divergences(self.votes, ORDERS, Method.DEPENDENT).answered

    @override
    def independently_claimed(self, sigma: float) -> Numbers:
        return claimed_powerset(sigma, ORDERS)

    @override
    def exactly(self, sigma: float) -> Numbers:
        return self._rule(sigma).divergences(self.votes, ORDERS, Method.EXACT).answered

    @override
    def counted(self, sigma: float) -> Numbers:
        """Return the cost of counts with σ on each; a changed vote moves between two sets."""
        return claimed_powerset(sigma, ORDERS)

    @override
    def gap(self) -> float:
        votes = self.votes
        order = np.lexsort((-votes.counts, votes.query))
        place = np.minimum(votes.starts + 1, len(order) - 1)
        second = np.where(votes.cast > 1, votes.counts[order][place], 0)
        return float((votes.most - second).mean())

    @override
    def rows(self, start: int, end: int) -> BySet:
        votes = self.votes
        first = votes.starts[start:end]
        after = votes.starts[end] if end < len(self) else len(votes.counts)
        own = slice(first[0], after)
        changed = {"sets": votes.sets[own], "counts": votes.counts[own], "starts": first - first[0]}
        # The votes keep their type, which may limit the labels of a set.
        return BySet(type(votes)(**(vars(votes) | changed)))


def binary(ballots: NDArray[np.int8]) -> ByLabel:
    """Return Binary voting on ballots of 0 and 1, (teachers, queries, labels)."""
    return ByLabel(BinaryRule(sigma=1.0).votes(ballots), len(ballots))


def clipped(ballots: NDArray[np.int8], tau: float, norm: int = 2) -> ByLabel:
    """Return τ voting on ballots; Binary voting where τ would clip nothing."""
    labels = ballots.shape[2]
    if tau >= (labels if norm == 1 else math.sqrt(labels)):
        return binary(ballots)
    votes = TauRule(sigma=1.0, tau=tau, norm=norm).votes(ballots)
    return ByLabel(votes, len(ballots), tau, norm)


def powerset(ballots: NDArray[np.int8]) -> BySet:
    """Return Powerset voting on ballots of 0 and 1, (teachers, queries, labels)."""
    return BySet(subset_votes(ballots))


@dataclass(frozen=True)
class LimitedVotes(SubsetVotes):
    """Votes for sets of at most `largest` labels, fewer sets than 2^k (Table 15).

    Attributes:
        largest: Most labels of a set (v).
    """

    largest: int

    @property
    def log_uncast(self) -> Numbers:
        """Logarithm of the number of the Σ C(k, i), i ≤ v, sets without votes; −∞ for none."""
        every = sum(math.comb(self.labels, size) for size in range(self.largest + 1))
        with np.errstate(divide="ignore"):
            logs: Numbers = np.log((every - self.cast).astype(np.float64))
        return logs


def limited_votes(ballots: NDArray[np.int8], probabilities: Numbers, largest: int) -> LimitedVotes:
    """Count ballots, each reduced to its `largest` likeliest labels.

    Args:
        ballots: Ballots of 0 or 1, (teachers, queries, labels).
        probabilities: Probability of each label, in the shape of the ballots.
        largest: Most labels of a set (v).
    """
    checks.whole("largest", largest, 1, ballots.shape[-1])
    ranks = np.argsort(np.argsort(-np.where(ballots, probabilities, -1.0), axis=-1), axis=-1)
    votes = subset_votes(np.where(ranks < largest, ballots, 0))
    return LimitedVotes(votes.sets, votes.counts, votes.starts, largest)


def answered(divergences: Numbers, epsilon: float, delta: float) -> int:
    """Return the number of successive queries that cost at most ε, by ε = R + ln(1/δ)/(λ − 1).

    Args:
        divergences: Cost of each query (queries, orders), or (orders,) of each of any number of
            queries.
        epsilon: Budget ε of all queries.
        delta: Parameter δ of all queries.
    """
    checks.positive("epsilon", epsilon)
    room = epsilon + math.log(checks.probability("delta", delta)) / (ORDERS - 1)
    if divergences.ndim == 1:
        # Costs are proportional to λ here, so the best λ has a closed form.
        rho = float(divergences[0] / ORDERS[0])
        return math.floor(classic_rho(epsilon, delta) / rho)
    fits = (np.cumsum(divergences, axis=0) <= room).any(axis=1)
    return int(fits.sum())  # costs only grow, so the queries that fit are the first ones
