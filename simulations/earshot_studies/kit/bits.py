"""Privacy costs of answers that are bits: noisy counts compared with a threshold."""

from __future__ import annotations

import math

import numpy as np

from earshot_simulations.auditing.findings import EXACT, Technique
from earshot_simulations.auditing.losses import Bracket, Losses

BITS = Technique(EXACT, "exact: every winner is one bit, their losses convolved")


def renyi_epsilon(slope: float, delta: float) -> float:
    """Return the minimum over λ of slope · λ + ln(1/δ) / (λ − 1), the papers' conversion."""
    return slope + 2 * math.sqrt(slope * math.log(1 / delta))


def bits_epsilon(moved: float, bits: int, delta: float) -> Bracket:
    """Return ε of bits [count + N(0, 1) > threshold] whose counts move by `moved` across it."""
    from scipy.stats import norm

    one = float(norm.cdf(moved / 2))
    step = math.log(one / (1 - one))  # a bit's privacy loss is ± this
    return Losses(step, -1, np.array([1 - one, 0.0, one])).times(bits).epsilon(delta)
