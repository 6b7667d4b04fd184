"""Publication of a data-dependent cost with noise of smooth sensitivity.

The noise is normal, with a deviation that depends on the votes; those of neighbours differ by at
most a factor of e^β. The local sensitivities come from `costs.smooth`.
"""

from __future__ import annotations

import enum
import math
import os
from typing import NamedTuple

import numpy as np

from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.randomness import RandomBytes

_CELLS = 2.0**10
"""Steps of a published divergence per unit."""
_LEAST = 2.0**-20


def smooth_sensitivity(sensitivities: Numbers, beta: float) -> float:
    """Return max_d e^(−βd) LS_d; those of neighbours are within a factor of e^β of each other.

    Args:
        sensitivities: Local sensitivities LS_d for d = 0, 1, …, (distances,).
        beta: Smoothness β, positive.
    """
    distances = np.arange(len(sensitivities))
    largest = np.max(np.exp(-checks.positive("beta", beta) * distances) * sensitivities)
    return float(largest)


def release_divergence(order: float, beta: float, deviation: float) -> float:
    """Return the cost of publishing a value with normal noise of deviation SS·σ_s.

    The cost is λ/(2σ_s²v) − ln v/(2(λ−1)) − β, where v = λ − (λ − 1)e^(2β) must be above 0. It is
    the divergence of two normal laws whose means are one smooth sensitivity (the smaller of both)
    apart, and whose deviations differ by a factor of e^β, from the wider one to the other; in the
    other direction it is less.

    Args:
        order: Order λ, above 1.
        beta: Smoothness β of the sensitivity.
        deviation: Deviation σ_s, in units of the smooth sensitivity.

    Raises:
        InvalidParametersError: The smoothness β is too large for any noise.
    """
    if not (math.isfinite(order) and order > 1):
        raise InvalidParametersError(f"order={order}: must be finite and above 1")
    checks.positive("beta", beta)
    sigma = checks.positive("deviation", deviation)
    left = order - (order - 1) * math.exp(2 * beta)
    if left <= 0:
        most = largest_beta(order)
        raise InvalidParametersError(f"beta={beta}: must be below {most:.4g} at the order {order}")
    return order / (2 * sigma**2 * left) - math.log(left) / (2 * (order - 1)) - beta


def largest_beta(order: float) -> float:
    """Return the β below which `release_divergence` is finite: ½ ln(λ / (λ − 1))."""
    return -0.5 * math.log1p(-1 / order)


def printed_release_divergence(order: float, beta: float, deviation: float) -> float:
    """Return the cost of Theorem 23 of Papernot et al. (ICLR 2018), too small from βλ ≈ 0.3 on.

    It is λe^(2β)/σ_s² + (βλ − ½ ln(1 − 2βλ))/(λ − 1), for λ < 1/(2β).

    Raises:
        InvalidParametersError: The order λ is not below 1/(2β).
    """
    if not (order > 1 and 2 * beta * order < 1):
        raise InvalidParametersError(f"order={order}: must be above 1 and below {1 / (2 * beta):g}")
    noise = order * math.exp(2 * beta) / deviation**2
    return noise + (beta * order - 0.5 * math.log(1 - 2 * beta * order)) / (order - 1)


class VotesCost(enum.StrEnum):
    """Kind of data-dependent cost."""

    DEPENDENT = "dependent"
    """Cost by Theorem 6 of Papernot et al. (2018), which bounds one direction."""
    EXACT = "exact"
    """Cost by the distribution of outcomes, in both directions; for two classes only."""


class Costs(NamedTuple):
    """Data-dependent cost of some queries together.

    Attributes:
        spent: Cost of the queries; to be published with noise.
        sensitivities: Local sensitivities LS_d for d = 0, 1, …, teachers, (teachers + 1,).
    """

    spent: float
    sensitivities: Numbers


class CostRelease(NamedTuple):
    """Settings for the publication of a cost.

    Attributes:
        order: Order λ of the divergence.
        beta: Smoothness β of the sensitivity.
        deviation: Deviation σ_s of the noise, in units of the smooth sensitivity.
        sensitivity: Smooth sensitivity SS itself, which is secret.
        divergence: Cost of publishing, at this order.
    """

    order: float
    beta: float
    deviation: float
    sensitivity: float
    divergence: float

    @property
    def noise(self) -> float:
        """Deviation of the noise on the published divergence; as secret as the sensitivity.

        It is at least `_LEAST`, which keeps it smooth.
        """
        return max(self.sensitivity * self.deviation, _LEAST)


def published(divergence: float, release: CostRelease, random: RandomBytes = os.urandom) -> float:
    """Return R + SS·N(0, σ_s²), rounded up to a multiple of 2^-10, for publication.

    The noise is sampled exactly in much smaller steps, so the result has nearly the probabilities
    of real-valued noise (`noisy_counts.ODDS`). The value can be smaller than R, even negative; its
    sum with `CostRelease.divergence` is the cost at this order.

    Args:
        divergence: Divergence R of the actual votes.
        release: Settings by which it is published.
        random: Source of bytes; a seeded one belongs in simulations only.
    """
    noisy = float(noisy_counts.with_normal(np.array(divergence), release.noise, random))
    return math.ceil(noisy * _CELLS) / _CELLS


def best_release(sensitivities: Numbers, order: float) -> CostRelease:
    """Return β and σ_s that minimise the cost of publishing plus the deviation of the noise.

    The choice depends on the votes: for a publication, use public votes or choose beforehand.

    Args:
        sensitivities: Local sensitivities LS_d at this order, (distances,).
        order: Order λ.
    """
    found = []
    for beta in largest_beta(order) * np.linspace(0.05, 0.95, 46):
        secret = max(smooth_sensitivity(sensitivities, float(beta)), 1e-12)
        left = order - (order - 1) * math.exp(2 * beta)
        deviation = (order / left / secret) ** (1 / 3)  # where the sum's derivative vanishes
        cost = release_divergence(order, float(beta), deviation)
        found.append(CostRelease(order, float(beta), deviation, secret, cost))
    return min(found, key=lambda each: each.divergence + each.noise)
