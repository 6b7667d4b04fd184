"""Cost of labels that a curator decides one by one, and their sensitivity to one teacher.

Neighbours differ in one teacher's ballot, replaced by any other or, in the phone unit, by zeros.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs.bits import bit_divergence
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.dependent import dependent_divergence, log_other_answer
from earshot_models.votes.costs.outcomes import check_divergence, checked_orders
from earshot_protocol.arrays import Numbers
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import Ballot

Answered = npt.NDArray[np.bool_]

_QUERIES = 64
"""Queries whose labels are held at once."""


def number_divergences(
    numbers: npt.NDArray[np.number],
    threshold: float,
    deviation: float,
    orders: Numbers,
    method: Method,
    moved: float = 1.0,
) -> Numbers:
    """Return the cost of publishing whether a number + N(0, σ²) passes a threshold.

    Args:
        numbers: Numbers, (numbers,), which a neighbour changes by at most `moved`.
        threshold: Threshold T.
        deviation: Standard deviation σ of the noise.
        orders: Orders λ, each above 1.
        method: Method of working out the divergences.
        moved: Most by which a neighbour's number may differ.

    Returns:
        Divergences, (numbers, orders).
    """
    if method is Method.EXACT:
        return check_divergence(numbers, threshold, deviation, orders, moved)
    usual = bit_divergence(deviation, orders, moved)
    if method is Method.INDEPENDENT:
        return np.broadcast_to(usual, (len(numbers), len(orders)))
    log_q = log_other_answer(numbers, threshold, deviation)
    ratio = math.sqrt(2.0) * deviation / moved
    return np.minimum(dependent_divergence(log_q, ratio, orders), usual)


def squared_change(ballot: Ballot, unit: Unit = Unit.REPLACED_PHONE) -> float:
    """Return Δ², the squared L2 distance between votes of neighbours, in votes.

    For k labels it is k if ballots are not clipped, in both units. For clipped ones it is at most
    min(2τ², k), or less where two ballots of that length cannot be disjoint; for one that is left
    out it is τ².
    """
    return (ballot.l2(unit) / ballot.vote) ** 2


def gaussian_divergence(
    ballot: Ballot, deviation: float, orders: npt.ArrayLike, unit: Unit = Unit.REPLACED_PHONE
) -> Numbers:
    """Return λΔ²/2s², the cost of an answer against an observer of the noisy votes.

    Args:
        ballot: Ballot that one teacher casts on one query.
        deviation: Standard deviation s of the noise on votes.
        orders: Orders λ, each above 1.
        unit: Unit in which neighbours differ.

    Returns:
        Divergences, (orders,).

    Raises:
        InvalidParametersError: An order is 1 or less.
    """
    return checked_orders(orders) * squared_change(ballot, unit) / (2 * deviation**2)


class LabelChange:
    """Change of the votes for labels by one teacher: each by one of some sizes, within a total.

    A label that changes by a costs f(a), and f grows with a. So a label on both ballots, with a and
    a', costs no more than one that changes by the larger of both; and if f(a) ≤ c·a² for all sizes,
    labels together cost at most Σ c·e, where e ≤ the largest a² of each label and Σ e ≤ `room`. For
    ballots of zeros and ones, that is the sum over labels.
    """

    def __init__(self, ballot: Ballot, unit: Unit) -> None:
        labels = ballot.length
        ones = np.arange(labels + 1)
        held = np.eye(labels, dtype=np.int64)
        rows = np.cumsum(held, axis=0)  # one ballot of every size
        entries = np.append(0.0, ballot.cast(rows).max(axis=1) / ballot.vote)
        squares = ones * entries**2
        self.squared = squared_change(ballot, unit)
        self.sizes = np.unique(entries[1:])
        if unit is Unit.PHONE:
            self.room = float(squares.max())
        else:
            shared = np.maximum(0, ones[:, None] + ones - labels)
            larger = np.maximum(entries[:, None], entries) ** 2
            apart = (ones[:, None] - shared) * entries[:, None] ** 2
            apart = apart + (ones - shared) * entries**2
            self.room = float((apart + shared * larger).max())

    @property
    def most(self) -> float:
        """Largest squared change of one label."""
        return float(self.sizes[-1] ** 2)

    def cost(
        self,
        values: Numbers,
        threshold: float,
        deviation: float,
        orders: Numbers,
        method: Method,
        asked: Answered,
    ) -> Numbers:
        """Return the cost of bits, value + noise beyond the threshold, of all labels asked.

        Its shape is (queries, orders).
        """
        per_square: Numbers = np.max(
            [bit_divergence(deviation, orders, size) / size**2 for size in self.sizes], axis=0
        )
        # Labels that were not asked change nothing.
        squares = asked.sum(axis=1)[:, None] * self.most
        bits = np.minimum(squares, self.room) * per_square
        numbers = np.minimum(squares, self.squared) * orders / (2 * deviation**2)
        usual: Numbers = np.minimum(bits, numbers)
        if method is Method.INDEPENDENT:
            return usual
        alike, which = np.unique(values, return_inverse=True)
        which = which.reshape(values.shape)
        if method is Method.DEPENDENT:
            largest = float(self.sizes[-1])
            table = number_divergences(alike, threshold, deviation, orders, method, largest)
            found = _added(table, which, asked)
            return np.minimum(found, usual)
        table = np.max(
            [
                number_divergences(alike, threshold, deviation, orders, method, size) / size**2
                for size in self.sizes
            ],
            axis=0,
        )
        return np.minimum(self._worst(table, which, asked), usual)

    def _worst(self, table: Numbers, which: npt.NDArray[np.intp], asked: Answered) -> Numbers:
        """Return the largest Σ c·e within `room`: the most expensive labels first."""
        labels = asked.shape[1]
        if labels * self.most <= self.room:
            return self.most * _added(table, which, asked)
        squares = np.clip(self.room - self.most * np.arange(labels), 0.0, self.most)
        found = np.empty((len(which), table.shape[1]))
        for start in range(0, len(which), _QUERIES):
            part = slice(start, start + _QUERIES)
            costs = table[which[part]] * asked[part, :, None]
            ordered = -np.sort(-costs, axis=1)
            found[part] = np.einsum("qlo,l->qo", ordered, squares)
        return found


def _added(table: Numbers, which: npt.NDArray[np.intp], asked: Answered) -> Numbers:
    """Return the sum over labels, one at a time to save memory."""
    total = np.zeros((len(which), table.shape[1]))
    for label in range(which.shape[1]):
        total += table[which[:, label]] * asked[:, label, None]
    return total
