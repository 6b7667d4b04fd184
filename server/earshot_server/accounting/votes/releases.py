"""Publishing what votes cost: smooth sensitivity, noise in proportion to it, and what that costs.

The noise is normal, of a deviation that depends on the votes itself: neighbours' differ by a factor
of e^β at most. What `votes.smooth` bounds is what goes in here.
"""

from __future__ import annotations

import math
import os
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.randomness import RandomBytes

Numbers = npt.NDArray[np.float64]

_CELLS = 2.0**10
"""Of a published divergence, to one."""
_LEAST = 2.0**-20


def smooth_sensitivity(sensitivities: Numbers, beta: float) -> float:
    """max_d e^(−βd) LS_d: neighbours' are within a factor of e^β of each other.

    Args:
        sensitivities: LS_d for d = 0, 1, …, (distances,).
        beta: β, positive.
    """
    distances = np.arange(len(sensitivities))
    largest = np.max(np.exp(-checks.positive("beta", beta) * distances) * sensitivities)
    return float(largest)


def release_divergence(order: float, beta: float, deviation: float) -> float:
    """What it costs to publish a value with normal noise of SS·σ_s: λ/(2σ_s²v) − ln v/(2(λ−1)) − β.

    v = λ − (λ − 1)e^(2β) must be above 0. It is the divergence of two normal laws whose means are
    one smooth sensitivity apart, the smaller of both, and whose deviations differ by a factor of
    e^β, the wider one first; the other way round it is less.

    Args:
        order: λ, above 1.
        beta: β of the smooth sensitivity.
        deviation: σ_s, in units of it.

    Raises:
        InvalidParametersError: β is too large for any noise to be enough; says which is not.
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
    """β below which `release_divergence` exists: ½ ln(λ / (λ − 1))."""
    return -0.5 * math.log1p(-1 / order)


def printed_release_divergence(order: float, beta: float, deviation: float) -> float:
    """Theorem 23 of Papernot et al. (ICLR 2018) as printed; too little from βλ ≈ 0.3 on.

    λe^(2β)/σ_s² + (βλ − ½ ln(1 − 2βλ))/(λ − 1), for λ < 1/(2β).

    Raises:
        InvalidParametersError: λ is not below 1/(2β).
    """
    if not (order > 1 and 2 * beta * order < 1):
        raise InvalidParametersError(f"order={order}: must be above 1 and below {1 / (2 * beta):g}")
    noise = order * math.exp(2 * beta) / deviation**2
    return noise + (beta * order - 0.5 * math.log(1 - 2 * beta * order)) / (order - 1)


class Release(NamedTuple):
    """How a cost is published.

    Attributes:
        order: λ of the divergence.
        beta: β.
        deviation: σ_s, of the noise in units of smooth sensitivity.
        sensitivity: SS itself, which is secret.
        divergence: what publishing costs, at this order.
    """

    order: float
    beta: float
    deviation: float
    sensitivity: float
    divergence: float

    @property
    def noise(self) -> float:
        """Deviation of the noise on the published divergence; as secret as the sensitivity.

        It is `_LEAST` where there is nothing to hide, which is as smooth.
        """
        return max(self.sensitivity * self.deviation, _LEAST)


def published(divergence: float, release: Release, random: RandomBytes = os.urandom) -> float:
    """R + SS·N(0, σ_s²), rounded up to a multiple of 2^-10: what may be shown of a cost.

    Noise is in exact steps, smaller by far than those that are published: in each of these it falls
    nearly as often as real-valued noise would (`noisy_counts.ODDS`). What is shown can be smaller
    than R, even negative; what was spent is this and `Release.divergence`, at this order.

    Args:
        divergence: R of the votes there were.
        release: how.
        random: source of bytes; a seeded one belongs in simulations only.
    """
    noisy = float(noisy_counts.with_normal(np.array(divergence), release.noise, random))
    return math.ceil(noisy * _CELLS) / _CELLS


def best_release(sensitivities: Numbers, order: float) -> Release:
    """β and σ_s for which cost of publishing and deviation of the noise add up to least.

    It looks at the votes: whoever publishes must choose with votes that are not secret, or before.

    Args:
        sensitivities: LS_d at this order, (distances,).
        order: λ.
    """
    found = []
    for beta in largest_beta(order) * np.linspace(0.05, 0.95, 46):
        secret = max(smooth_sensitivity(sensitivities, float(beta)), 1e-12)
        left = order - (order - 1) * math.exp(2 * beta)
        deviation = (order / left / secret) ** (1 / 3)  # where the derivative of both vanishes
        cost = release_divergence(order, float(beta), deviation)
        found.append(Release(order, float(beta), deviation, secret, cost))
    return min(found, key=lambda each: each.divergence + each.noise)
