"""Printed claims of papers about votes of ensembles, beside what their rules cost.

Rules, noise and claims are theirs; none of it runs in a phone or at a curator.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator

import numpy as np

from earshot_models.votes.costs.claims import printed_scale
from earshot_models.votes.costs.costs import epsilon
from earshot_models.votes.costs.dependent import dependent_divergence, log_other_winner
from earshot_models.votes.costs.outcomes import ERROR, outcome_divergence
from earshot_models.votes.costs.releases import printed_release_divergence, release_divergence
from earshot_protocol.privacy.events import Pure
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.accounting.accountant import composed
from earshot_simulations.auditing.findings import EXACT, Finding, Technique
from earshot_simulations.auditing.laws import Numbers
from earshot_simulations.auditing.losses import Bracket, Losses, outcome_epsilon

SCALE_DELTA, SCALE_TEACHERS = 1e-5, 200
"""Value of δ and number of teachers for which the scale of PATE-AAE is printed."""
_LABELS = 20
_BITS = Technique(EXACT, "exact: every winner is one bit, their losses convolved")


def audit_printed_votes() -> Iterator[Finding]:
    """Set every claim about votes with several winners beside its cost."""
    yield binary_votes()
    yield from multi_winner_votes()
    yield clipped_in_l1()
    yield labels_of_a_sample()
    yield adaptive_threshold()


def binary_votes(queries: int = 12, sigma: float = 7.0) -> Finding:
    """Audit noise σ/2 on positive counts at the cost of σ on both (Dziedzic et al., Def. 4)."""
    delta = 1e-5
    return Finding(
        f"multi-winner voting, Definition 4: σ = {sigma:g}, {_LABELS} labels, {queries} queries; "
        "who sees the winners",
        "replaced teacher",
        delta,
        _renyi_epsilon(queries * _LABELS / sigma**2, delta),
        _renyi_epsilon(2 * queries * _LABELS / sigma**2, delta),
        _bits_epsilon(2 / sigma, _LABELS * queries, delta),
        _BITS,
    )


def multi_winner_votes(
    queries: int = 123, sigma: float = 9.0, tau: float = 1.8
) -> Iterator[Finding]:
    """Audit noise σ/2 on positive counts with the sensitivity of σ on both (multi-winner voting).

    A teacher that votes for half of the labels, its ballot cut to length τ, votes for the others
    instead. As positive and negative counts add up to the number of teachers, their difference
    moves by twice as much as either, and has the noise of one.
    """
    delta = 1e-5
    claimed = _renyi_epsilon(queries * tau**2 / sigma**2, delta)
    proven = _renyi_epsilon(4 * queries * tau**2 / sigma**2, delta)
    moved = 2 * tau / math.sqrt(_LABELS / 2) / sigma
    yield Finding(
        f"multi-winner voting, Definition 7: τ = {tau}, σ = {sigma:g}, {_LABELS} labels, "
        f"{queries} queries; who sees the winners",
        "replaced teacher",
        delta,
        claimed,
        proven,
        _bits_epsilon(moved, _LABELS * queries, delta),
        _BITS,
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


def _renyi_epsilon(slope: float, delta: float) -> float:
    """Return the minimum over λ of slope · λ + ln(1/δ) / (λ − 1), as the papers convert."""
    return slope + 2 * math.sqrt(slope * math.log(1 / delta))


def _bits_epsilon(moved: float, bits: int, delta: float) -> Bracket:
    """Return ε of bits [count + N(0, 1) > threshold] whose counts move across the threshold."""
    from scipy.stats import norm

    one = float(norm.cdf(moved / 2))
    step = math.log(one / (1 - one))  # the loss of a bit is that much, or minus that much
    return Losses(step, -1, np.array([1 - one, 0.0, one])).times(bits).epsilon(delta)


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
        _renyi_epsilon(labels / (2 * sigma**2), delta),
        None,
        measured,
        Technique(EXACT, "exact: all 32 answers"),
    )


def raw_threshold_epsilon(
    votes: tuple[int, ...], others: tuple[int, ...], sigma: float, delta: float
) -> Bracket:
    """Return ε of one query whose threshold is in the widest gap of votes without noise."""
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


def clipped_in_l1(queries: int = 123, sigma: float = 9.0, tau: float = 3.4) -> Finding:
    """Audit ballots clipped in L1 and charged by it, though noise is Gaussian (their (9)).

    The claim is too large: of a ballot's votes at most ⌊τ⌋ are whole, and with noise σ/2 on
    positive counts it costs 2λ·2⌊τ⌋/σ², less than what is claimed, even so.
    """
    delta = 1e-5
    whole = math.floor(tau)
    return Finding(
        f"multi-winner voting, 3.2.1: clipped to {tau} in L1, σ = {sigma:g}, {queries} queries; "
        "who sees the winners",
        "replaced teacher",
        delta,
        _renyi_epsilon(2 * queries * tau**2 / sigma**2, delta),
        _renyi_epsilon(4 * queries * whole / sigma**2, delta),
        _bits_epsilon(2 / sigma, 2 * whole * queries, delta),
        _BITS,
    )


def labels_of_a_sample(queries: int = 100, labels: int = 20, most: int = 3) -> Finding:
    """Audit a bound by the labels of a training sample (Muschiol 2021, 4.2.2, Theorem 12).

    One that is trained without a sample may answer every label the other way.
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
        _renyi_epsilon(queries * labels / (2 * sigma**2), delta),
        _bits_epsilon(1 / sigma, labels * queries, delta),
        _BITS,
    )


def audit_printed_costs() -> Iterator[Finding]:
    """Set every claim about costs that look at votes beside them: divergences at one order."""
    yield one_way()
    yield smooth_release()


def one_way(gap: int = 50, sigma: float = 7.0, order: float = 10.0) -> Finding:
    """Audit Theorem 6, which bounds the divergence from a neighbour in one direction alone."""
    from scipy.stats import norm

    votes = np.array([[100.0 + gap, 100.0]])
    log_q = log_other_winner(votes, sigma)
    claimed = float(dependent_divergence(log_q, sigma, [order])[0, 0])
    # Of two classes: the difference of both counts, with noise of √2σ.
    here, there = (norm.sf(each / (math.sqrt(2) * sigma)) for each in (gap, gap - 2))
    total = there**order * here ** (1 - order) + (1 - there) ** order * (1 - here) ** (1 - order)
    measured = math.log(total) / (order - 1)
    return Finding(
        f"Papernot et al. 2018, Theorem 6: σ = {sigma:g}, {100 + gap} to 100 votes, from a "
        f"neighbour to these; divergence at λ = {order:g}",
        Unit.REPLACED_PHONE,
        0.0,
        claimed,
        float(outcome_divergence(votes, sigma, [order])[0, 0]),
        Bracket(measured - ERROR, measured + ERROR),
        Technique(EXACT, "exact: two outcomes"),
    )


def smooth_release(order: float = 14.0, beta: float = 0.0329, sigma: float = 11.64) -> Finding:
    """Audit Theorem 23: the cost of publishing a cost by smooth sensitivity."""
    claimed = printed_release_divergence(order, beta, sigma)
    wide = math.exp(beta) * sigma
    # ∫ p^λ p'^(1−λ) dx of N(0, wide²) and N(1, σ²): a bell, which a fine sum measures.
    curvature = order / wide**2 + (1 - order) / sigma**2
    centre = (1 - order) / sigma**2 / curvature
    step = 0.05 / math.sqrt(curvature)
    at = centre + step * np.arange(-300, 301)
    logs = -order * at**2 / (2 * wide**2) - (1 - order) * (at - 1) ** 2 / (2 * sigma**2)
    logs -= order * math.log(wide) + (1 - order) * math.log(sigma) + math.log(2 * math.pi) / 2
    measured = math.log(step * float(np.exp(logs).sum())) / (order - 1)
    return Finding(
        f"Papernot et al. 2018, Theorem 23: publishing a cost, β = {beta}, σ_s = {sigma}; "
        f"divergence at λ = {order:g}",
        Unit.REPLACED_PHONE,
        0.0,
        claimed,
        release_divergence(order, beta, sigma),
        Bracket(measured - ERROR, measured),
        Technique(EXACT, "exact: two normal laws, one sensitivity apart and e^β as wide"),
    )


def audit_printed_scale() -> Iterator[Finding]:
    """Set claims about Laplace noise of scale K/2ε beside what it lets K winners tell.

    Yang et al. (Interspeech 2021, section 3.1 and Figure 5) call K labels of that noise
    (ε, 10⁻⁵)-differentially private, whatever K is. For few queries the claim is too small, for
    many it is too large.
    """
    for queries, claimed in ((10, 1.0), (SCALE_TEACHERS, 100.0), (2000, 10.0)):
        yield scale_of(queries, claimed)


def scale_of(queries: int, epsilon: float) -> Finding:
    """Audit K queries under one claim."""
    return Finding(
        f"PATE-AAE, Laplace noise of scale K/2ε: ε = {epsilon:g}, K = {queries:,} queries, two "
        f"classes, {SCALE_TEACHERS} teachers",
        Unit.REPLACED_PHONE,
        SCALE_DELTA,
        epsilon,
        proven_epsilon(queries, epsilon),
        measured_epsilon(queries, epsilon),
        Technique(
            EXACT, "exact: how often each class wins, by the law of the noise, the worst lead"
        ),
    )


def added_epsilon(epsilon: float) -> float:
    """Return 4ε, purely: K times the 2/b of a query, b = K/2ε, by plain addition."""
    return 4 * epsilon


@functools.lru_cache(maxsize=64)
def proven_epsilon(queries: int, epsilon: float, delta: float = SCALE_DELTA) -> float:
    """Return the most that K such answers cost: by addition, or at δ as divergences compose."""
    event = Pure(2 / printed_scale(epsilon, queries), queries)
    return min(added_epsilon(epsilon), composed([event], delta).epsilon)


@functools.lru_cache(maxsize=64)
def measured_epsilon(
    queries: int, epsilon: float, delta: float = SCALE_DELTA, teachers: int = SCALE_TEACHERS
) -> Bracket:
    """Return the least that they cost: one query K times over, two classes, one vote that moves.

    How often the first class wins is all that K equal queries tell; the worst of the leads that
    are tried counts, in both directions.

    Args:
        queries: Number K of queries.
        epsilon: Claimed ε.
        delta: Value of δ.
        teachers: Votes of each query.
    """
    from scipy.stats import binom

    scale, times = printed_scale(epsilon, queries), np.arange(queries + 1)
    worst = Bracket(0.0, 0.0)
    # A lead has the parity of the number of votes.
    leads = {2 * round(each / 2) + teachers % 2 for each in np.linspace(0, teachers, 11)}
    for lead in sorted(lead for lead in leads if lead <= teachers):
        here, there = (
            np.asarray(binom.pmf(times, queries, wins(each / scale))) for each in (lead, lead - 2)
        )
        for p, q in ((here, there), (there, here)):
            found = outcome_epsilon(p, q, delta, queries * 1e-11)  # the law is in closed form
            worst = max(worst, found, key=lambda each: each.low)
    return worst


def wins(lead: float) -> float:
    """Return how likely a class with this lead wins, the lead in scales of the noise.

    The difference of two Laplace numbers is below −d with probability (2 + d) e^(−d) / 4.
    """
    other = (2 + abs(lead)) * math.exp(-abs(lead)) / 4
    return 1 - other if lead >= 0 else other
