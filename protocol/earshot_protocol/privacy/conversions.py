"""Conversions between notions of privacy: ρ-zCDP, sums through a secure summation, (ε, δ)."""

from __future__ import annotations

import functools
import math

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks


def summation_distance(
    statistical_security: float = 40, computational_security: float = 128
) -> float:
    """Return the distance of a secure summation from an ideal one: 2 · 2^-σ + 2^-λ.

    Two conditions on its graph can fail for privacy, secrecy and connection (see
    `secure_sum.parameters`), and each spends its own 2^-σ: the ν1(σ) of the thesis's Theorem 8.2.

    Args:
        statistical_security: Statistical security σ, in bits.
        computational_security: Computational security λ, in bits.
    """
    return 2 * math.exp2(-statistical_security) + math.exp2(-computational_security)


def secure_sum_delta(
    epsilon: float, statistical_security: float = 40, computational_security: float = 128
) -> float:
    """Return δ = (1 + e^ε)(2 · 2^-σ + 2^-λ), at most 1, of an ε-DP release through the secure sum.

    Thesis Theorem 8.2, with `summation_distance` for its ν1(σ) + ν2(λ).

    Args:
        epsilon: Value of ε of the release through an ideal sum.
        statistical_security: Statistical security σ, in bits.
        computational_security: Computational security λ, in bits.
    """
    log_distance = math.log(summation_distance(statistical_security, computational_security))
    return math.exp(min(0.0, float(np.logaddexp(0.0, epsilon)) + log_distance))


def renyi_epsilons(
    divergences: npt.NDArray[np.float64], orders: npt.NDArray[np.float64], delta: float
) -> npt.NDArray[np.float64]:
    """Return ε of each order: D + ln(1 − 1/α) − (ln δ + ln α) / (α − 1).

    All of them hold, so the best one does (Canonne, Kamath and Steinke, NeurIPS 2020, Proposition
    12).

    Args:
        divergences: Divergences D, of shape (…, orders).
        orders: Orders α, each above 1.
        delta: Value of δ, above 0.

    Returns:
        Array of the shape of the divergences; a value below 0 means 0.
    """
    conversion = np.log1p(-1 / orders) - (math.log(delta) + np.log(orders)) / (orders - 1)
    found: npt.NDArray[np.float64] = divergences + conversion
    return found


def zcdp_delta(rho: float, epsilon: float) -> float:
    """Return a δ such that ρ-zCDP implies (ε, δ)-DP.

    It is the infimum over α > 1 of exp((α − 1)(αρ − ε)) / (α − 1) · (1 − 1/α)^α (Canonne, Kamath
    and Steinke, NeurIPS 2020, Corollary 13). Every α gives a valid bound; bisection on the
    derivative of its logarithm, which grows with α, finds the best.
    """
    low, high = 1.0, (epsilon + 1) / (2 * rho) + 2
    for _ in range(50):
        order = (low + high) / 2
        if (2 * order - 1) * rho - epsilon + math.log1p(-1 / order) < 0:
            low = order
        else:
            high = order
    log_delta = (high - 1) * (high * rho - epsilon + math.log1p(-1 / high)) - math.log(high)
    return math.exp(min(0.0, log_delta))


@functools.lru_cache(maxsize=256)
def zcdp_epsilon(rho: float, delta: float) -> float:
    """Return the smallest ε such that ρ-zCDP implies (ε, δ)-DP by `zcdp_delta`.

    Raises:
        InvalidParametersError: The value of ρ is not positive, or that of δ is not between 0 and 1.
    """
    checks.positive("rho", rho)
    checks.probability("delta", delta)
    # Bun and Steinke's Proposition 3 is looser, so it bounds the search.
    low, high = 0.0, rho + 2 * math.sqrt(-rho * math.log(delta))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if zcdp_delta(rho, middle) <= delta else (middle, high)
    return high


@functools.lru_cache(maxsize=256)
def zcdp_rho(epsilon: float, delta: float) -> float:
    """Return the largest ρ such that ρ-zCDP implies (ε, δ)-DP by `zcdp_delta`.

    Raises:
        InvalidParametersError: The value of ε is not positive, or that of δ is not between 0 and 1.
    """
    checks.positive("epsilon", epsilon)
    checks.probability("delta", delta)
    # The start satisfies Bun and Steinke's ε = ρ + 2√(ρ ln 1/δ), so it is private enough.
    low = (math.sqrt(epsilon - math.log(delta)) - math.sqrt(-math.log(delta))) ** 2
    high = 2 * low
    while zcdp_delta(high, epsilon) <= delta:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_delta(middle, epsilon) <= delta else (low, middle)
    return low
