"""Laws of what a curator publishes of votes with several winners, worked out anew.

None of it comes from the accounting: labels have normal laws, and rules against thresholds say
their own (`votes.rules.laws`). Sets of labels alone take the quadrature of the winner of all
classes (`votes.costs.outcomes.log_winning`), which has a test of its own, on a table that holds
every set.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from earshot_models.votes.costs.outcomes import log_winning
from earshot_models.votes.rules.binary import BinaryVoting
from earshot_models.votes.rules.tau import ClippedVoting
from earshot_simulations.auditing.laws import Numbers
from earshot_simulations.auditing.losses import Bracket, Losses, composed, loss

_STEP = 2e-4


@dataclass(frozen=True)
class Pair:
    """Laws of an outcome here and at a neighbour, and how many independent ones of them there are.

    Attributes:
        here: probabilities, float64 (outcomes,).
        there: of the same outcomes.
        times: how many.
    """

    here: Numbers
    there: Numbers
    times: int = 1


def measured(pairs: list[Pair], queries: int, delta: float) -> Bracket:
    """ε of some queries of independent outcomes, in the worse of both directions.

    Args:
        pairs: of one query.
        queries: alike.
        delta: δ.
    """
    ways: list[list[Losses]] = [[], []]
    for pair in pairs:
        for way, (p, q) in zip(
            ways, ((pair.here, pair.there), (pair.there, pair.here)), strict=True
        ):
            way.append(loss(p, q, _STEP).times(pair.times * queries))
    found = [composed(way).epsilon(delta) for way in ways]
    return Bracket(max(each.low for each in found), max(each.high for each in found))


def farthest(here: Numbers, laws: list[Numbers]) -> Numbers:
    """Of some laws the one whose outcomes differ most, by the larger χ² distance."""

    def apart(there: Numbers) -> float:
        square = np.square(here - there)
        return float(max((square / each).sum() for each in (here, there)))

    return max(laws, key=apart)


def label_law(voting: BinaryVoting | ClippedVoting, votes: float) -> Numbers:
    """That a label wins, does not win, or has no answer."""
    from scipy.stats import norm

    win = float(norm.cdf((votes - voting.teachers / 2) / voting.deviation))
    passing = 1.0
    if voting.check is not None:
        agreement = max(votes, voting.teachers - votes)
        passing = float(norm.cdf((agreement - voting.check.threshold) / voting.check.deviation))
    law = [passing * win, passing * (1 - win), 1 - passing]
    return np.array(law if voting.check is not None else law[:2])


def set_law(counts: tuple[int, ...], deviation: float) -> Numbers:
    """Of each set of labels, of which `counts` holds all, cast or not."""
    law: Numbers = np.exp(log_winning(np.array(counts), deviation))
    return law


def moved_votes(counts: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Every table with one vote moved from one set to another."""
    found = []
    for source, target in itertools.permutations(range(len(counts)), 2):
        if counts[source]:
            table = list(counts)
            table[source] -= 1
            table[target] += 1
            found.append(tuple(table))
    return found


def moved_labels(votes: tuple[float, ...], most: int) -> list[tuple[float, ...]]:
    """Every table with at most so many labels changed by one vote."""
    moves = itertools.product((-1, 0, 1), repeat=len(votes))
    return [
        tuple(vote + move for vote, move in zip(votes, each, strict=True))
        for each in moves
        if 0 < sum(map(abs, each)) <= most
    ]
