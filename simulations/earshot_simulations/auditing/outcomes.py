"""Laws of outcomes at some votes and at all neighbours, and their joint privacy loss."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_protocol.arrays import Numbers
from earshot_simulations.auditing.losses import Bracket, Losses, composed, loss, outcome_epsilon

_STEP = 2e-4
_DOUBT = 1e-10
"""Relative error of a probability that is a sum over points of quadrature."""

Votes = tuple[float, ...]
"""Votes of each class, label or set of labels."""


@dataclass(frozen=True)
class Pair:
    """Laws of an outcome here and at a neighbour.

    Attributes:
        here: Probabilities, float64 (outcomes,).
        there: Probabilities of the same outcomes at the neighbour.
        times: Independent outcomes of these laws.
    """

    here: Numbers
    there: Numbers
    times: int = 1


def convolved_epsilon(pairs: Sequence[Pair], queries: int, delta: float) -> Bracket:
    """Return ε of some equal queries of independent outcomes, in the worse of both directions.

    Args:
        pairs: Outcomes of one query.
        queries: Number of queries.
        delta: Value of δ.
    """
    ways: list[list[Losses]] = [[], []]
    for pair in pairs:
        for way, (p, q) in zip(
            ways, ((pair.here, pair.there), (pair.there, pair.here)), strict=True
        ):
            way.append(loss(p, q, _STEP).times(pair.times * queries))
    found = [composed(way).epsilon(delta) for way in ways]
    return Bracket(max(each.low for each in found), max(each.high for each in found))


def counted_epsilon(
    here: Numbers, others: Iterable[Numbers], queries: int, delta: float
) -> Bracket:
    """Return ε of some equal queries of few outcomes, at the worst neighbour.

    The counts of the outcomes are sufficient; all possible counts are enumerated.

    Args:
        here: Law of one query.
        others: Laws of the same outcomes at all neighbours.
        queries: Number of queries.
        delta: Value of δ.
    """
    worst, ours = Bracket(0.0, 0.0), multinomial_law(here, queries)
    for other in others:
        theirs = multinomial_law(other, queries)
        for p, q in ((ours, theirs), (theirs, ours)):
            found = outcome_epsilon(p, q, delta, queries * _DOUBT)
            worst = max(worst, found, key=lambda each: each.low)
    return worst


def multinomial_law(chances: Numbers, queries: int) -> Numbers:
    """Return the law of the counts of outcomes in independent queries."""
    from scipy.special import gammaln, xlogy

    ends = np.array(
        list(itertools.combinations(range(queries + len(chances) - 1), len(chances) - 1))
    )
    first, last = np.full((len(ends), 1), -1), np.full((len(ends), 1), queries + len(chances) - 1)
    times = np.diff(np.hstack([first, ends, last]), axis=1) - 1
    logs = gammaln(queries + 1) - gammaln(times + 1).sum(axis=1) + xlogy(times, chances).sum(axis=1)
    law: Numbers = np.exp(logs)
    return law


def with_check(law: Numbers, agreement: float, check: ConfidentCheck | None) -> Numbers:
    """Return a law of answers, with that of no answer last if there is a check."""
    from scipy.stats import norm

    if check is None:
        return law
    passing = float(norm.cdf((agreement - check.threshold) / check.deviation))
    return np.append(passing * law, 1 - passing)


def moved_votes(votes: Votes) -> list[Votes]:
    """Return every table with one vote moved from a class or set to another."""
    found = []
    for source, target in itertools.permutations(range(len(votes)), 2):
        if votes[source]:
            table = list(votes)
            table[source] -= 1
            table[target] += 1
            found.append(tuple(table))
    return found


def moved_labels(votes: Votes, most: int) -> list[Votes]:
    """Return every table with at most this many labels changed by one vote."""
    moves = itertools.product((-1, 0, 1), repeat=len(votes))
    return [
        tuple(vote + move for vote, move in zip(votes, each, strict=True))
        for each in moves
        if 0 < sum(map(abs, each)) <= most
    ]
