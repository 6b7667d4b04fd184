"""Smoothing of weekly counts by the local level model, with intervals of its own.

A week's sum is y = c + n: the contacts c that were made, and noise n of a known law. Per phone that
took part, c varies by chance around a level, and the level moves from week to week (Durbin and
Koopman 2012, chapter 2):

    y_t = level_t + chance_t + noise_t,    level_(t+1) = level_t + drift_t.

Two variances are unknown: that of the drift, and that of chance, which is larger than for
independent events where contacts come in groups. Results are averages over both, weighted by their
likelihood, so that intervals include what is not known about them: at the most likely values they
would be too narrow. With little noise or quick changes, weeks stay as they are.
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
GROUPS = np.array([1.0, 2.0, 4.0, 8.0])
"""Variances of chance that are averaged over, relative to that of independent events."""


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
    segments = np.searchsorted(np.sort(np.asarray(breaks, np.int64)), weeks, side="right")
    gaps = np.where(np.diff(segments) > 0, np.inf, np.diff(weeks))
    drifts, groups = (each.reshape(-1, 1) for each in np.meshgrid(DRIFTS, GROUPS))
    chance = groups[:, np.newaxis] * np.maximum(rates.mean(axis=0), 0) / crowd
    drift = drifts**2 * (variances + chance).mean(axis=1)
    levels, spreads, likelihood = _levels(rates, variances + chance, drift, gaps)
    # Of a week's distance from its level, the noise is this part and chance the rest.
    part = variances / (variances + chance)
    means = rates - part * (rates - levels)
    spreads = part**2 * spreads + part * chance
    weights = drifts * np.exp(likelihood - likelihood.max(axis=0))
    weights = (weights / weights.sum(axis=0))[:, np.newaxis]
    mean = (weights * means).sum(axis=0)
    spread = (weights * (spreads + (means - mean) ** 2)).sum(axis=0)
    result.counts[weeks], result.variances[weeks] = mean * crowd, spread * crowd**2
    return result


def _levels(
    rates: Reals, variances: Reals, drift: Reals, gaps: Reals
) -> tuple[Reals, Reals, Reals]:
    """Filter and smooth the levels of all series under each hypothesis about the variances.

    Args:
        rates: Observations, float64 (weeks, series).
        variances: Variances of noise and chance together, float64 (hypotheses, weeks, series).
        drift: Variances of the drift in a week, float64 (hypotheses, series).
        gaps: Weeks from each observation to the next; infinite across a break, after which nothing
            is known about the level.

    Returns:
        Mean and variance of each level, float64 (hypotheses, weeks, series), and the logarithms of
        likelihoods, float64 (hypotheses, series).
    """
    mean, spread = np.broadcast_to(rates, variances.shape).copy(), variances.copy()
    likelihood = np.zeros_like(drift)
    for week, gap in enumerate(gaps, start=1):
        if np.isinf(gap):
            continue
        forecast = spread[:, week - 1] + gap * drift
        total = forecast + variances[:, week]
        surprise = rates[week] - mean[:, week - 1]
        likelihood -= (np.log(total) + surprise**2 / total) / 2
        gain = forecast / total
        mean[:, week] = mean[:, week - 1] + gain * surprise
        spread[:, week] = gain * variances[:, week]
    for week in reversed(range(len(gaps))):
        if np.isinf(gaps[week]):
            continue
        back = spread[:, week] / (spread[:, week] + gaps[week] * drift)
        mean[:, week] += back * (mean[:, week + 1] - mean[:, week])
        spread[:, week] += back * (back * spread[:, week + 1] - spread[:, week])
    return mean, spread, likelihood
