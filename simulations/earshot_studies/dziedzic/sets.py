"""Sets of at most a few labels: Table 15 of Private Multi-Winner Voting."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.voting.subsets import SubsetVotes, subset_votes


@dataclass(frozen=True)
class LimitedVotes(SubsetVotes):
    """Votes for sets of so many labels at most, of which there are fewer than 2^k.

    Attributes:
        largest: v, labels of a set.
    """

    largest: int

    @property
    def log_uncast(self) -> NDArray[np.float64]:
        """How many of the Σ C(k, i), i ≤ v, sets nobody casts: their logarithms; −∞ of none."""
        every = sum(math.comb(self.labels, size) for size in range(self.largest + 1))
        with np.errstate(divide="ignore"):
            logs: NDArray[np.float64] = np.log((every - self.cast).astype(np.float64))
        return logs


def limited_votes(
    ballots: NDArray[np.int8], probabilities: NDArray[np.float64], largest: int
) -> LimitedVotes:
    """Count ballots of which the likeliest labels stay, where there are more than a set may have.

    Args:
        ballots: 0 or 1, (teachers, queries, labels).
        probabilities: of each label, of the same shape.
        largest: v.
    """
    checks.whole("largest", largest, 1, ballots.shape[-1])
    ranks = np.argsort(np.argsort(-np.where(ballots, probabilities, -1.0), axis=-1), axis=-1)
    votes = subset_votes(np.where(ranks < largest, ballots, 0))
    return LimitedVotes(votes.sets, votes.counts, votes.starts, largest)
