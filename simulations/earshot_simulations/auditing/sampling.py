"""Lower bounds on ε from trials: how often an event happened on either of two data sets."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from earshot_simulations.auditing.laws import Law, Numbers
from earshot_simulations.auditing.losses import Bracket
from earshot_simulations.membership.proportions import clopper_pearson

Integers = npt.NDArray[np.int64]

CONFIDENCE = 1 - 1e-6
"""That a bound holds; an audit of a hundred of them is wrong once in ten thousand runs."""
_THRESHOLDS = 50
_CELLS = 25


def sampled_epsilon(losses: Numbers, neighbours: Numbers, delta: float) -> Bracket:
    """An ε that is not below what these trials show, with probability `CONFIDENCE`.

    The events are that the loss exceeds a threshold (likelihood-ratio tests). Half of the trials
    choose the threshold; the others measure it, so that choosing biases nothing.

    Args:
        losses: of transcripts on one data set, float64 of shape (trials,).
        neighbours: of transcripts on its neighbour, likewise; the same loss, of the first data set
            against the second.
        delta: δ.
    """
    half = len(losses) // 2
    candidates = np.unique(np.quantile(losses[:half], np.linspace(0, 1, _THRESHOLDS)))
    best = max(candidates, key=lambda at: _bound(losses[:half], neighbours[:half], at, delta))
    return Bracket(max(0.0, _bound(losses[half:], neighbours[half:], best, delta)), math.inf)


def fit(law: Law, drawn: Integers) -> tuple[float, int]:
    """Return the p-value of a χ² test of numbers against a law, and the count of its cells.

    Cells are as equal in probability as values allow, so that some hundred numbers are enough.
    """
    from scipy.stats import chisquare

    below = np.cumsum(law.masses) / law.masses.sum()
    ends, reached = [], 0.0
    while reached < 1 - 2 / _CELLS:
        ends.append(int(np.searchsorted(below, reached + 1 / _CELLS)))
        reached = below[ends[-1]]
    expected = np.diff([0.0, *below[ends], 1.0])
    places = np.searchsorted(ends, (drawn - law.first).clip(0, len(below) - 1))
    observed = np.bincount(places, minlength=len(expected))
    if expected[-1] < 1 / _CELLS and len(expected) > 2:  # too few to be a cell of its own
        expected, observed = (
            np.append(each[:-2], each[-2:].sum()) for each in (expected, observed)
        )
    return float(chisquare(observed, expected * len(drawn)).pvalue), len(expected)


def _bound(losses: Numbers, neighbours: Numbers, at: float, delta: float) -> float:
    error = (1 - CONFIDENCE) / 2
    least, _ = clopper_pearson(int((losses >= at).sum()), len(losses), error)
    _, most = clopper_pearson(int((neighbours >= at).sum()), len(neighbours), error)
    return math.log((least - delta) / most) if least > delta else -math.inf
