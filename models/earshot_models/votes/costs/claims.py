"""Costs of votes as claimed in papers, for comparison with the real ones.

They are not used for accounting. For votes with several winners, the papers add noise both to the
votes for a label and to those against it; as the two sum to the number of teachers, their σ equals
`printed_deviation` on the votes here.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidParametersError


def claimed_binary(labels: int, sigma: float, orders: npt.ArrayLike) -> Numbers:
    """Return kλ/σ², as claimed for binary voting (Dziedzic et al., PoPETs 2023, 5.1).

    For an answer, 2kλ/σ² holds.
    """
    return np.asarray(orders, dtype=np.float64) * labels / sigma**2


def claimed_clipped(tau: float, norm: int, sigma: float, orders: npt.ArrayLike) -> Numbers:
    """Return λτ²/σ² for ballots of length τ in L2 (their Lemma 3.2), 2λτ²/σ² in L1 (their (9)).

    In L2, 4λτ²/σ² holds where two such ballots can be disjoint. In L1, the papers charge the L1
    length although the noise is Gaussian.

    Raises:
        InvalidParametersError: The norm is neither 1 nor 2.
    """
    if norm not in (1, 2):
        raise InvalidParametersError(f"norm={norm}: must be 1 or 2")
    return np.asarray(orders, dtype=np.float64) * tau**2 * (3 - norm) / sigma**2


def claimed_powerset(sigma: float, orders: npt.ArrayLike) -> Numbers:
    """Return λ/σ² for an answer of powerset voting (their Proposition 5.1), which holds."""
    return np.asarray(orders, dtype=np.float64) / sigma**2


def printed_deviation(sigma: float) -> float:
    """Return σ/2: on votes for a label, if these have noise σ and the other votes are exact.

    The other votes are n less those for the label (Dziedzic et al., Definitions 4 and 7). Their
    Algorithm 1 draws noise of variance σ²/2 twice, which gives the same law.
    """
    return checks.positive("sigma", sigma) / 2


def classic_rho(epsilon: float, delta: float) -> float:
    """Return the largest ρ for ε in papers: min_λ ρλ + ln(1/δ)/(λ − 1) = ρ + 2√(ρ ln(1/δ)) = ε.

    Raises:
        InvalidParametersError: The value of ε or δ is out of range.
    """
    checks.positive("epsilon", epsilon)
    log = -math.log(checks.probability("delta", delta))
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def printed_scale(epsilon: float, queries: int) -> float:
    """Return K/2ε, the scale of Laplace noise on each count of K queries.

    It is stated under Figure 5 of Yang et al. (Interspeech 2021); under their equation 3, the scale
    is the inverse. A vote that moves changes two counts by one each, so the answers add up to 4ε; ε
    needs 2K/ε.

    Raises:
        InvalidParametersError: The value of ε or K is out of range.
    """
    return checks.whole("queries", queries) / (2 * checks.epsilon("epsilon", epsilon))
