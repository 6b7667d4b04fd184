"""Laws of what a curator publishes of votes with several winners, worked out anew.

None of it comes from the accounting: labels have normal laws, thresholds from a grid those of the
exponential mechanism, and an adaptive threshold on three labels is an angle. Sets of labels alone
take the quadrature of the winner of all classes (`votes.costs.outcomes.log_winning`), which
has a test of its own, on a table that holds every set.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np

from earshot_models.votes.costs.outcomes import log_winning
from earshot_models.votes.rules.multi_winner import BinaryVoting, ClippedVoting
from earshot_models.votes.rules.thresholds import GridThreshold
from earshot_simulations.auditing.laws import Numbers
from earshot_simulations.auditing.losses import Bracket, Losses, composed, loss

_STEP = 2e-4
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


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


def threshold_law(votes: Numbers, threshold: float, deviation: float) -> Numbers:
    """Of each of 2^L answers, in the order of `answers_of`."""
    from scipy.stats import norm

    wins = norm.cdf((np.asarray(votes) - threshold) / deviation)
    return np.array([float(np.prod(np.where(each, wins, 1 - wins))) for each in answers_of(votes)])


def answers_of(votes: Numbers) -> list[tuple[int, ...]]:
    """All answers on so many labels."""
    return list(itertools.product((0, 1), repeat=len(votes)))


def grid_law(voting: GridThreshold, votes: Numbers) -> Numbers:
    """Of each threshold with each answer: more than is published."""
    room = voting.room(np.asarray(votes, dtype=np.float64)[None])[0] / voting.scale
    chosen = np.exp(room - np.logaddexp.reduce(room))
    each = [threshold_law(votes, limit, voting.deviation) for limit in voting.grid]
    return np.concatenate([p * law for p, law in zip(chosen, each, strict=True)])


SIDES = ((1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 1, 1), (0, 0, 1), (1, 0, 1))
"""Which of three labels are above the widest gap."""


def widest_gap_law(votes: Numbers, deviation: float) -> Numbers:
    """Of each of `SIDES`, for three labels with normal noise before the gap is looked for.

    What all three have in common changes nothing, so this is about a point of the plane with normal
    noise. Which labels are above the widest gap is which of six directions, 60° apart, the point is
    nearest to: the two halves of a sector differ in the order of the two labels on one side.
    """
    from scipy.stats import norm

    axes = np.array([[1, -1, 0], [1, 1, -2]]) / np.sqrt([[2.0], [6.0]])
    mean = axes @ np.asarray(votes, dtype=np.float64) / deviation
    found = []
    for side in SIDES:
        across, up = axes @ np.array(side, dtype=np.float64)
        angles = math.atan2(up, across) + math.pi / 6 * _NODES
        toward = mean[0] * np.cos(angles) + mean[1] * np.sin(angles)
        # ∫ r exp(−|r·u − m|²/2) dr / 2π along each angle.
        still = math.exp(-float(mean @ mean) / 2)
        density = still + math.sqrt(2 * math.pi) * toward * np.exp(
            (toward**2 - mean @ mean) / 2
        ) * norm.cdf(toward)
        found.append(float(_WEIGHTS @ density) / 12)
    return np.array(found)


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
