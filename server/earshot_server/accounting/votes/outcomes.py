"""What published outcomes of noisy votes cost exactly: the laws of outcomes, vote by vote.

A curator publishes who won, not the noisy counts. How likely each class wins can be worked out for
the votes and for all that differ from them by one vote that is moved, and so can the Rényi
divergence, in both directions. It is never more than that of the noisy counts, and mostly far less.
Like all that looks at votes, it is private itself.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_server.accounting.votes.dependent import checked_votes

Numbers = npt.NDArray[np.float64]

ERROR = 1e-11
"""Added to each divergence: more than what quadrature and rounding leave away."""

_REACH = 9.0
"""Deviations beyond the counts at which integrands end, relative to which nothing is left."""
_STEP = 0.25
"""Deviations between two points of quadrature: sums over smooth bells converge exponentially."""


def log_winning(votes: npt.NDArray[np.number], deviation: float) -> Numbers:
    """The law of the class with the largest noisy count, argmax n_j + N(0, σ²).

    Args:
        votes: (classes,), how many each class has.
        deviation: σ.

    Returns:
        ln of the probability of each class, (classes,), which add up to 1.

    Raises:
        InvalidParametersError: no finite votes for two classes or more, or no σ.
    """
    counts = checked_votes(np.asarray(votes)[None])[0]
    found: Numbers = _laws(_Grid(counts, checks.positive("deviation", deviation), 0.0), [])[0]
    return found


def outcome_divergence(
    votes: npt.NDArray[np.number], deviation: float, orders: npt.ArrayLike, weight: float = 1.0
) -> Numbers:
    """The largest divergence between who wins and who wins at a neighbour, in both directions.

    A neighbour has one vote of this weight moved from one class to another.

    Args:
        votes: (queries, classes), how many each class has.
        deviation: σ of the noise on each count.
        orders: λ, each above 1.
        weight: of the vote that is moved.

    Returns:
        (queries, orders), each at most `ERROR` too large.

    Raises:
        InvalidParametersError: no table of finite numbers with two classes or more, a count below
            0, an order of 1 or less, no weight, or no σ.
    """
    table = checked_votes(votes)
    if (table < 0).any():
        raise InvalidParametersError("votes: no class can have fewer than none")
    sigma, chosen = checks.positive("deviation", deviation), _checked_orders(orders)
    moved = checks.positive("weight", weight)
    # Names of classes change nothing, and most queries have counts in common.
    alike, which = np.unique(np.sort(table, axis=1), axis=0, return_inverse=True)
    found = np.stack([_largest(counts, sigma, chosen, moved) for counts in alike])
    divergences: Numbers = found[which.ravel()]
    return divergences


def check_divergence(
    most: npt.NDArray[np.number],
    threshold: float,
    deviation: float,
    orders: npt.ArrayLike,
    weight: float = 1.0,
) -> Numbers:
    """The largest divergence between answers of a check, most + N(0, σ₁²) ≥ T, in both directions.

    A neighbour's number is this weight larger or smaller at most.

    Args:
        most: (queries,), what is checked.
        threshold: T.
        deviation: σ₁.
        orders: λ, each above 1.
        weight: of one vote.

    Returns:
        (queries, orders), each at most `ERROR` too large.

    Raises:
        InvalidParametersError: a number that is not finite, an order of 1 or less, no σ₁.
    """
    from scipy.special import log_ndtr

    sigma, chosen = checks.positive("deviation", deviation), _checked_orders(orders)
    moved = checks.positive("weight", weight)
    distances = (np.atleast_1d(np.asarray(most, dtype=np.float64)) - threshold) / sigma
    if not np.isfinite(distances).all():
        raise InvalidParametersError("most, threshold: must be finite numbers")
    here = np.stack([log_ndtr(distances), log_ndtr(-distances)], axis=-1)
    worst = np.zeros((len(distances), len(chosen)))
    for shifted in (distances - moved / sigma, distances + moved / sigma):
        there = np.stack([log_ndtr(shifted), log_ndtr(-shifted)], axis=-1)
        np.maximum(worst, _both_ways(here, there, chosen), out=worst)
    return worst + ERROR


class _Grid:
    """Points of quadrature for some counts, and what lies below each point, class by class."""

    def __init__(self, counts: Numbers, sigma: float, moved: float) -> None:
        from scipy.special import log_ndtr

        low = counts.min() - moved - _REACH * sigma
        high = counts.max() + moved + _REACH * sigma
        points = np.arange(low, high, _STEP * sigma)
        # Of each class with its votes, with fewer, and with more: (3, classes, points).
        standard = (points - (counts + np.array([[0.0], [-moved], [moved]]))[..., None]) / sigma
        self.below = log_ndtr(standard)
        self.density = -0.5 * standard**2
        self.log_step = np.log(_STEP / np.sqrt(2 * np.pi))


_FEWER, _MORE = 1, 2


def _largest(counts: Numbers, sigma: float, orders: Numbers, moved: float) -> Numbers:
    """For one query, whose counts are sorted."""
    _, first = np.unique(counts, return_index=True)
    last = {counts[place]: place for place in range(len(counts))}
    moves = []
    for here, there in itertools.product(first.tolist(), repeat=2):
        # Classes of equal counts are alike: one of each is enough, or two if a vote stays there.
        target = last[counts[there]]
        if counts[here] >= moved and here != target:
            moves.append((here, target))
    laws = _laws(_Grid(counts, sigma, moved), moves)
    divergences = _both_ways(laws[:1], laws[1:], orders)
    worst: Numbers = divergences.max(axis=0, initial=0.0) + ERROR
    return worst


def _laws(grid: _Grid, moves: list[tuple[int, int]]) -> Numbers:
    """Log-probabilities of who wins, (1 + moves, classes): as votes are, then of each move."""
    from scipy.special import logsumexp

    whole = grid.below[0].sum(axis=0)
    logs = np.repeat((grid.density[0] - grid.below[0])[None], 1 + len(moves), axis=0)
    all_below = np.repeat(whole[None], 1 + len(moves), axis=0)
    for place, (source, target) in enumerate(moves, start=1):
        for moved, kind in ((source, _FEWER), (target, _MORE)):
            all_below[place] += grid.below[kind, moved] - grid.below[0, moved]
            logs[place, moved] = grid.density[kind, moved] - grid.below[kind, moved]
    found: Numbers = logsumexp(logs + all_below[:, None], axis=-1) + grid.log_step
    found -= logsumexp(found, axis=-1, keepdims=True)
    return found


def _both_ways(first: Numbers, second: Numbers, orders: Numbers) -> Numbers:
    """The larger divergence of two laws, (…, orders), from ln of probabilities, (…, outcomes)."""
    return np.maximum(_divergence(first, second, orders), _divergence(second, first, orders))


def _divergence(law: Numbers, other: Numbers, orders: Numbers) -> Numbers:
    """It is ln Σ p^λ p'^(1−λ) / (λ − 1), without cancelling where both laws are nearly the same."""
    from scipy.special import logsumexp

    law, other = np.broadcast_arrays(law, other)
    ratios = (law - other)[..., None, :] * (orders - 1)[:, None]
    with np.errstate(over="ignore"):
        near = (np.exp(law)[..., None, :] * np.expm1(np.minimum(ratios, 1.0))).sum(axis=-1)
    found = np.where(
        (ratios <= 1.0).all(axis=-1), np.log1p(near), logsumexp(law[..., None, :] + ratios, axis=-1)
    )
    divergence: Numbers = np.maximum(found, 0.0) / (orders - 1)
    return divergence


def _checked_orders(orders: npt.ArrayLike) -> Numbers:
    chosen = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    if not (np.isfinite(chosen) & (chosen > 1)).all():
        raise InvalidParametersError("orders: must be finite and above 1")
    return chosen
