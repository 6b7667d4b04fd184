"""Exact cost of publishing outcomes of noisy votes, from the distributions of outcomes.

A curator publishes winners, not noisy counts. The probability that each class wins is computed for
the votes and for all neighbours with one moved vote, and from these the Rényi divergence, in both
directions. It is at most that of the noisy counts, and usually far less. As it depends on votes, it
is private itself.
"""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs.dependent import checked_votes
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidParametersError

ERROR = 1e-11
"""Margin added to each divergence: more than the error of quadrature and rounding."""

_REACH = 9.0
"""Deviations beyond the counts at which integration stops; the tail is negligible."""
_LARGEST_RATIO = 200.0
"""Largest log-ratio of two chances of being below a point: products of two stay well in floats."""
_STEP = 0.25
"""Deviations between points of quadrature: sums over smooth bells converge exponentially."""


def log_winning(votes: npt.NDArray[np.number], deviation: float) -> Numbers:
    """Return the log-probability that each class wins, argmax n_j + N(0, σ²).

    Args:
        votes: Votes for each class, (classes,).
        deviation: Standard deviation σ of the noise on each count.

    Returns:
        ln of the probability of each class, (classes,); the probabilities add up to 1.

    Raises:
        InvalidParametersError: Votes are not finite or for fewer than two classes, or σ is not
            positive.
    """
    counts = checked_votes(np.asarray(votes)[None])[0]
    found: Numbers = _laws(_Grid(counts, checks.positive("deviation", deviation), 0.0), [])[0]
    return found


def outcome_divergence(
    votes: npt.NDArray[np.number], deviation: float, orders: npt.ArrayLike, weight: float = 1.0
) -> Numbers:
    """Return the largest divergence between winners here and at a neighbour, both directions.

    A neighbour has one vote of this weight moved from one class to another.

    Args:
        votes: Votes for each class, (queries, classes).
        deviation: Standard deviation σ of the noise on each count.
        orders: Orders λ, each above 1.
        weight: Weight of the vote that is moved.

    Returns:
        Divergences, (queries, orders), each at most `ERROR` too large.

    Raises:
        InvalidParametersError: `votes` is not a table of finite numbers, at least 0, with two
            classes or more, an order is 1 or less, or the weight or σ is not positive.
    """
    table = checked_votes(votes)
    if (table < 0).any():
        raise InvalidParametersError("votes: must not be negative")
    sigma, chosen = checks.positive("deviation", deviation), checked_orders(orders)
    moved = checks.positive("weight", weight)
    # Names of classes do not matter, and many queries share the same counts.
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
    """Return the largest divergence of a check's answers, most + N(0, σ₁²) ≥ T, both directions.

    A neighbour's number is larger or smaller by at most this weight.

    Args:
        most: Number that is checked, (queries,).
        threshold: Threshold T.
        deviation: Standard deviation σ₁ of the noise.
        orders: Orders λ, each above 1.
        weight: Weight of one vote.

    Returns:
        Divergences, (queries, orders), each at most `ERROR` too large.

    Raises:
        InvalidParametersError: A number is not finite, an order is 1 or less, or σ₁ is not
            positive.
    """
    from scipy.special import log_ndtr

    sigma, chosen = checks.positive("deviation", deviation), checked_orders(orders)
    moved = checks.positive("weight", weight)
    distances = (np.atleast_1d(np.asarray(most, dtype=np.float64)) - threshold) / sigma
    if not np.isfinite(distances).all():
        raise InvalidParametersError("most, threshold: must be finite numbers")
    here = np.stack([log_ndtr(distances), log_ndtr(-distances)], axis=-1)
    worst = np.zeros((len(distances), len(chosen)))
    for shifted in (distances - moved / sigma, distances + moved / sigma):
        there = np.stack([log_ndtr(shifted), log_ndtr(-shifted)], axis=-1)
        np.maximum(worst, law_divergence(here, there, chosen), out=worst)
    return worst + ERROR


class _Grid:
    """Points of quadrature for some counts, and the chance of lying below each, class by class."""

    def __init__(self, counts: Numbers, sigma: float, moved: float) -> None:
        from scipy.special import log_ndtr

        low = counts.min() - moved - _REACH * sigma
        high = counts.max() + moved + _REACH * sigma
        points = np.arange(low, high, _STEP * sigma)
        # Each class has a row for its votes, for fewer, and for more: (3, classes, points).
        standard = (points - (counts + np.array([[0.0], [-moved], [moved]]))[..., None]) / sigma
        self.below = log_ndtr(standard)
        self.density = -0.5 * standard**2
        self.log_step = np.log(_STEP / np.sqrt(2 * np.pi))


_FEWER, _MORE = 1, 2


def _largest(counts: Numbers, sigma: float, orders: Numbers, moved: float) -> Numbers:
    """Return the largest divergence for one query, whose counts are sorted."""
    _, first = np.unique(counts, return_index=True)
    last = {counts[place]: place for place in range(len(counts))}
    moves = []
    for here, there in itertools.product(first.tolist(), repeat=2):
        # Classes of equal counts are interchangeable: one is enough, or two for moves between them.
        target = last[counts[there]]
        if counts[here] >= moved and here != target:
            moves.append((here, target))
    laws = _laws(_Grid(counts, sigma, moved), moves)
    divergences = law_divergence(laws[:1], laws[1:], orders)
    worst: Numbers = divergences.max(axis=0, initial=0.0) + ERROR
    return worst


def _laws(grid: _Grid, moves: list[tuple[int, int]]) -> Numbers:
    """Return log-probabilities that classes win, (1 + moves, classes): unmoved, then for each move.

    Class j wins with ∫ density_j ∏ below_i, i ≠ j. A move multiplies `below` by one ratio for its
    source and one for its target, so that sums over points are products of matrices; where a class
    is itself a source or a target, its density moves too. Rows are scaled by their largest entry,
    so that underflow is negligible.
    """
    apart = grid.below - grid.below[0]
    if np.abs(apart).max() > _LARGEST_RATIO:
        return np.stack([_law(grid, move) for move in (None, *moves)])
    ratios = np.exp(apart)
    logs = grid.density + grid.below[0].sum(axis=0) - grid.below[0]  # (kinds, classes, points)
    tops = logs.max(axis=-1, keepdims=True)
    weights = np.exp(logs - tops)
    sources, targets = (np.array([move[end] for move in moves], dtype=np.int64) for end in (0, 1))
    rows = np.arange(1, 1 + len(moves))
    sums = np.empty((1 + len(moves), logs.shape[1]))
    sums[0] = weights[0].sum(axis=-1)
    fewer, more = ratios[_FEWER][sources], ratios[_MORE][targets]
    sums[1:] = (fewer * more) @ weights[0].T
    scales = np.repeat(tops[0, :, 0][None], 1 + len(moves), axis=0)
    sums[rows, sources] = (weights[_FEWER][sources] * more).sum(axis=-1)
    sums[rows, targets] = (weights[_MORE][targets] * fewer).sum(axis=-1)
    scales[rows, sources] = tops[_FEWER, sources, 0]
    scales[rows, targets] = tops[_MORE, targets, 0]
    found = np.log(sums) + scales + grid.log_step
    laws: Numbers = found - _log_sum(found)[:, None]
    return laws


def _law(grid: _Grid, move: tuple[int, int] | None) -> Numbers:
    """Return one row of `_laws`, for votes whose weight is many deviations."""
    kinds = np.zeros(grid.below.shape[1], dtype=np.int64)
    if move is not None:
        kinds[move[0]], kinds[move[1]] = _FEWER, _MORE
    classes = np.arange(len(kinds))
    below = grid.below[kinds, classes]
    found = _log_sum(grid.density[kinds, classes] + below.sum(axis=0) - below) + grid.log_step
    law: Numbers = found - _log_sum(found)
    return law


def law_divergence(
    law: Numbers, other: Numbers, orders: Numbers, log_times: Numbers | float = 0.0
) -> Numbers:
    """Return the larger Rényi divergence of two distributions of outcomes, of both directions.

    Args:
        law: Natural logarithm of the probability of each outcome, (…, outcomes).
        other: Natural logarithm of the probability of each outcome in the other law, (…, outcomes).
        orders: Orders λ, each above 1.
        log_times: Natural logarithm of the number of outcomes of each kind, (…, outcomes).

    Returns:
        Divergences, (…, orders).
    """
    times = np.asarray(log_times, dtype=np.float64)
    ways = (_divergence(*each, orders, times) for each in ((law, other), (other, law)))
    return np.maximum(*ways)


def _divergence(law: Numbers, other: Numbers, orders: Numbers, times: Numbers) -> Numbers:
    """Return ln Σ p^λ p'^(1−λ) / (λ − 1), without cancelling where both laws are nearly alike."""
    law, other, times = np.broadcast_arrays(law, other, times)
    weights = (law + times)[..., None, :]
    ratios = (law - other)[..., None, :] * (orders - 1)[:, None]
    with np.errstate(over="ignore"):
        near = (np.exp(weights) * np.expm1(np.minimum(ratios, 1.0))).sum(axis=-1)
    found = np.log1p(near)
    far = (ratios > 1.0).any(axis=-1)
    if far.any():
        found[far] = _log_sum((weights + ratios)[far])
    divergence: Numbers = np.maximum(found, 0.0) / (orders - 1)
    return divergence


def _log_sum(logs: Numbers) -> Numbers:
    """Return ln Σ exp over the last axis; SciPy's function does the same but takes longer."""
    most = logs.max(axis=-1, keepdims=True)
    found: Numbers = np.log(np.exp(logs - most).sum(axis=-1)) + most[..., 0]
    return found


def checked_orders(orders: npt.ArrayLike) -> Numbers:
    """Return orders λ as float64, (orders,).

    Raises:
        InvalidParametersError: An order is not finite or not above 1.
    """
    chosen = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    if not (np.isfinite(chosen) & (chosen > 1)).all():
        raise InvalidParametersError("orders: must be finite and above 1")
    return chosen
