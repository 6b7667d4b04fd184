"""The success of an attack: areas, advantages and rates, with intervals over trials and records."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from earshot_simulations.membership.game import Coins, Numbers

LOW = 0.01
"""Rate of false alarms at which true ones are counted."""
_RESAMPLES = 200
_INTERVAL = 0.95


class Interval(NamedTuple):
    """A figure with its 95 % confidence interval."""

    value: float
    low: float
    high: float


_UNKNOWN = Interval(float("nan"), 0.0, 1.0)
"""Interval of trials that all had a record, or all lacked it."""


@dataclass(frozen=True)
class Evidence:
    """The success of an attack on trials that it had not learned from.

    Attributes:
        area: Area under the curve of true over false alarms, of all records; a half for a blind
            attack.
        canarys_area: Area of the canary alone.
        advantage: True minus false alarms, at the threshold that was best for known coins.
        rate: Rate of true alarms where false ones have the rate `LOW`.
    """

    area: Interval
    canarys_area: Interval
    advantage: Interval
    rate: Interval


def evidence(known: tuple[Numbers, Coins], measured: tuple[Numbers, Coins], seed: int) -> Evidence:
    """Return figures of measured trials, with bootstrap intervals over trials and records.

    Args:
        known: Scores (trials, records), large for records that seem learned from, and coins, of
            trials that choose the threshold.
        measured: Scores and coins of other trials.
        seed: Seed of the resampling.
    """
    scores, coins = measured
    threshold = _best_threshold(*known)

    def over_trials(figure: Callable[[Numbers, Coins], float], columns: slice) -> Interval:
        return _interval(figure, scores[:, columns], coins[:, columns], seed)

    whole = slice(None)
    return Evidence(
        over_trials(_area, whole),
        over_trials(_area, slice(0, 1)),
        over_trials(lambda scores, coins: _advantage(scores, coins, threshold), whole),
        over_trials(_rate, whole),
    )


def _interval(
    figure: Callable[[Numbers, Coins], float], scores: Numbers, coins: Coins, seed: int
) -> Interval:
    generator = np.random.default_rng(seed)
    drawn = []
    for _ in range(_RESAMPLES):
        trials, records = (generator.integers(0, size, (size, 1)) for size in scores.shape)
        drawn.append(figure(scores[trials, records.T], coins[trials, records.T]))
    defined = np.array(drawn)[np.isfinite(drawn)]
    value = figure(scores, coins)
    if not np.isfinite(value):
        return _UNKNOWN
    low, high = np.quantile(defined, [(1 - _INTERVAL) / 2, (1 + _INTERVAL) / 2])
    return Interval(value, float(low), float(high))


def _area(scores: Numbers, coins: Coins) -> float:
    """Return P(a member's score exceeds another's), ties a half (Mann and Whitney)."""
    from scipy.stats import rankdata

    members = int(coins.sum())
    others = coins.size - members
    if not members or not others:
        return float("nan")
    ranks = float(rankdata(scores, axis=None)[coins.ravel()].sum())
    return (ranks - members * (members + 1) / 2) / (members * others)


def _advantage(scores: Numbers, coins: Coins, threshold: float) -> float:
    if not coins.any() or coins.all():
        return float("nan")
    alarms = scores >= threshold
    return float(alarms[coins].mean() - alarms[~coins].mean())


def _rate(scores: Numbers, coins: Coins) -> float:
    """Return the rate of true alarms above a threshold that at most `LOW` of others exceed."""
    if not coins.any() or coins.all():
        return float("nan")
    others = np.sort(scores[~coins])
    threshold = others[len(others) - 1 - int(LOW * len(others))]
    return float((scores[coins] > threshold).mean())


def _best_threshold(scores: Numbers, coins: Coins) -> float:
    places = np.unique(np.quantile(scores, np.linspace(0, 1, 101)))
    found = [_advantage(scores, coins, float(at)) for at in places]
    return float(places[int(np.nanargmax(found))])
