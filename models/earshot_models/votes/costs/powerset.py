"""Cost of publishing which of all 2^k sets of labels won, from the sets that were cast.

Uncast sets are interchangeable and computed as one kind of outcome with a multiplicity. So exact
distributions take no more work for a million sets than for the few that were cast.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs.outcomes import ERROR, checked_orders, law_divergence
from earshot_models.votes.subsets import SubsetVotes
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.privacy.mechanisms import Unit

_REACH = 9.0
_STEP = 0.25
_NARROW_STEP = 0.3
"""Step for the largest of M draws, which varies by 1/√(2 ln M); sums converge exponentially too."""


def log_other_set(votes: SubsetVotes, deviation: float) -> Numbers:
    """Bound the log-probability that Gaussian noise lets a set win without the most votes.

    q = min(½ Σ erfc(Δ_j / 2σ), 1 − 2^-k) over all sets, cast or not (Proposition 7 of Papernot et
    al., ICLR 2018, as Dziedzic et al., PoPETs 2023, Proposition 5.1).

    Args:
        votes: Votes for sets.
        deviation: Standard deviation σ of the noise on each count.

    Returns:
        ln q, (queries,).

    Raises:
        InvalidParametersError: σ is not positive.
    """
    from scipy.special import log_ndtr, logsumexp

    sigma = math.sqrt(2.0) * checks.positive("deviation", deviation)
    most, starts = votes.most, votes.starts
    uncast = votes.log_uncast + log_ndtr(-most / sigma)
    behind = log_ndtr((votes.counts - most[votes.query]) / sigma)
    found = np.empty(len(most))
    for query, (start, cast) in enumerate(zip(starts, votes.cast, strict=True)):
        others = behind[start : start + cast]
        others = np.delete(others, others.argmax())
        found[query] = logsumexp(np.append(others, uncast[query]))
    return np.minimum(found, math.log1p(-math.ldexp(1.0, -votes.labels)))


def set_divergence(
    votes: SubsetVotes, deviation: float, orders: npt.ArrayLike, unit: Unit = Unit.REPLACED_PHONE
) -> Numbers:
    """Return the largest divergence between the winning set here and at a neighbour.

    Both directions count. A neighbour has one vote moved from a set to any other, or, where a
    teacher is left out (`Unit.PHONE`), one vote fewer or more.

    Args:
        votes: Votes for sets.
        deviation: Standard deviation σ of the noise on each count.
        orders: Orders λ, each above 1.
        unit: Unit in which neighbours differ.

    Returns:
        Divergences, (queries, orders), each at most `ERROR` too large.

    Raises:
        InvalidParametersError: An order is 1 or less, or σ is not positive.
    """
    sigma, chosen = checks.positive("deviation", deviation), checked_orders(orders)
    log_uncast, known = votes.log_uncast, dict[tuple[int, ...], Numbers]()
    found = []
    for query, (start, cast) in enumerate(zip(votes.starts, votes.cast, strict=True)):
        counts = tuple(sorted(votes.counts[start : start + cast].tolist()))
        if counts not in known:
            kinds = _Kinds.of(counts, float(log_uncast[query]))
            known[counts] = _largest(kinds, sigma, chosen, unit is Unit.PHONE)
        found.append(known[counts])
    return np.array(found)


@dataclass(frozen=True)
class _Kinds:
    """Kinds of sets with equal counts: votes of each set, and ln of the number of such sets."""

    counts: Numbers
    log_times: Numbers

    @classmethod
    def of(cls, counts: tuple[int, ...], log_uncast: float) -> _Kinds:
        each, times = np.unique(counts, return_counts=True)
        if log_uncast == -math.inf:
            return cls(each.astype(np.float64), np.log(times))
        return cls(np.append(0.0, each), np.append(log_uncast, np.log(times)))

    def moves(self, left_out: bool) -> list[tuple[int | None, int | None]]:
        """Return (source, target) kinds of a moved vote; None where one is added or removed."""
        kinds = range(len(self.counts))
        voted = [kind for kind in kinds if self.counts[kind] > 0]
        if left_out:
            return [(kind, None) for kind in voted] + [(None, kind) for kind in kinds]
        return [
            (source, target)
            for source in voted
            for target in kinds
            if source != target or self.log_times[target] > 0
        ]

    def fewer(self, taken: list[int]) -> Numbers:
        """Return ln of the number of sets of each kind, without these, (kinds,)."""
        logs = self.log_times.copy()
        for kind in taken:
            # In double precision, subtracting 1 from e^36 or more changes nothing.
            left = math.expm1(logs[kind]) if logs[kind] < 36 else math.inf
            if left != math.inf:
                logs[kind] = math.log(left) if left > 0.5 else -math.inf
        return logs


def _largest(kinds: _Kinds, sigma: float, orders: Numbers, left_out: bool) -> Numbers:
    """Return the largest divergence for one query."""
    moves = kinds.moves(left_out)
    logs, others, times = _laws(kinds, sigma, moves)
    divergences = law_divergence(logs, others, orders, times)
    worst: Numbers = divergences.max(axis=0, initial=0.0) + ERROR
    return worst


def _laws(
    kinds: _Kinds, sigma: float, moves: list[tuple[int | None, int | None]]
) -> tuple[Numbers, Numbers, Numbers]:
    """Return for each move the law of the winning set before and after, and multiplicities.

    All are logarithms, (moves, kinds + 2): for every kind, the sets whose counts stay; then the set
    that loses a vote, and the set that gets it, either of which may be missing.
    """
    from scipy.special import log_ndtr, logsumexp

    log_all = float(logsumexp(kinds.log_times))
    narrow = math.sqrt(2 * log_all)
    step = sigma * min(_STEP, _NARROW_STEP / max(narrow, 1.0))
    low = kinds.counts.min() - 1 - _REACH * sigma
    high = kinds.counts.max() + 1 + (_REACH + narrow) * sigma
    points = np.arange(low, high, step)
    changed = (kinds.counts + np.array([[0.0], [-1.0], [1.0]]))[..., None]
    standard = (points - changed) / sigma
    below, density = log_ndtr(standard), -0.5 * standard**2
    whole = (np.exp(kinds.log_times)[:, None] * below[0]).sum(axis=0)

    def winning(kinds: list[int], change: int, all_below: Numbers) -> Numbers:
        """Return the log-probability that a set of each kind wins, up to a constant."""
        parts = density[change, kinds] - below[change, kinds] + all_below
        found: Numbers = logsumexp(parts, axis=-1)
        return found

    shape = (len(moves), len(kinds.counts) + 2)
    logs, others, times = np.zeros(shape), np.zeros(shape), np.full(shape, -np.inf)
    every = list(range(len(kinds.counts)))
    before = winning(every, 0, whole)
    before -= logsumexp(before + kinds.log_times)
    for row, (source, target) in enumerate(moves):
        all_below = whole.copy()
        ends = [(kind, sign) for kind, sign in ((source, 1), (target, 2)) if kind is not None]
        for kind, change in ends:
            all_below += below[change, kind] - below[0, kind]
        times[row, :-2] = kinds.fewer([kind for kind, _ in ends])
        logs[row, :-2] = before
        others[row, :-2] = winning(every, 0, all_below)
        for kind, change in ends:
            place = change - 3
            times[row, place], logs[row, place] = 0.0, before[kind]
            others[row, place] = winning([kind], change, all_below)[0]
        there = times[row] > -np.inf
        others[row, there] -= logsumexp(others[row, there] + times[row, there])
    return logs, others, times
