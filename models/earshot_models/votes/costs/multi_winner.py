"""Cost of votes with several winners to a curator: checks, answers, and who counts as a neighbour.

Two costs are kept apart, since an answer is paid only where it was given: `asked` is that of the
check of every query, `answered` is added for the labels that passed it. They compose, because an
answer's noise is fresh; a ledger adds up what was really answered.

Neighbours differ in one teacher's ballot, replaced by any other or, in the phone unit, by zeros.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.costs.bits import bit_divergence
from earshot_models.votes.costs.costs import Divergences, Method
from earshot_models.votes.costs.dependent import dependent_divergence, log_other_answer
from earshot_models.votes.costs.outcomes import check_divergence, checked_orders
from earshot_models.votes.costs.powerset import log_other_set, set_divergence
from earshot_models.votes.counts import checked_label_votes
from earshot_models.votes.subsets import SubsetVotes
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import Ballot

Numbers = npt.NDArray[np.float64]
Answered = npt.NDArray[np.bool_]


class SetVoting(Protocol):
    """Curator's vote for sets of labels."""

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise on each count, σ."""

    @property
    def check(self) -> ConfidentCheck | None:
        """Check of the query, on the largest count; None for none."""


class LabelVoting(SetVoting, Protocol):
    """Curator's vote in which each label is decided by itself."""

    @property
    def teachers(self) -> int:
        """Number of teachers, n, public."""

    def ballot(self, labels: int) -> Ballot:
        """Return the ballot that one teacher casts on one query."""


_QUERIES = 64
"""Queries whose labels are held at once."""


def label_divergences(
    voting: LabelVoting,
    votes: npt.NDArray[np.number],
    orders: npt.ArrayLike,
    method: Method,
    unit: Unit = Unit.REPLACED_PHONE,
    answered: Answered | None = None,
) -> Divergences:
    """Return what `BinaryVoting` and `ClippedVoting` cost, query by query.

    From the mechanism alone, noise of deviation s on counts that one ballot moves by Δ in L2 costs
    λΔ²/2s² (`gaussian_divergence`), and mere bits of it cost less (`bits.bit_divergence`). By
    votes, each label's bound is added up (Theorem 6 of Papernot et al., ICLR 2018), and the smaller
    of both is taken, order by order.

    Args:
        voting: Voting rule.
        votes: Votes for labels, (queries, labels), as its `winners` takes them.
        orders: Orders λ, each above 1.
        method: Method of working out the divergences.
        unit: Unit in which neighbours differ.
        answered: Labels that passed the check, bool (queries, labels); all by default.

    Returns:
        Divergences `asked` and `answered`, each (queries, orders); zeros asked without a check.

    Raises:
            InvalidInputError: Votes are out of range.
            InvalidParametersError: An order is 1 or less, or τ clips nothing.
    """
    table, chosen = checked_label_votes(votes, voting.teachers), checked_orders(orders)
    change = _Change(voting, table.shape[1], unit)
    everything = np.ones(table.shape, dtype=np.bool_)
    asked = np.zeros((len(table), len(chosen)))
    if voting.check is not None:
        agreement = np.maximum(table, voting.teachers - table)
        limit, deviation = voting.check.threshold, voting.check.deviation
        asked = change.cost(agreement, limit, deviation, chosen, method, everything)
    passed = everything if answered is None else answered
    half = voting.teachers / 2
    return Divergences(asked, change.cost(table, half, voting.deviation, chosen, method, passed))


def set_divergences(
    voting: SetVoting,
    votes: SubsetVotes,
    orders: npt.ArrayLike,
    method: Method,
    unit: Unit = Unit.REPLACED_PHONE,
) -> Divergences:
    """Return what a vote for sets costs, query by query; the second is paid where it answers.

    By noise alone, that is λ/σ² for a vote that moves, and λ/2σ² for one that comes or goes; by
    votes, Theorem 6 for all 2^k sets; exactly, by their laws. Its check costs at most λ/2σ_T².

    Args:
        voting: Voting rule.
        votes: Votes for sets.
        orders: Orders λ, each above 1.
        method: Method of working out the divergences.
        unit: Unit in which neighbours differ.

    Returns:
        Divergences `asked` and `answered`, each (queries, orders); zeros asked without a check.

    Raises:
            InvalidParametersError: An order is 1 or less.
    """
    chosen = checked_orders(orders)
    asked = np.zeros((len(votes.starts), len(chosen)))
    if voting.check is not None:
        threshold, deviation = voting.check.threshold, voting.check.deviation
        asked = number_divergences(votes.most, threshold, deviation, chosen, method)
    # This is σ/Δ of Theorem 6, whose λ/σ² is for two counts that change by one each.
    ratio = voting.deviation * (math.sqrt(2.0) if unit is Unit.PHONE else 1.0)
    answer: Numbers
    match method:
        case Method.INDEPENDENT:
            answer = np.broadcast_to(chosen / ratio**2, asked.shape)
        case Method.DEPENDENT:
            answer = dependent_divergence(log_other_set(votes, voting.deviation), ratio, chosen)
        case Method.EXACT:
            answer = set_divergence(votes, voting.deviation, chosen, unit)
    return Divergences(asked, answer)


def number_divergences(
    numbers: npt.NDArray[np.number],
    threshold: float,
    deviation: float,
    orders: Numbers,
    method: Method,
    moved: float = 1.0,
) -> Numbers:
    """Return what it costs to say whether a number + N(0, σ²) passes a threshold.

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


def squared_change(voting: LabelVoting, labels: int, unit: Unit = Unit.REPLACED_PHONE) -> float:
    """Return Δ², the squared L2 distance between votes of neighbours, in votes.

    It is k for `BinaryVoting`, whatever neighbours are; for `ClippedVoting` at most min(2τ², k), or
    less where two ballots of that length do not fit beside each other; τ² for one that is left out.

    Raises:
        InvalidParametersError: There are no labels, or τ does not clip this many.
    """
    ballot = voting.ballot(labels)
    return (ballot.l2(unit) / ballot.vote) ** 2


def gaussian_divergence(
    voting: LabelVoting, labels: int, orders: npt.ArrayLike, unit: Unit = Unit.REPLACED_PHONE
) -> Numbers:
    """Return λΔ²/2s², what an answer costs against anybody who sees the noisy votes themselves.

    Args:
        voting: Voting rule.
        labels: Number of labels k.
        orders: Orders λ, each above 1.
        unit: Unit in which neighbours differ.

    Returns:
        Divergences, (orders,).

    Raises:
        InvalidParametersError: An order is 1 or less, there are no labels, or τ clips nothing.
    """
    change = squared_change(voting, labels, unit)
    return checked_orders(orders) * change / (2 * voting.deviation**2)


class _Change:
    """Change that one teacher may make: labels, each by one of some sizes, within a total.

    A label that changes by a costs f(a), and f grows with a. So a label that both ballots hold, by
    a and a', costs no more than one that changes by the larger of both; and if f(a) ≤ c·a² for all
    sizes, labels together cost at most Σ c·e, where e ≤ the largest a² of each label and Σ e ≤
    `room`. For ballots of zeros and ones, that is the sum over labels.
    """

    def __init__(self, voting: LabelVoting, labels: int, unit: Unit) -> None:
        ballot = voting.ballot(labels)
        ones = np.arange(labels + 1)
        held = np.eye(labels, dtype=np.int64)
        rows = np.cumsum(held, axis=0)  # one ballot of every size
        entries = np.append(0.0, ballot.cast(rows).max(axis=1) / ballot.vote)
        squares = ones * entries**2
        self.squared = squared_change(voting, labels, unit)
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
        """Largest square of what one label changes by."""
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
        """Return Σ c·e over the labels that cost most, as far as there is room."""
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
    """Return the sum over labels, holding only one number for each query and order."""
    total = np.zeros((len(which), table.shape[1]))
    for label in range(which.shape[1]):
        total += table[which[:, label]] * asked[:, label, None]
    return total
