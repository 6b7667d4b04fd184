"""Trials: lower bounds on ε from the frequency of events, and goodness of fit of draws."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from earshot_protocol.arrays import Numbers, Whole
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import Check, p_said
from earshot_simulations.auditing.laws import Law
from earshot_simulations.auditing.losses import Bracket
from earshot_simulations.auditing.proportions import clopper_pearson

Outcome = tuple[int, ...]
OutcomeLaw = dict[Outcome, float]

CONFIDENCE = 1 - 1e-6
"""Confidence of a bound; an audit with a hundred bounds is wrong once in ten thousand runs."""
UNLIKELY = 1e-9
"""P-value below which draws are taken not to follow their law."""
_THRESHOLDS = 50
_CELLS = 25


def sampled_epsilon(losses: Numbers, neighbours: Numbers, delta: float) -> Bracket:
    """Bound ε from below by these trials, with probability `CONFIDENCE`.

    The events are that the loss exceeds a threshold (likelihood-ratio tests). Half of the trials
    choose the threshold, and the others measure it, so the choice does not bias the bound.

    Args:
        losses: Losses of transcripts on one data set, float64 of shape (trials,).
        neighbours: Losses of transcripts on its neighbour, of the same shape; the same loss, of the
            first data set against the second.
        delta: Value of δ.
    """
    half = len(losses) // 2
    candidates = np.unique(np.quantile(losses[:half], np.linspace(0, 1, _THRESHOLDS)))
    best = max(candidates, key=lambda at: _bound(losses[:half], neighbours[:half], at, delta))
    return Bracket(max(0.0, _bound(losses[half:], neighbours[half:], best, delta)), math.inf)


def fit(law: Law, drawn: Whole) -> tuple[float, int]:
    """Return the p-value of a χ² test of numbers against a law, and the count of its cells.

    Cells are as equal in probability as values allow, so a few hundred numbers are enough.
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
    if expected[-1] < 1 / _CELLS and len(expected) > 2:  # too few for a cell
        expected, observed = (
            np.append(each[:-2], each[-2:].sum()) for each in (expected, observed)
        )
    return float(chisquare(observed, expected * len(drawn)).pvalue), len(expected)


def law_check(case: str, drawn: Counter[Outcome], law: OutcomeLaw) -> Check:
    """Test draws against this law: Pearson's χ² over outcomes that are not rare."""
    from scipy.stats import chisquare

    trials = sum(drawn.values())
    common = [outcome for outcome, chance in law.items() if chance * trials >= 10]
    expected = np.array([trials * law[outcome] for outcome in common])
    observed = np.array([drawn[outcome] for outcome in common], dtype=float)
    rest = max(trials - expected.sum(), 1e-9)
    expected, observed = np.append(expected, rest), np.append(observed, trials - observed.sum())
    if rest < 10:  # too few for a cell, so they join the last
        expected = np.append(expected[:-2], expected[-2:].sum())
        observed = np.append(observed[:-2], observed[-2:].sum())
    p_value = float(chisquare(observed, expected).pvalue)
    impossible = sum(count for outcome, count in drawn.items() if not law.get(outcome))
    return Check(
        case,
        f"the law of its definition (p ≥ {UNLIKELY:g})",
        p_said(p_value) + (f", {impossible} impossible" if impossible else ""),
        p_value >= UNLIKELY and not impossible,
        f"χ² test over {len(expected)} outcomes of {trials} draws",
        power.of_fit(len(expected), trials, UNLIKELY),
    )


def _bound(losses: Numbers, neighbours: Numbers, at: float, delta: float) -> float:
    error = (1 - CONFIDENCE) / 2
    least, _ = clopper_pearson(int((losses >= at).sum()), len(losses), error)
    _, most = clopper_pearson(int((neighbours >= at).sum()), len(neighbours), error)
    return math.log((least - delta) / most) if least > delta else -math.inf
