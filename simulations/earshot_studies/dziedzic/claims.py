"""Claimed privacy costs of multi-winner votes (Dziedzic et al. 2023), beside the measured ones."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from earshot_simulations.auditing.findings import EXACT, Finding, Technique
from earshot_simulations.auditing.losses import Bracket
from earshot_studies.kit.bits import BITS, bits_epsilon, renyi_epsilon

_LABELS = 20


def claims() -> Iterator[Finding]:
    """Compare every claim with the measured cost."""
    yield binary_votes()
    yield from multi_winner_votes()
    yield clipped_in_l1()


def binary_votes(queries: int = 12, sigma: float = 7.0) -> Finding:
    """Audit noise σ/2 on positive counts, charged as σ on both (Dziedzic et al., Definition 4)."""
    delta = 1e-5
    return Finding(
        f"multi-winner voting, Definition 4: σ = {sigma:g}, {_LABELS} labels, {queries} queries; "
        "who sees the winners",
        "replaced teacher",
        delta,
        renyi_epsilon(queries * _LABELS / sigma**2, delta),
        renyi_epsilon(2 * queries * _LABELS / sigma**2, delta),
        bits_epsilon(2 / sigma, _LABELS * queries, delta),
        BITS,
    )


def multi_winner_votes(
    queries: int = 123, sigma: float = 9.0, tau: float = 1.8
) -> Iterator[Finding]:
    """Audit noise σ/2 on positive counts with the sensitivity of σ on both (Definition 7).

    A teacher that votes for half of the labels, its ballot clipped to length τ, votes for the
    others instead. As positive and negative counts add up to the number of teachers, their
    difference moves by twice as much as either, and has the noise of one.
    """
    delta = 1e-5
    claimed = renyi_epsilon(queries * tau**2 / sigma**2, delta)
    proven = renyi_epsilon(4 * queries * tau**2 / sigma**2, delta)
    moved = 2 * tau / math.sqrt(_LABELS / 2) / sigma
    yield Finding(
        f"multi-winner voting, Definition 7: τ = {tau}, σ = {sigma:g}, {_LABELS} labels, "
        f"{queries} queries; who sees the winners",
        "replaced teacher",
        delta,
        claimed,
        proven,
        bits_epsilon(moved, _LABELS * queries, delta),
        BITS,
    )
    from scipy.stats import norm

    length = moved * math.sqrt(_LABELS * queries)

    def divergence(at: float) -> float:
        return float(
            norm.cdf(length / 2 - at / length) - np.exp(at + norm.logcdf(-length / 2 - at / length))
        )

    low, high = 0.0, length**2 / 2 + 12 * length
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if divergence(middle) > delta else (low, middle)
    yield Finding(
        f"multi-winner voting, Definition 7, the same; who sees the {queries} noisy sums",
        "replaced teacher",
        delta,
        claimed,
        proven,
        Bracket(low, high),
        Technique(EXACT, "exact: the closed form of Gaussian noise"),
    )


def clipped_in_l1(queries: int = 123, sigma: float = 9.0, tau: float = 3.4) -> Finding:
    """Audit ballots clipped in L1 and charged by it, though noise is Gaussian (their (9)).

    The claim is too large: at most ⌊τ⌋ votes of a ballot are whole, and even with noise σ/2 on
    positive counts it costs only 2λ·2⌊τ⌋/σ².
    """
    delta = 1e-5
    whole = math.floor(tau)
    return Finding(
        f"multi-winner voting, 3.2.1: clipped to {tau} in L1, σ = {sigma:g}, {queries} queries; "
        "who sees the winners",
        "replaced teacher",
        delta,
        renyi_epsilon(2 * queries * tau**2 / sigma**2, delta),
        renyi_epsilon(4 * queries * whole / sigma**2, delta),
        bits_epsilon(2 / sigma, 2 * whole * queries, delta),
        BITS,
    )
