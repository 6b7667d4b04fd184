"""What papers claim that votes cost, to stand beside what they do cost.

None of it is used to account for anything. Where votes have several winners, noise is on those for
a label and on those that are not for it; as both add up to the teachers, σ there is
`printed_deviation` on the votes here.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError

Numbers = npt.NDArray[np.float64]


def claimed_binary(labels: int, sigma: float, orders: npt.ArrayLike) -> Numbers:
    """kλ/σ² for an answer of `BinaryVoting` (Dziedzic et al., PoPETs 2023, 5.1); 2kλ/σ² holds."""
    return np.asarray(orders, dtype=np.float64) * labels / sigma**2


def claimed_clipped(tau: float, norm: int, sigma: float, orders: npt.ArrayLike) -> Numbers:
    """λτ²/σ² for ballots of length τ in L2 (their Lemma 3.2) and 2λτ²/σ² in L1 (their (9)).

    In L2, 4λτ²/σ² holds where there is room for two such ballots. In L1 the length in L1 is
    charged, though noise is Gaussian.

    Raises:
        InvalidParametersError: another norm.
    """
    if norm not in (1, 2):
        raise InvalidParametersError(f"norm={norm}: must be 2 or 1")
    return np.asarray(orders, dtype=np.float64) * tau**2 * (3 - norm) / sigma**2


def claimed_powerset(sigma: float, orders: npt.ArrayLike) -> Numbers:
    """λ/σ² for an answer of `PowersetVoting` (their Proposition 5.1), which holds."""
    return np.asarray(orders, dtype=np.float64) / sigma**2


def printed_deviation(sigma: float) -> float:
    """σ/2: on votes for a label, of noise σ against votes that are exactly n less them.

    (Dziedzic et al., Definitions 4 and 7.) Their Algorithm 1 draws noise of variance σ²/2 twice,
    which is the same law.
    """
    return checks.positive("sigma", sigma) / 2


def published_deviation(sigma: float) -> float:
    """σ/√2: on votes for a label, of noise σ on both counts, as their program draws it."""
    return checks.positive("sigma", sigma) / math.sqrt(2.0)


def classic_rho(epsilon: float, delta: float) -> float:
    """ρ that ε pays for as papers convert: min_λ ρλ + ln(1/δ)/(λ − 1) = ρ + 2√(ρ ln(1/δ)) = ε.

    Raises:
        InvalidParametersError: ε or δ out of range.
    """
    checks.positive("epsilon", epsilon)
    log = -math.log(checks.probability("delta", delta))
    return (math.sqrt(log + epsilon) - math.sqrt(log)) ** 2


def printed_scale(epsilon: float, queries: int) -> float:
    """K/2ε, scale of the Laplace noise on each count of K queries (Yang et al., Interspeech 2021).

    Under their Figure 5; under their equation 3 the scale is the inverse of that. A vote that moves
    changes two counts by one, so the answers cost 4ε as they add up; ε needs 2K/ε.

    Raises:
        InvalidParametersError: ε or K out of range.
    """
    return checks.whole("queries", queries) / (2 * checks.epsilon("epsilon", epsilon))
