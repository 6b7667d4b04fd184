"""Sets of at most a few labels: Table 15 of Private Multi-Winner Voting."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_models.votes.subsets import SubsetVotes, subset_votes
from earshot_protocol import checks


@dataclass(frozen=True)
class LimitedVotes(SubsetVotes):
    """Votes for sets of a limited number of labels, of which there are fewer than 2^k.

    Attributes:
        largest: Most labels of a set (v).
    """

    largest: int

    @property
    def log_uncast(self) -> NDArray[np.float64]:
        """Logarithm of the number of the Σ C(k, i), i ≤ v, sets without votes; −∞ for none."""
        every = sum(math.comb(self.labels, size) for size in range(self.largest + 1))
        with np.errstate(divide="ignore"):
            logs: NDArray[np.float64] = np.log((every - self.cast).astype(np.float64))
        return logs


def limited_votes(
    ballots: NDArray[np.int8], probabilities: NDArray[np.float64], largest: int
) -> LimitedVotes:
    """Count ballots, reduced to their likeliest labels if they have more than a set may have.

    Args:
        ballots: Ballots of 0 or 1, (teachers, queries, labels).
        probabilities: Probability of each label, in the shape of the ballots.
        largest: Most labels of a set (v).
    """
    checks.whole("largest", largest, 1, ballots.shape[-1])
    ranks = np.argsort(np.argsort(-np.where(ballots, probabilities, -1.0), axis=-1), axis=-1)
    votes = subset_votes(np.where(ranks < largest, ballots, 0))
    return LimitedVotes(votes.sets, votes.counts, votes.starts, largest)
