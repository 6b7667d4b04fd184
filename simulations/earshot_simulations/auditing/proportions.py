"""Confidence bounds on a probability, from the number of occurrences of an event."""

from __future__ import annotations


def clopper_pearson(hits: int, trials: int, error: float) -> tuple[float, float]:
    """Return bounds on a probability, each of them wrong with at most probability `error`.

    Args:
        hits: Trials in which the event happened.
        trials: All trials.
        error: Error probability of either bound.
    """
    from scipy.stats import beta

    low = float(beta.ppf(error, hits, trials - hits + 1)) if hits else 0.0
    high = float(beta.isf(error, hits + 1, trials - hits)) if hits < trials else 1.0
    return low, high
