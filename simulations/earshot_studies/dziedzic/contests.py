"""Elections with several winners over many queries: who wins, and what it costs, by noise.

Noise is counted as the authors of Private Multi-Winner Voting do, so that figures stand beside
theirs: σ of Binary and τ voting is `claims.printed_deviation` on the votes.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.voting.multi_winner import BinaryVoting, ClippedVoting, PowersetVoting
from earshot_protocol.voting.subsets import SubsetVotes
from earshot_server.accounting.votes.claims import (
    claimed_binary,
    claimed_clipped,
    claimed_powerset,
    classic_rho,
    printed_deviation,
)
from earshot_server.accounting.votes.costs import Method
from earshot_server.accounting.votes.dependent import dependent_divergence, log_other_winner
from earshot_server.accounting.votes.multi_winner import (
    gaussian_divergence,
    label_divergences,
    set_divergences,
)

Numbers = NDArray[np.float64]

ORDERS: Numbers = np.unique(np.concatenate([np.linspace(1.1, 5, 40), np.geomspace(5, 256, 30)]))
"""λ at which divergences are added up: at ε = 20 the best is about 2.5."""

_HARDLY = 1e-6
"""σ that stands for no noise."""


class Contest(Protocol):
    """The votes on some queries under one rule."""

    def winners(self, sigma: float, generator: np.random.Generator) -> NDArray[np.int64]:
        """Outcomes 0 or 1, int64 (queries, labels); σ = 0 adds no noise."""

    def claimed(self, sigma: float) -> Numbers:
        """What each query costs as is claimed, (queries, orders).

        Of each label, or of all sets, Theorem 6 of Papernot et al. (2018), or the claim whatever
        the votes where that is less.
        """

    def independently_claimed(self, sigma: float) -> Numbers:
        """What a query costs as is claimed whatever the votes, (orders,)."""

    def exactly(self, sigma: float) -> Numbers:
        """What each query's published winners cost by their laws, (queries, orders)."""

    def counted(self, sigma: float) -> Numbers:
        """What the noisy counts of one query cost, whatever the votes, (orders,)."""

    def gap(self) -> float:
        """Votes of the winner beyond those of the second, on average over all decisions."""

    def rows(self, start: int, end: int) -> Contest:
        """On some of the queries."""

    def __len__(self) -> int:
        """How many queries there are."""


@dataclass(frozen=True)
class ByLabel:
    """Binary voting, or τ voting where ballots are clipped.

    Attributes:
        counts: V¹ of each label, float64 (queries, labels).
        teachers: n.
        tau: τ; None for Binary voting, also where it would clip nothing.
        norm: of τ.
    """

    counts: Numbers
    teachers: int
    tau: float | None = None
    norm: int = 2

    def __len__(self) -> int:
        return len(self.counts)

    def _rule(self, sigma: float) -> BinaryVoting | ClippedVoting:
        deviation = printed_deviation(max(sigma, _HARDLY))
        if self.tau is None:
            return BinaryVoting(self.teachers, deviation)
        return ClippedVoting(self.teachers, self.tau, self.norm, deviation)

    def winners(self, sigma: float, generator: np.random.Generator) -> NDArray[np.int64]:
        """See `Contest.winners`."""
        return self._rule(sigma).winners(self.counts, generator.bytes)

    def claimed(self, sigma: float) -> Numbers:
        """See `Contest.claimed`."""
        values, which = np.unique(self.counts, return_inverse=True)
        logs = log_other_winner(np.stack([self.teachers - values, values], axis=1), sigma)
        each = dependent_divergence(logs, sigma, ORDERS)
        places = which.reshape(self.counts.shape)
        found = np.zeros((len(self), len(ORDERS)))
        for label in range(self.counts.shape[1]):
            found += each[places[:, label]]
        return np.minimum(found, self.independently_claimed(sigma))

    def independently_claimed(self, sigma: float) -> Numbers:
        """See `Contest.independently_claimed`; "L2-DI" and "L1-DI" with τ."""
        if self.tau is None:
            return claimed_binary(self.counts.shape[1], sigma, ORDERS)
        return claimed_clipped(self.tau, self.norm, sigma, ORDERS)

    def exactly(self, sigma: float) -> Numbers:
        """See `Contest.exactly`."""
        return label_divergences(self._rule(sigma), self.counts, ORDERS, Method.EXACT).answered

    def counted(self, sigma: float) -> Numbers:
        """See `Contest.counted`."""
        return gaussian_divergence(self._rule(sigma), self.counts.shape[1], ORDERS)

    def gap(self) -> float:
        """See `Contest.gap`."""
        return float(np.abs(2 * self.counts - self.teachers).mean())

    def rows(self, start: int, end: int) -> ByLabel:
        """See `Contest.rows`."""
        return ByLabel(self.counts[start:end], self.teachers, self.tau, self.norm)


@dataclass(frozen=True)
class BySet:
    """Powerset voting.

    Attributes:
        votes: of the sets.
    """

    votes: SubsetVotes

    def __len__(self) -> int:
        return len(self.votes.starts)

    def _rule(self, sigma: float) -> PowersetVoting:
        return PowersetVoting(self.votes.labels, max(sigma, _HARDLY))

    def winners(self, sigma: float, generator: np.random.Generator) -> NDArray[np.int64]:
        """See `Contest.winners`."""
        return self._rule(sigma).winners(self.votes, generator.bytes)

    def claimed(self, sigma: float) -> Numbers:
        """See `Contest.claimed`."""
        return set_divergences(self._rule(sigma), self.votes, ORDERS, Method.DEPENDENT).answered

    def independently_claimed(self, sigma: float) -> Numbers:
        """See `Contest.independently_claimed`."""
        return claimed_powerset(sigma, ORDERS)

    def exactly(self, sigma: float) -> Numbers:
        """See `Contest.exactly`."""
        return set_divergences(self._rule(sigma), self.votes, ORDERS, Method.EXACT).answered

    def counted(self, sigma: float) -> Numbers:
        """See `Contest.counted`: a vote leaves one set for another, and σ is on each count."""
        return claimed_powerset(sigma, ORDERS)

    def gap(self) -> float:
        """See `Contest.gap`."""
        votes = self.votes
        order = np.lexsort((-votes.counts, votes.query))
        place = np.minimum(votes.starts + 1, len(order) - 1)
        second = np.where(votes.cast > 1, votes.counts[order][place], 0)
        return float((votes.most - second).mean())

    def rows(self, start: int, end: int) -> BySet:
        """See `Contest.rows`."""
        votes = self.votes
        first = votes.starts[start:end]
        after = votes.starts[end] if end < len(self) else len(votes.counts)
        own = slice(first[0], after)
        changed = {"sets": votes.sets[own], "counts": votes.counts[own], "starts": first - first[0]}
        # Sets of at most so many labels stay that.
        return BySet(type(votes)(**(vars(votes) | changed)))


def binary(ballots: NDArray[np.int8]) -> ByLabel:
    """Binary voting on ballots of 0 and 1, (teachers, queries, labels)."""
    return ByLabel(BinaryVoting(len(ballots), 1.0).votes(ballots), len(ballots))


def clipped(ballots: NDArray[np.int8], tau: float, norm: int = 2) -> ByLabel:
    """τ voting on ballots; Binary voting where τ would clip nothing."""
    labels = ballots.shape[2]
    if tau >= (labels if norm == 1 else math.sqrt(labels)):
        return binary(ballots)
    votes = ClippedVoting(len(ballots), tau, norm, 1.0).votes(ballots)
    return ByLabel(votes, len(ballots), tau, norm)


def powerset(ballots: NDArray[np.int8]) -> BySet:
    """Powerset voting on ballots of 0 and 1, (teachers, queries, labels)."""
    return BySet(PowersetVoting(ballots.shape[2], 1.0).votes(ballots))


def answered(divergences: Numbers, epsilon: float, delta: float) -> int:
    """How many queries, one after the other, cost no more than ε by ε = R + ln(1/δ)/(λ − 1).

    Args:
        divergences: (queries, orders), or (orders,) of each of any number of queries.
        epsilon: ε.
        delta: δ.
    """
    checks.positive("epsilon", epsilon)
    room = epsilon + math.log(checks.probability("delta", delta)) / (ORDERS - 1)
    if divergences.ndim == 1:
        # Costs are in proportion to λ here, so that the best one is in closed form.
        rho = float(divergences[0] / ORDERS[0])
        return math.floor(classic_rho(epsilon, delta) / rho)
    fits = (np.cumsum(divergences, axis=0) <= room).any(axis=1)
    return int(fits.sum())  # costs only grow: once too much, always
