"""What noisy counts say: winners, sets and labels. All of it is post-processing."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_models.votes.label_ballots import Subset
from earshot_models.votes.rules.mechanisms import THRESHOLDS, Mechanism
from earshot_models.votes.tally.interface import Whole
from earshot_models.votes.tally.threshold_rules import against_thresholds


def outcomes(
    mechanism: Mechanism, totals: npt.NDArray[np.number], voters: float, teachers: float
) -> Whole:
    """The answers that noisy sums of ballots give.

    Args:
        mechanism: of the ballots.
        totals: (queries, entries).
        voters: n, the weight of all teachers whose ballots are in the sums.
        teachers: the weight of all, those that vanished included: thresholds are shares of it.

    Returns:
        The class of the largest count, int64 (queries,), or labels, zeros and ones (queries, k),
        `NONE` for a query none of whose labels reaches the bar. Of equal counts the lower class
        wins.
    """
    ballot = mechanism.ballot
    if isinstance(ballot, Subset):
        sets: Whole = ballot.sets()[totals.argmax(axis=1)]
        return sets
    if not mechanism.several:
        winners: Whole = totals.argmax(axis=1).astype(np.int64)
        return winners
    votes = totals.astype(np.float64) / ballot.vote
    if mechanism.name in THRESHOLDS:
        return against_thresholds(mechanism, votes * (teachers / voters), teachers)
    return (votes > voters / 2).astype(np.int64)
