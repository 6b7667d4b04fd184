"""How far one teacher can change what votes against thresholds cost, near the actual votes.

As in `costs.smooth` for one winner, bounds for every query are added up and only then smoothed
(`costs.releases`). One teacher changes every sum by one vote at most, so k teachers change by k how
far a label is from its threshold, and with it q, which grows as labels come near.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs.bits import bit_divergence
from earshot_models.votes.costs.dependent import dependent_divergence, log_other_answer
from earshot_models.votes.costs.outcomes import checked_orders
from earshot_models.votes.costs.releases import Costs
from earshot_models.votes.costs.thresholds import (
    ThresholdVoting,
    changed_labels,
    threshold_ratio,
)
from earshot_models.votes.counts import checked_label_votes
from earshot_protocol import checks
from earshot_protocol.privacy.mechanisms import Unit

Numbers = npt.NDArray[np.float64]

_LEAST = -200.0
"""ln q below which the cost is taken to be that of this q."""
_CELLS = 20_000
"""Cells of ln q; each costs as much as the dearest q up to its end, so cost never falls with q."""


def release_costs(
    voting: ThresholdVoting,
    votes: npt.NDArray[np.number],
    answered: npt.NDArray[np.bool_],
    order: float,
    unit: Unit = Unit.REPLACED_PHONE,
) -> Costs:
    """Return what queries cost by Theorem 6, made monotone, and how far a neighbour's cost can be.

    Let q_d be that of labels d votes nearer to their threshold (farther, where d is negative).
    Votes that are d teachers away, and their neighbours, cost between c(q_{−d−1}) and c(q_{d+1}):
    the difference is a bound, and for a neighbour so is the one a teacher further on.

    Args:
        voting: Voting rule, with the noise that was really added.
        votes: Votes s of every query that was asked, (queries, labels).
        answered: Queries that were answered, bool (queries,); public, so the same for neighbours.
        order: Order λ of the divergence that is to be published.
        unit: Unit in which neighbours differ.

    Raises:
        InvalidInputError: Votes are out of range.
        InvalidParametersError: The order is 1 or less, or there are more winners than labels.
    """
    table = checked_label_votes(votes, voting.teachers)
    checked_orders([order])
    passed = np.asarray(answered, dtype=np.bool_)
    changed = changed_labels(voting, table.shape[1], unit)
    ratio = threshold_ratio(voting.deviation, changed)
    usual = voting.usual_divergence(order, changed)
    answer = _Monotone(ratio, order, usual)
    parts: list[Callable[[float], Numbers]] = [
        lambda moved: answer.cost(voting.log_other_answer(table[passed], moved))
    ]
    if voting.check is not None:
        limit, deviation = voting.check.threshold, voting.check.deviation
        bit = float(bit_divergence(deviation, [order])[0])
        check = _Monotone(np.sqrt(2.0) * deviation, order, bit)
        most = np.abs(table.max(axis=1) - limit)
        parts.append(
            lambda moved: check.cost(
                log_other_answer(np.maximum(most - moved, 0.0), 0.0, deviation)
            )
        )
    fixed = voting.choice_divergence(order) * int(passed.sum())
    distances = np.arange(checks.whole("teachers", voting.teachers) + 1.0)
    found = np.zeros(len(distances))
    for part in parts:
        for place, distance in enumerate(distances[:-1]):
            found[place] += (part(distance + 1) - part(-distance - 1)).sum()
        found[-1] += part(np.inf).sum()  # where all teachers differ, the votes can be any
    return Costs(fixed + float(sum(part(0.0).sum() for part in parts)), found)


class _Monotone:
    """Bound of Theorem 6 at one order, as steps that never fall with q."""

    def __init__(self, ratio: float, order: float, usual: float) -> None:
        self._ends = np.linspace(_LEAST, 0.0, _CELLS + 1)
        found = dependent_divergence(self._ends, ratio, [order])[:, 0]
        self._costs = np.maximum.accumulate(np.minimum(found, usual))

    def cost(self, log_q: Numbers) -> Numbers:
        """Return the cost of each q."""
        places = np.searchsorted(self._ends, np.minimum(log_q, 0.0))
        found: Numbers = self._costs[places]
        return found
