"""Privacy losses of Gaussian noise on random batches, from their definition.

Where one data set has a clip more, a number that the clip moves by 1 is N(1, σ²) if the clip is in
the batch, with probability q, and N(0, σ²) if it is not; without the clip it is N(0, σ²). The loss
of a value x is ln(1 − q + q e^((2x − 1)/2σ²)) (Abadi et al., CCS 2016).
"""

from __future__ import annotations

import math

import numpy as np

from earshot_protocol.arrays import Numbers
from earshot_simulations.auditing.losses import Bracket, Losses

_DEVIATIONS = 12.0
_FINER = 64
"""Parts of a step in which the mean of the rounding is worked out."""
_DOUBT = 1e-13
"""Probability that the rounding of many losses is farther from its mean than it is said to be."""
_CELLS = 2**12
_LEAST_STEP = 2e-6


def realized(values: Numbers, deviation: float, rate: float) -> Numbers:
    """Return the loss of each value of one step: a clip is in the data, against that it is not.

    Args:
        values: Values of the number that the clip moves by 1.
        deviation: Deviation σ of the noise.
        rate: Rate q of batches.
    """
    exponents: Numbers = (2 * values - 1) / (2 * deviation**2)
    if rate == 1:
        return exponents
    return np.asarray(np.logaddexp(math.log1p(-rate), math.log(rate) + exponents))


def training_epsilon(deviation: float, rate: float, steps: int, delta: float) -> Bracket:
    """Return ε of some steps, whichever of the neighbours has the clip.

    Args:
        deviation: Deviation σ of the noise, over what one clip moves the sum by.
        rate: Rate q of batches.
        steps: Number of steps.
        delta: Value of δ.
    """
    both = (accumulated(deviation, rate, steps, more=more).epsilon(delta) for more in (True, False))
    return max(both, key=lambda each: each.low)


def accumulated(deviation: float, rate: float, steps: int, *, more: bool) -> Losses:
    """Return the law of the sum of losses of some steps.

    Each loss is rounded down to the grid. The rounding of all of them adds up to its mean but for a
    little, by Hoeffding's inequality, so that the sum is put back by that mean.

    Args:
        deviation: Deviation σ of the noise.
        rate: Rate q of batches.
        steps: Number of steps.
        more: Whether outputs are those of the data that have the clip, or of the others.
    """
    step = max(_LEAST_STEP, _spread(deviation, rate) / _CELLS)
    one = step_loss(deviation, rate, step, more=more)
    if steps == 1:
        return one
    fine = step_loss(deviation, rate, step / _FINER, more=more)
    lost = max(0.0, _mean(fine) - _mean(one))  # and less than a finer step more
    around = step * math.sqrt(steps * math.log(2 / _DOUBT) / 2)
    least = max(0.0, steps * lost - around)
    most = min(steps * step, steps * (lost + step / _FINER) + around)
    total = one.times(steps)
    shift = math.floor(least / step)
    return Losses(
        step, total.first + shift, total.masses, total.infinite,
        most - shift * step, total.doubt + 2 * _DOUBT, total.neighbours_doubt,
    )  # fmt: skip


def step_loss(deviation: float, rate: float, step: float, *, more: bool) -> Losses:
    """Return the law of the loss of one step; see `accumulated`."""
    from scipy.stats import norm

    ends = np.array([-_DEVIATIONS * deviation, 1 + _DEVIATIONS * deviation])
    reach = realized(ends, deviation, rate)
    low, high = (math.floor(reach[0] / step), math.ceil(reach[1] / step))
    losses = np.arange(low, high + 1) * step
    # Below the smallest loss that there is, no value has one.
    ratios = np.maximum(np.expm1(losses) + rate, 0.0) / rate
    with np.errstate(divide="ignore"):
        edges = deviation**2 * np.log(ratios) + 0.5

    def cells(mean: float) -> Numbers:
        below, above = norm.cdf(edges, mean, deviation), norm.sf(edges, mean, deviation)
        return np.asarray(np.where(edges[1:] <= mean, np.diff(below), -np.diff(above)))

    doubt = 4 * float(norm.sf(_DEVIATIONS)) + len(losses) * 2.0**-52
    if more:
        masses = (1 - rate) * cells(0.0) + rate * cells(1.0)
        return Losses(step, low, np.maximum(masses, 0.0), rounded=step, doubt=doubt)
    # The other direction's loss is minus this one: rounded down, a cell has that of its upper end.
    masses = np.maximum(cells(0.0)[::-1], 0.0)
    return Losses(step, -high, masses, rounded=step, doubt=doubt)


def _mean(losses: Losses) -> float:
    values = (losses.first + np.arange(len(losses.masses))) * losses.step
    return float(losses.masses @ values / losses.masses.sum())


def _spread(deviation: float, rate: float) -> float:
    """Return a loss that is large for one step, where the clip is in the batch."""
    return float(realized(np.array([1 + 4 * deviation]), deviation, rate)[0])
