"""What it costs a curator to publish which labels have more votes than a threshold.

Of L labels one teacher changes as many as it has outputs: all of them, or, where only its v largest
count, v if it is left out and 2v if it is replaced (`changed_labels`). How many labels the training
data hold bounds nothing: a model that is trained anew may answer anything.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.divergences import renyi
from earshot_protocol.privacy.events import BoundedRange
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.multi_winner import checked_label_votes
from earshot_protocol.voting.thresholds import (
    AdaptiveThreshold,
    GNThreshold,
    GridThreshold,
    ThresholdVoting,
)
from earshot_server.accounting.votes.bits import bit_divergence
from earshot_server.accounting.votes.costs import Divergences, Method
from earshot_server.accounting.votes.dependent import dependent_divergence
from earshot_server.accounting.votes.multi_winner import number_divergences
from earshot_server.accounting.votes.outcomes import checked_orders

Numbers = npt.NDArray[np.float64]

_QUERIES = 64
"""Whose labels are worked out at once."""


def threshold_divergences(
    voting: ThresholdVoting,
    votes: npt.NDArray[np.number],
    orders: npt.ArrayLike,
    method: Method,
    unit: Unit = Unit.REPLACED_PHONE,
) -> Divergences:
    """What a vote against a threshold costs, query by query.

    From the mechanism alone λΔ²/2σ² (`gaussian_divergence`), or less where a threshold is fixed and
    only bits leave (`bits.bit_divergence`). By votes, Theorem 6 of Papernot et al. (ICLR 2018) with
    how likely noise changes any label, as Muschiol (2021), Theorems 11, 13 and 14. An adaptive
    threshold has no exact laws here; its cost from the mechanism alone stands in. A threshold from
    a grid costs `grid_divergence` beside the worst threshold of that grid.

    Args:
        voting: the rule.
        votes: s, (queries, labels).
        orders: λ, each above 1.
        method: what the divergences are worked out from.
        unit: what neighbours differ in.

    Returns:
        `asked`, of the check, zeros without one, and `answered`, which is paid on top where there
        is an answer; each (queries, orders).

    Raises:
        InvalidInputError: votes out of range.
        InvalidParametersError: an order of 1 or less, or more winners than labels.
    """
    table, chosen = checked_label_votes(votes, voting.teachers), checked_orders(orders)
    asked = np.zeros((len(table), len(chosen)))
    if voting.check is not None:
        threshold, deviation = voting.check.threshold, voting.check.deviation
        asked = number_divergences(table.max(axis=1), threshold, deviation, chosen, method)
    changed = changed_labels(voting, table.shape[1], unit)
    match voting:
        case GNThreshold():
            answer = _fixed(table, voting.threshold, voting.deviation, chosen, method, changed)
        case GridThreshold():
            worst = np.max(
                [
                    _fixed(table, threshold, voting.deviation, chosen, method, changed)
                    for threshold in voting.grid
                ],
                axis=0,
            )
            answer = worst + grid_divergence(voting.scale, chosen)
        case AdaptiveThreshold():
            answer = np.broadcast_to(_gaussian(voting.deviation, chosen, changed), asked.shape)
            if method is Method.DEPENDENT:
                log_q = log_other_gap(table, voting.deviation)
                answer = dependent_divergence(
                    log_q, threshold_ratio(voting.deviation, changed), chosen
                )
    return Divergences(asked, answer)


def changed_labels(voting: ThresholdVoting, labels: int, unit: Unit = Unit.REPLACED_PHONE) -> int:
    """Δ²: labels whose votes one teacher changes, each by one vote at most.

    Raises:
        InvalidParametersError: a teacher may name more labels than there are.
    """
    if voting.most is None:
        return labels
    if voting.most > labels:
        raise InvalidParametersError(
            f"most={voting.most}: no vote has more winners than its {labels} labels"
        )
    return voting.most if unit is Unit.PHONE else min(labels, 2 * voting.most)


def gaussian_divergence(
    voting: ThresholdVoting, labels: int, orders: npt.ArrayLike, unit: Unit = Unit.REPLACED_PHONE
) -> Numbers:
    """Of the noisy votes themselves, λΔ²/2σ², (orders,): what they cost whoever sees them.

    Raises:
        InvalidParametersError: an order of 1 or less, or more winners than labels.
    """
    changed = changed_labels(voting, labels, unit)
    return _gaussian(voting.deviation, checked_orders(orders), changed)


def grid_divergence(scale: float, orders: npt.ArrayLike) -> Numbers:
    """Of a threshold that Gumbel noise chose from a grid, (orders,): λ/2g², or 2/g where less.

    Room changes by one vote at most, so losses have a range of 2/g (Cesar and Rogers, ALT 2021).

    Args:
        scale: g.
        orders: λ, each above 1.

    Raises:
        InvalidParametersError: an order of 1 or less, or no g.
    """
    chosen = checked_orders(orders)
    return renyi(BoundedRange(2 / checks.positive("scale", scale)), chosen)


def log_other_labels(votes: Numbers, threshold: float, deviation: float) -> Numbers:
    """How likely noise changes any label against a public threshold (Muschiol 2021, Theorem 13).

    q = 1 − ∏ Φ(|sᵢ − th| / σ), whatever ties labels to each other.

    Args:
        votes: s, (queries, labels).
        threshold: th.
        deviation: σ.

    Returns:
        ln q, (queries,).
    """
    from scipy.special import log_ndtr

    return _log_any(log_ndtr(np.abs(votes - threshold) / deviation).sum(axis=1))


def log_other_gap(votes: Numbers, deviation: float) -> Numbers:
    """A bound on how likely noise changes which labels are above the widest gap.

    Where no noise reaches a quarter of what the widest gap has more than the next, d₁ − d₂, it
    stays the widest and labels stay on their side: q ≤ 1 − (2Φ((d₁ − d₂)/4σ) − 1)^L. Two labels
    have one gap, and d₂ is its negative: noise must turn the gap around.

    Args:
        votes: s, (queries, labels).
        deviation: σ.

    Returns:
        ln q, (queries,).

    Raises:
        InvalidInputError: votes on one label.
    """
    first, second = widest_gaps(votes)
    return log_chance(first - second, deviation, votes.shape[1])


def widest_gaps(votes: Numbers) -> tuple[Numbers, Numbers]:
    """The widest gap between sorted votes and the next, each (queries,); see `log_other_gap`.

    Raises:
        InvalidInputError: votes on one label.
    """
    labels = votes.shape[1]
    if labels < 2:
        raise InvalidInputError("votes on one label have no gap: must be on two at least")
    gaps = np.sort(np.diff(np.sort(votes, axis=1), axis=1), axis=1)
    return gaps[:, -1], gaps[:, -2] if labels > 2 else -gaps[:, -1]


def log_chance(clear: Numbers, deviation: float, labels: int) -> Numbers:
    """The bound of `log_other_gap` for a widest gap that is so much wider than the next.

    Args:
        clear: d₁ − d₂, (queries,).
        deviation: σ.
        labels: L.
    """
    from scipy.special import log_ndtr

    beyond = 2 * np.exp(log_ndtr(-clear / (4 * deviation)))
    with np.errstate(divide="ignore"):
        return _log_any(labels * np.log1p(-np.minimum(beyond, 1.0)))


def _log_any(log_none: Numbers) -> Numbers:
    """The logarithm of how likely anything happens, from that of nothing."""
    with np.errstate(divide="ignore"):
        logs: Numbers = np.log(-np.expm1(np.minimum(log_none, 0.0)))
    return logs


def _fixed(
    table: Numbers,
    threshold: float,
    deviation: float,
    orders: Numbers,
    method: Method,
    changed: int,
) -> Numbers:
    usual = changed * bit_divergence(deviation, orders)
    if method is Method.INDEPENDENT:
        return np.broadcast_to(usual, (len(table), len(orders)))
    if method is Method.DEPENDENT:
        log_q = log_other_labels(table, threshold, deviation)
        found = dependent_divergence(log_q, threshold_ratio(deviation, changed), orders)
        return np.minimum(found, usual)
    # A neighbour changes so many labels, each by one vote at most: those that cost most.
    found = np.empty((len(table), len(orders)))
    for start in range(0, len(table), _QUERIES):
        block = table[start : start + _QUERIES]
        costs = number_divergences(block.ravel(), threshold, deviation, orders, method)
        each = np.sort(costs.reshape(*block.shape, len(orders)), axis=1)[:, ::-1]
        found[start : start + _QUERIES] = each[:, :changed].sum(axis=1)
    return np.minimum(found, usual)


def _gaussian(deviation: float, orders: Numbers, changed: int) -> Numbers:
    return orders * changed / (2 * deviation**2)


def threshold_ratio(deviation: float, changed: int) -> float:
    """σ/Δ as Theorem 6 has it, where λ over its square is λΔ²/2σ²."""
    return deviation * math.sqrt(2.0 / changed)
