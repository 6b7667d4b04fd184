"""Distributions of outcomes for the auditor, derived independently of the costs.

Labels against a threshold are normal, thresholds from a grid follow the exponential mechanism, and
an adaptive threshold on three labels is an angle in a plane.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from earshot_protocol.arrays import Numbers

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(200)


def laplace_law(votes: Numbers, gamma: float, points: int = 60) -> Numbers:
    """Return P(class j wins) by Gauss–Legendre quadrature between counts."""
    from scipy.stats import laplace

    reach = 40 / gamma
    edges = np.unique([votes.min() - reach, *votes, votes.max() + reach])
    nodes, weight = np.polynomial.legendre.leggauss(points)
    found = np.zeros(len(votes))
    for low, high in itertools.pairwise(edges):
        # Pieces about as long as the scale, so that long ones get enough points.
        ends = np.linspace(low, high, max(2, int((high - low) * gamma / 4) + 2))
        for start, end in itertools.pairwise(ends):
            at = (end - start) / 2 * nodes + (start + end) / 2
            below = laplace.cdf(at[:, None], votes, 1 / gamma)
            density = laplace.pdf(at[:, None], votes, 1 / gamma)
            for place in range(len(votes)):
                rest = np.delete(below, place, axis=1).prod(axis=1)
                found[place] += (end - start) / 2 * float(weight @ (density[:, place] * rest))
    law: Numbers = found / found.sum()
    return law


def threshold_law(votes: Numbers, threshold: float, deviation: float) -> Numbers:
    """Return the probability of each of 2^L answers, in the order of `answers_of`."""
    from scipy.stats import norm

    wins = norm.cdf((np.asarray(votes) - threshold) / deviation)
    return np.array(
        [float(np.prod(np.where(each, wins, 1 - wins))) for each in answers_of(len(votes))]
    )


def answers_of(labels: int) -> list[tuple[int, ...]]:
    """Return all answers on this many labels."""
    return list(itertools.product((0, 1), repeat=labels))


def grid_law(
    votes: Numbers, grid: Sequence[float], room: Numbers, scale: float, deviation: float
) -> Numbers:
    """Return the joint probability of each threshold and answer; only answers are published.

    Args:
        votes: Votes s, (labels,).
        grid: Possible thresholds.
        room: Distance of each threshold from the nearest votes, (thresholds,).
        scale: Scale g of the noise on room.
        deviation: Standard deviation σ of the noise on votes.
    """
    scaled = room / scale
    chosen = np.exp(scaled - np.logaddexp.reduce(scaled))
    each = [threshold_law(votes, limit, deviation) for limit in grid]
    return np.concatenate([p * law for p, law in zip(chosen, each, strict=True)])


SIDES = ((1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 1, 1), (0, 0, 1), (1, 0, 1))
"""Which of three labels are above the widest gap."""


def widest_gap_law(votes: Numbers, deviation: float) -> Numbers:
    """Return the probability of each of `SIDES`, for three labels with normal noise first.

    A common offset of all three changes nothing, which leaves a point in a plane with normal noise.
    The labels above the widest gap correspond to the nearest of six directions, 60° apart: the two
    halves of a sector differ in the order of the two labels on one side.
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
