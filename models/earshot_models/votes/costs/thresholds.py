"""Cost of publishing which labels have more votes than a threshold, by a curator.

One teacher changes as many of L labels as it has outputs: all of them, or, where only its v largest
count, v if it is left out and 2v if it is replaced (`changed_labels`). The number of labels in the
training data is no bound: a retrained model may answer anything.

A published cost has noise of smooth sensitivity (`costs.releases`): bounds for every query are
added up and only then smoothed, as in `costs.smooth` for one winner. One teacher changes every sum
by one vote at most, so k teachers change the distance of a label from its threshold by at most k,
and q grows as this distance shrinks (`release_costs`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs.bits import bit_divergence
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.dependent import dependent_divergence
from earshot_models.votes.costs.multi_winner import number_divergences
from earshot_models.votes.costs.outcomes import checked_orders
from earshot_models.votes.costs.releases import Costs
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.divergences import renyi
from earshot_protocol.privacy.events import BoundedRange
from earshot_protocol.privacy.mechanisms import Unit

_QUERIES = 64
"""Queries whose labels are computed at a time."""
_LEAST = -200.0
"""Smallest ln q; smaller ones have the same cost."""
_CELLS = 20_000
"""Cells of ln q; each has the largest cost up to its end, so the cost never falls with q."""


def changed_labels(winners: int | None, labels: int, unit: Unit = Unit.REPLACED_PHONE) -> int:
    """Return Δ², the labels whose votes one teacher changes, each by at most one vote.

    Args:
        winners: Number of a teacher's largest outputs that count, v; None for all.
        labels: Number of labels L.
        unit: Unit in which neighbours differ.

    Raises:
        InvalidParametersError: A teacher may name more labels than there are.
    """
    if winners is None:
        return labels
    if winners > labels:
        raise InvalidParametersError(
            f"winners={winners}: must be at most {labels}, the number of labels"
        )
    return winners if unit is Unit.PHONE else min(labels, 2 * winners)


def gaussian_divergence(deviation: float, changed: int, orders: npt.ArrayLike) -> Numbers:
    """Return λΔ²/2σ², (orders,), the cost against an observer of the noisy votes.

    Args:
        deviation: Standard deviation σ of the noise on votes.
        changed: Labels whose votes a teacher changes, Δ².
        orders: Orders λ, each above 1.

    Raises:
        InvalidParametersError: An order is 1 or less.
    """
    return checked_orders(orders) * changed / (2 * deviation**2)


def grid_divergence(scale: float, orders: npt.ArrayLike) -> Numbers:
    """Return the cost of a threshold that Gumbel noise chose from a grid, (orders,).

    It is at most λ/2g² and 2/g: the distance to a threshold changes by at most one vote, so losses
    have a range of 2/g (Cesar and Rogers, ALT 2021).

    Args:
        scale: Scale g of the Gumbel noise.
        orders: Orders λ, each above 1.

    Raises:
        InvalidParametersError: An order is 1 or less, or g is not positive.
    """
    chosen = checked_orders(orders)
    return renyi(BoundedRange(2 / checks.positive("scale", scale)), chosen)


def log_other_labels(votes: Numbers, threshold: float, deviation: float) -> Numbers:
    """Return the log-probability that noise changes any label against a public threshold.

    q = 1 − ∏ Φ(|sᵢ − th| / σ) (Muschiol 2021, Theorem 13).

    Args:
        votes: Votes s, (queries, labels).
        threshold: Threshold th.
        deviation: Standard deviation σ of the noise.

    Returns:
        ln q, (queries,).
    """
    from scipy.special import log_ndtr

    return _log_any(log_ndtr(np.abs(votes - threshold) / deviation).sum(axis=1))


def log_nearer(votes: Numbers, threshold: float, moved: float, deviation: float) -> Numbers:
    """Bound the log-probability that noise changes a label, all `moved` votes nearer to it."""
    clear = np.maximum(np.abs(votes - threshold) - moved, 0.0)
    return log_other_labels(clear, 0.0, deviation)


def log_other_gap(votes: Numbers, deviation: float) -> Numbers:
    """Bound the log-probability that noise changes which labels are above the widest gap.

    Where no noise reaches a quarter of d₁ − d₂, by which the widest gap exceeds the next, it stays
    the widest and labels stay on their sides: q ≤ 1 − (2Φ((d₁ − d₂)/4σ) − 1)^L. Two labels have one
    gap, and d₂ is its negative: noise must turn the gap around.

    Args:
        votes: Votes s, (queries, labels).
        deviation: Standard deviation σ of the noise.

    Returns:
        ln q, (queries,).

    Raises:
        InvalidInputError: Votes are on one label.
    """
    first, second = widest_gaps(votes)
    return log_chance(first - second, deviation, votes.shape[1])


def widest_gaps(votes: Numbers) -> tuple[Numbers, Numbers]:
    """Return the widest gap between sorted votes and the next one, each (queries,).

    Two labels have only one gap (see `log_other_gap`).

    Raises:
        InvalidInputError: Votes are on one label.
    """
    labels = votes.shape[1]
    if labels < 2:
        raise InvalidInputError("votes: must be on at least two labels to have a gap")
    gaps = np.sort(np.diff(np.sort(votes, axis=1), axis=1), axis=1)
    return gaps[:, -1], gaps[:, -2] if labels > 2 else -gaps[:, -1]


def log_chance(clear: Numbers, deviation: float, labels: int) -> Numbers:
    """Return the bound of `log_other_gap`, given the lead of the widest gap over the next.

    Args:
        clear: Lead d₁ − d₂ of the widest gap, (queries,).
        deviation: Standard deviation σ of the noise.
        labels: Number of labels L.
    """
    from scipy.special import log_ndtr

    beyond = 2 * np.exp(log_ndtr(-clear / (4 * deviation)))
    with np.errstate(divide="ignore"):
        return _log_any(labels * np.log1p(-np.minimum(beyond, 1.0)))


def _log_any(log_none: Numbers) -> Numbers:
    """Return ln(1 − p), given ln p."""
    with np.errstate(divide="ignore"):
        logs: Numbers = np.log(-np.expm1(np.minimum(log_none, 0.0)))
    return logs


def fixed_divergences(
    table: Numbers,
    threshold: float,
    deviation: float,
    orders: Numbers,
    method: Method,
    changed: int,
) -> Numbers:
    """Return the cost of answers against a public threshold, (queries, orders).

    Args:
        table: Votes s, (queries, labels).
        threshold: Threshold th.
        deviation: Standard deviation σ of the noise.
        orders: Orders λ, each above 1.
        method: Method of working out the divergences.
        changed: Labels whose votes a teacher changes.
    """
    usual = changed * bit_divergence(deviation, orders)
    if method is Method.INDEPENDENT:
        return np.broadcast_to(usual, (len(table), len(orders)))
    if method is Method.DEPENDENT:
        log_q = log_other_labels(table, threshold, deviation)
        found = dependent_divergence(log_q, threshold_ratio(deviation, changed), orders)
        return np.minimum(found, usual)
    # A neighbour changes `changed` labels, each by at most one vote: those that cost most.
    found = np.empty((len(table), len(orders)))
    for start in range(0, len(table), _QUERIES):
        block = table[start : start + _QUERIES]
        costs = number_divergences(block.ravel(), threshold, deviation, orders, method)
        each = np.sort(costs.reshape(*block.shape, len(orders)), axis=1)[:, ::-1]
        found[start : start + _QUERIES] = each[:, :changed].sum(axis=1)
    return np.minimum(found, usual)


def gap_divergences(
    table: Numbers, deviation: float, orders: Numbers, method: Method, changed: int
) -> Numbers:
    """Return the cost of labels above the widest gap, as `fixed_divergences` does."""
    if method is Method.DEPENDENT:
        log_q = log_other_gap(table, deviation)
        return dependent_divergence(log_q, threshold_ratio(deviation, changed), orders)
    usual = gaussian_divergence(deviation, changed, orders)
    return np.broadcast_to(usual, (len(table), len(orders)))


def threshold_ratio(deviation: float, changed: int) -> float:
    """Return the ratio r of Theorem 6, for which λ/r² = λΔ²/2σ²."""
    return deviation * math.sqrt(2.0 / changed)


def release_costs(
    parts: Sequence[Callable[[float], Numbers]], fixed: float, teachers: int
) -> Costs:
    """Return the cost of queries by Theorem 6, made monotone, and its local sensitivities.

    Let q_d be that of labels d votes nearer to their threshold (farther, where d is negative).
    Votes that are d teachers away, and their neighbours, cost between c(q_{−d−1}) and c(q_{d+1}):
    the difference bounds LS_d, and that at d + 1 bounds LS_d of a neighbour.

    Args:
        parts: Functions that return the cost c(q_d) of every query: one for answers, one for
            checks.
        fixed: Cost that does not depend on votes.
        teachers: Number of teachers.

    Raises:
        InvalidParametersError: There are no teachers.
    """
    distances = np.arange(checks.whole("teachers", teachers) + 1.0)
    found = np.zeros(len(distances))
    for part in parts:
        for place, distance in enumerate(distances[:-1]):
            found[place] += (part(distance + 1) - part(-distance - 1)).sum()
        found[-1] += part(np.inf).sum()  # where all teachers differ, the votes can be any
    return Costs(fixed + float(sum(part(0.0).sum() for part in parts)), found)


class MonotoneBound:
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
