"""Cost of one-bit answers from a noisy number, independent of the number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs.outcomes import ERROR, checked_orders
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers

_FAR = 30.0
"""Product of λ and Δ/σ above which an answer is charged like the noisy number."""
_BESIDE = 9.0
_POINTS = 301
_CLOSER = 25
_ROUNDS = 7
_MARGIN = 1 + 1e-9
"""Factor that covers the gap between the maximum and the largest value tried."""


def bit_divergence(deviation: float, orders: npt.ArrayLike, moved: float = 1.0) -> Numbers:
    """Return the largest divergence of [x + N(0, σ²) > T] from a neighbour's answer, over all x.

    It is max_a D_λ(Bern Φ(a) ‖ Bern Φ(a ± Δ/σ)), for every T and in both directions: 2/π times the
    divergence of the noisy number, λΔ²/2σ², where λ ≪ σ/Δ (the Fisher information of the answer),
    and equal to it where λ ≫ σ/Δ. It grows with Δ.

    Args:
        deviation: Standard deviation σ of the noise.
        orders: Orders λ, each above 1.
        moved: Most Δ by which a neighbour's number may differ.

    Returns:
        Divergences, (orders,).

    Raises:
        InvalidParametersError: An order is 1 or less, or σ or Δ is not positive.
    """
    chosen = checked_orders(orders)
    distance = checks.positive("moved", moved) / checks.positive("deviation", deviation)
    found: Numbers = chosen * distance**2 / 2
    near = chosen * distance <= _FAR
    if near.any():
        found[near] = np.minimum(found[near], _largest(distance, chosen[near]))
    return found


def _largest(distance: float, orders: Numbers) -> Numbers:
    """Maximize on a grid, then on ever finer ones around the best point so far."""
    reach = orders * distance + _BESIDE
    centres, width, count = np.zeros(len(orders)), reach, _POINTS
    best = np.zeros(len(orders))
    for _ in range(_ROUNDS):
        points = centres[:, None] + width[:, None] * np.linspace(-1, 1, count)
        values = _divergences(points, distance, orders)
        at = values.argmax(axis=1)
        centres = np.take_along_axis(points, at[:, None], axis=1)[:, 0]
        best = np.maximum(best, values.max(axis=1))
        width, count = width * 4 / (count - 1), _CLOSER
    largest: Numbers = best * _MARGIN + ERROR
    return largest


def _divergences(points: Numbers, distance: float, orders: Numbers) -> Numbers:
    """Return the divergence of Bern Φ(a) from Bern Φ(a + Δ/σ).

    The other direction and sign are covered by the points −a − Δ/σ and −a.
    """
    from scipy.special import log_ndtr

    less = (orders - 1)[:, None]
    total, logs = np.zeros_like(points), np.full_like(points, -np.inf)
    alike = np.ones(points.shape, dtype=np.bool_)
    for sign in (1, -1):
        law = log_ndtr(sign * points)
        ratio = less * (law - log_ndtr(sign * (points + distance)))
        total += np.exp(law) * np.expm1(np.minimum(ratio, 1.0))
        logs = np.logaddexp(logs, law + ratio)
        alike &= ratio <= 1.0
    # Where both laws are nearly the same, log-sum-exp would lose all digits.
    near: Numbers = np.where(alike, np.log1p(total), logs)
    return near / less
