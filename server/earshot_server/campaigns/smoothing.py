"""Smoothing of weekly counts by the local level model, with intervals of its own.

A week's sum is y = c + n: the contacts c that were made, and noise n of a known law. Per phone that
took part, c varies by chance around a level, as independent events do, and the level moves from
week to week (Durbin and Koopman 2012, chapter 2):

    y_t = level_t + chance_t + noise_t,    level_(t+1) = level_t + drift_t.

The variance of the drift is unknown. Results are averages over it, weighted by its likelihood, so
that intervals include what is not known about it: at the most likely value they would be too
narrow. With little noise or quick changes, weeks stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Reals = npt.NDArray[np.float64]

DRIFTS = np.geomspace(0.02, 10, 48)
"""Deviations of the drift that are averaged over, relative to that of a week's count.

All deviations are equally likely at first (Gelman 2006), so those of this grid in proportion to
their distance.
"""


class Smoothed(NamedTuple):
    """Smoothed counts. Weeks without a sum are NaN.

    Attributes:
        counts: Contacts, float64 (weeks, series).
        variances: Variances of their errors, float64 (weeks, series).
    """

    counts: Reals
    variances: Reals


def smoothed(counts: Reals, noise: Reals, phones: Reals, breaks: Sequence[int] = ()) -> Smoothed:
    """Smooth the weekly counts of some series, each by itself.

    A week's error is that of the contacts that were made in that week, not of a level. The last
    week knows no later ones, and is revised when they come.

    Errors of series that rise and fall together are alike, so the variances of smoothed counts do
    not add up: smooth the total of a place, not its labelled and its named contacts.

    Args:
        counts: Noisy counts, float64 (weeks, series); a week with a NaN has no sum.
        noise: Variances of the noise on them, all positive, float64 (weeks, series).
        phones: Phones that took part in each week, positive where it has a sum, float64 (weeks,).
        breaks: Weeks, from 0, that are not compared with those before them, as under a new map.
    """
    weeks = np.flatnonzero(~np.isnan(counts).any(axis=1))
    result = Smoothed(np.full(counts.shape, np.nan), np.full(counts.shape, np.nan))
    if not weeks.size:
        return result
    crowd = phones[weeks, np.newaxis]
    rates, variances = counts[weeks] / crowd, noise[weeks] / crowd**2
    chance = np.maximum(rates.mean(axis=0), 0) / crowd
    segments = np.searchsorted(np.sort(np.asarray(breaks, np.int64)), weeks, side="right")
    gaps = np.where(np.diff(segments) > 0, np.inf, np.diff(weeks))
    levels, spreads, weights = _levels(rates, variances + chance, gaps)
    # Of a week's distance from its level, the noise is this part and chance the rest.
    part = variances / (variances + chance)
    means = rates - part * (rates - levels)
    spreads = part**2 * spreads + part * chance
    mean = (weights * means).sum(axis=0)
    spread = (weights * (spreads + (means - mean) ** 2)).sum(axis=0)
    result.counts[weeks], result.variances[weeks] = mean * crowd, spread * crowd**2
    return result


def _levels(rates: Reals, variances: Reals, gaps: Reals) -> tuple[Reals, Reals, Reals]:
    """Filter and smooth the levels of all series with each of `DRIFTS`.

    Args:
        rates: Observations, float64 (weeks, series).
        variances: Variances of noise and chance together, float64 (weeks, series).
        gaps: Weeks from each observation to the next; infinite across a break, after which nothing
            is known about the level.

    Returns:
        Mean and variance of each level, float64 (drifts, weeks, series), and the weights of the
        drifts, float64 (drifts, 1, series).
    """
    drift = DRIFTS[:, np.newaxis] ** 2 * variances.mean(axis=0)
    shape = (len(DRIFTS), *rates.shape)
    mean, spread = np.broadcast_to(rates, shape).copy(), np.broadcast_to(variances, shape).copy()
    likelihood = np.zeros_like(drift)
    for week, gap in enumerate(gaps, start=1):
        if np.isinf(gap):
            continue
        forecast = spread[:, week - 1] + gap * drift
        total = forecast + variances[week]
        surprise = rates[week] - mean[:, week - 1]
        likelihood -= (np.log(total) + surprise**2 / total) / 2
        gain = forecast / total
        mean[:, week] = mean[:, week - 1] + gain * surprise
        spread[:, week] = gain * variances[week]
    for week in reversed(range(len(gaps))):
        if np.isinf(gaps[week]):
            continue
        back = spread[:, week] / (spread[:, week] + gaps[week] * drift)
        mean[:, week] += back * (mean[:, week + 1] - mean[:, week])
        spread[:, week] += back * (back * spread[:, week + 1] - spread[:, week])
    weights = DRIFTS[:, np.newaxis] * np.exp(likelihood - likelihood.max(axis=0))
    return mean, spread, (weights / weights.sum(axis=0))[:, np.newaxis]
