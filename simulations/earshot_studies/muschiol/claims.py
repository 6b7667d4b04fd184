"""Claimed privacy costs of taggers (Muschiol 2021), beside the measured ones."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from earshot_models.votes.costs.costs import Method, epsilon
from earshot_models.votes.rules.gnthreshold_adaptive import AdaptiveRule
from earshot_protocol.arrays import Numbers
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.auditing.ensembles import ORDERS
from earshot_simulations.auditing.findings import EXACT, Finding, Technique
from earshot_simulations.auditing.losses import Bracket, outcome_epsilon
from earshot_simulations.auditing.proofs import DELTA
from earshot_studies.kit.bits import BITS, bits_epsilon, renyi_epsilon


def claims() -> Iterator[Finding]:
    """Compare every claim with the measured cost."""
    yield labels_of_a_sample()
    yield adaptive_threshold()


def labels_of_a_sample(queries: int = 100, labels: int = 20, most: int = 3) -> Finding:
    """Audit a bound by the labels of a training sample (Muschiol 2021, 4.2.2, Theorem 12).

    A teacher that is trained without one sample may change its answer for every label.
    """
    delta = 1e-8
    sigma = math.sqrt(0.3 * 50)
    # The orders of Muschiol begin at 2.
    orders = np.arange(2.0, 200.0)
    return Finding(
        f"PATE on AudioSet, Theorem 12: {most} labels a sample, {labels} labels in all, "
        f"{queries} queries, σ² = 0.3 · 50",
        "replaced teacher",
        delta,
        epsilon(queries * orders * most / (2 * sigma**2), orders, delta, classic=True)[0],
        renyi_epsilon(queries * labels / (2 * sigma**2), delta),
        bits_epsilon(1 / sigma, labels * queries, delta),
        BITS,
    )


def adaptive_threshold(delta: float = 1e-8) -> Finding:
    """Audit a threshold computed from raw votes (PATE on AudioSet, Definition 11, Theorem 12)."""
    teachers, variance, labels = 50, 0.3, 3
    sigma = math.sqrt(variance * teachers)
    measured = raw_threshold_epsilon((50, 25, 0, 0, 0), (50, 26, 0, 0, 0), sigma, delta)
    return Finding(
        "PATE on AudioSet, Definition 11: an adaptive threshold; one query, one changed vote of "
        f"{teachers}, σ² = {variance} · {teachers}",
        "one vote",
        delta,
        renyi_epsilon(labels / (2 * sigma**2), delta),
        None,
        measured,
        Technique(EXACT, "exact: all 32 answers"),
    )


def raw_threshold_epsilon(
    votes: tuple[int, ...], others: tuple[int, ...], sigma: float, delta: float
) -> Bracket:
    """Return ε of one query with its threshold in the widest gap of the votes without noise."""
    one, two = (_raw_threshold_law(each, sigma) for each in (votes, others))
    return max(
        (outcome_epsilon(p, q, delta, 1e-9) for p, q in ((one, two), (two, one))),
        key=lambda each: each.low,
    )


def _raw_threshold_law(votes: tuple[int, ...], sigma: float) -> Numbers:
    from scipy.stats import norm

    outcomes = np.array(list(itertools.product((0, 1), repeat=len(votes))))
    clear = (np.array(votes) - _widest_gap(votes)) / sigma
    chances = np.where(outcomes, norm.logcdf(clear), norm.logcdf(-clear))
    return np.asarray(np.exp(chances.sum(axis=1)))


def _widest_gap(votes: tuple[int, ...]) -> float:
    """Return the middle of the widest gap between sorted votes; of equal ones, the highest."""
    ordered = sorted(votes, reverse=True)
    gaps = [high - low for high, low in itertools.pairwise(ordered)]
    at = gaps.index(max(gaps))
    return (ordered[at] + ordered[at + 1]) / 2


def raw_threshold() -> Finding:
    """Audit a planted fault: a threshold from raw votes, with the ε of one from noisy votes."""
    rule = AdaptiveRule(sigma=4.0)
    votes, others = (50, 25, 0, 0, 0), (50, 26, 0, 0, 0)
    proven = rule.divergences(np.array([votes]), 50, ORDERS, Method.INDEPENDENT)
    bound = epsilon(proven.answered[0], ORDERS, DELTA)[0]
    return Finding(
        "a threshold from raw votes, sold as one from noisy votes: one query",
        Unit.REPLACED_PHONE,
        DELTA,
        bound,
        bound,
        raw_threshold_epsilon(votes, others, rule.sigma, DELTA),
        Technique(EXACT, "exact: all 32 answers"),
    )
