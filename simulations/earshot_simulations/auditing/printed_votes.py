"""What papers print of the privacy of votes with several winners, beside what their rules cost.

Rules, noise and claims are theirs; none of it runs in a phone or at a curator.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import numpy as np

from earshot_models.votes.costs.costs import epsilon
from earshot_simulations.auditing.findings import EXACT, PRINTED, Finding, Method, Role
from earshot_simulations.auditing.laws import Numbers
from earshot_simulations.auditing.losses import Bracket, Losses, outcome_epsilon

_LABELS = 20
_BITS = Method(EXACT, "exact: every winner is one bit, their losses convolved")


def audit_printed_votes() -> Iterator[Finding]:
    """All of them."""
    yield binary_votes()
    yield from multi_winner_votes()
    yield clipped_in_l1()
    yield labels_of_a_sample()
    yield adaptive_threshold()


def binary_votes(queries: int = 12, sigma: float = 7.0) -> Finding:
    """Noise σ/2 on positive counts, and the cost of σ on both (Dziedzic et al. 2023, Def. 4)."""
    delta = 1e-5
    return Finding(
        PRINTED,
        f"multi-winner voting, Definition 4: σ = {sigma:g}, {_LABELS} labels, {queries} queries; "
        "who sees the winners",
        "replaced teacher",
        delta,
        _renyi_epsilon(queries * _LABELS / sigma**2, delta),
        _renyi_epsilon(2 * queries * _LABELS / sigma**2, delta),
        _bits_epsilon(2 / sigma, _LABELS * queries, delta),
        _BITS,
        Role.PRINTED,
    )


def multi_winner_votes(
    queries: int = 123, sigma: float = 9.0, tau: float = 1.8
) -> Iterator[Finding]:
    """Noise σ/2 on positive counts, and the sensitivity of σ on both (multi-winner voting).

    A teacher that votes for half of the labels, its ballot cut to length τ, votes for the others
    instead. As positive and negative counts add up to the number of teachers, their difference
    moves by twice as much as either, and has the noise of one.
    """
    delta = 1e-5
    claimed = _renyi_epsilon(queries * tau**2 / sigma**2, delta)
    proven = _renyi_epsilon(4 * queries * tau**2 / sigma**2, delta)
    moved = 2 * tau / math.sqrt(_LABELS / 2) / sigma
    yield Finding(
        PRINTED,
        f"multi-winner voting, Definition 7: τ = {tau}, σ = {sigma:g}, {_LABELS} labels, "
        f"{queries} queries; who sees the winners",
        "replaced teacher",
        delta,
        claimed,
        proven,
        _bits_epsilon(moved, _LABELS * queries, delta),
        _BITS,
        Role.PRINTED,
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
        PRINTED,
        f"multi-winner voting, Definition 7, the same; who sees the {queries} noisy sums",
        "replaced teacher",
        delta,
        claimed,
        proven,
        Bracket(low, high),
        Method(EXACT, "exact: the closed form of Gaussian noise"),
        Role.PRINTED,
    )


def _renyi_epsilon(slope: float, delta: float) -> float:
    """Min over λ of slope · λ + ln(1/δ) / (λ − 1), as the papers convert."""
    return slope + 2 * math.sqrt(slope * math.log(1 / delta))


def _bits_epsilon(moved: float, bits: int, delta: float) -> Bracket:
    """Of bits [count + N(0, 1) > threshold] whose counts move by so much across the threshold."""
    from scipy.stats import norm

    one = float(norm.cdf(moved / 2))
    step = math.log(one / (1 - one))  # the loss of a bit is that much, or minus that much
    return Losses(step, -1, np.array([1 - one, 0.0, one])).times(bits).epsilon(delta)


def adaptive_threshold(delta: float = 1e-8) -> Finding:
    """A threshold that is computed from raw votes (PATE on AudioSet, Definition 11, Theorem 12)."""
    teachers, variance, labels = 50, 0.3, 3
    sigma = math.sqrt(variance * teachers)
    measured = raw_threshold_epsilon((50, 25, 0, 0, 0), (50, 26, 0, 0, 0), sigma, delta)
    return Finding(
        PRINTED,
        "PATE on AudioSet, Definition 11: an adaptive threshold; one query, one changed vote of "
        f"{teachers}, σ² = {variance} · {teachers}",
        "one vote",
        delta,
        _renyi_epsilon(labels / (2 * sigma**2), delta),
        None,
        measured,
        Method(EXACT, "exact: all 32 answers"),
        Role.PRINTED,
    )


def raw_threshold_epsilon(
    votes: tuple[int, ...], others: tuple[int, ...], sigma: float, delta: float
) -> Bracket:
    """ε of one query whose threshold is in the widest gap of votes before there is any noise."""
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
    """The middle of the widest gap between sorted votes; of equal ones, the highest."""
    ordered = sorted(votes, reverse=True)
    gaps = [high - low for high, low in itertools.pairwise(ordered)]
    at = gaps.index(max(gaps))
    return (ordered[at] + ordered[at + 1]) / 2


def clipped_in_l1(queries: int = 123, sigma: float = 9.0, tau: float = 3.4) -> Finding:
    """Clipped in L1 and charged by the length in L1, though noise is Gaussian (their (9)).

    The claim is too large: of a ballot's votes at most ⌊τ⌋ are whole, and with noise σ/2 on
    positive counts it costs 2λ·2⌊τ⌋/σ², less than what is claimed, even so.
    """
    delta = 1e-5
    whole = math.floor(tau)
    return Finding(
        PRINTED,
        f"multi-winner voting, 3.2.1: clipped to {tau} in L1, σ = {sigma:g}, {queries} queries; "
        "who sees the winners",
        "replaced teacher",
        delta,
        _renyi_epsilon(2 * queries * tau**2 / sigma**2, delta),
        _renyi_epsilon(4 * queries * whole / sigma**2, delta),
        _bits_epsilon(2 / sigma, 2 * whole * queries, delta),
        _BITS,
        Role.PRINTED,
    )


def labels_of_a_sample(queries: int = 100, labels: int = 20, most: int = 3) -> Finding:
    """How many labels a training sample has bounds no teacher (Muschiol 2021, 4.2.2, Theorem 12).

    One that is trained without a sample may answer every label the other way.
    """
    delta = 1e-8
    sigma = math.sqrt(0.3 * 50)
    # The orders of Muschiol begin at 2.
    orders = np.arange(2.0, 200.0)
    return Finding(
        PRINTED,
        f"PATE on AudioSet, Theorem 12: {most} labels a sample, {labels} labels in all, "
        f"{queries} queries, σ² = 0.3 · 50",
        "replaced teacher",
        delta,
        epsilon(queries * orders * most / (2 * sigma**2), orders, delta, classic=True)[0],
        _renyi_epsilon(queries * labels / (2 * sigma**2), delta),
        _bits_epsilon(1 / sigma, labels * queries, delta),
        _BITS,
        Role.PRINTED,
    )
