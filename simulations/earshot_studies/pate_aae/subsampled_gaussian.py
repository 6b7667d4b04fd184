"""Privacy losses of Gaussian noise on random batches, from their definition.

With a clip that moves a number by 1, the number is N(1, σ²) if the clip is in the batch, with
probability q, and N(0, σ²) if it is not; without the clip it is N(0, σ²). The loss of a value x is
ln(1 − q + q e^((2x − 1)/2σ²)) (Abadi et al., CCS 2016).
"""

from __future__ import annotations

import math

import numpy as np

from earshot_protocol.arrays import Numbers
from earshot_simulations.auditing.losses import Bracket, Losses

_DEVIATIONS = 12.0
_FINER = 64
"""Parts of a step by which the mean of the rounding is computed."""
_DOUBT = 1e-13
"""Probability that the total rounding is outside of its bounds."""
_CELLS = 2**12
_LEAST_STEP = 2e-6


def realized(values: Numbers, deviation: float, rate: float) -> Numbers:
    """Return the loss of each value of one step, of data with the clip against data without it.

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
    """Return ε of several steps, the larger of both directions.

    Args:
        deviation: Deviation σ of the noise, relative to the sensitivity of the sum.
        rate: Rate q of batches.
        steps: Number of steps.
        delta: Value of δ.
    """
    both = (accumulated(deviation, rate, steps, more=more).epsilon(delta) for more in (True, False))
    return max(both, key=lambda each: each.low)


def accumulated(deviation: float, rate: float, steps: int, *, more: bool) -> Losses:
    """Return the law of the sum of losses of several steps.

    Each loss is rounded down to the grid. By Hoeffding's inequality the total rounding is close to
    its mean, by which the sum is corrected.

    Args:
        deviation: Deviation σ of the noise.
        rate: Rate q of batches.
        steps: Number of steps.
        more: Whether outputs are those of the data with the clip, or without it.
    """
    step = max(_LEAST_STEP, _spread(deviation, rate) / _CELLS)
    one = step_loss(deviation, rate, step, more=more)
    if steps == 1:
        return one
    fine = step_loss(deviation, rate, step / _FINER, more=more)
    lost = max(0.0, _mean(fine) - _mean(one))  # too low by less than a finer step
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
    # No value has a loss below the smallest one.
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
    # The other direction's loss is minus this one: rounded down, a cell gets that of its upper end.
    masses = np.maximum(cells(0.0)[::-1], 0.0)
    return Losses(step, -high, masses, rounded=step, doubt=doubt)


def _mean(losses: Losses) -> float:
    values = (losses.first + np.arange(len(losses.masses))) * losses.step
    return float(losses.masses @ values / losses.masses.sum())


def _spread(deviation: float, rate: float) -> float:
    """Return the loss of one step at four deviations above the mean with the clip."""
    return float(realized(np.array([1 + 4 * deviation]), deviation, rate)[0])
