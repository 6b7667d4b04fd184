"""From a budget to noise: what is the least noise with which sums together cost no more."""

from __future__ import annotations

import math
from collections.abc import Sequence

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.mechanisms import Unit, VectorSum

_SEARCHED = 60
"""Halvings of an interval: more than doubles tell apart."""


def noise_multipliers(
    epsilon: float, delta: float, weights: Sequence[float], lengths: Sequence[int]
) -> tuple[float, ...]:
    """Noise of several `VectorSum`s that together are (ε, δ)-private per phone, and hardly less.

    Args:
        epsilon: ε, at least 10⁻⁹.
        delta: δ.
        weights: how the sums share the cost, as ρ of zero-concentrated privacy; positive.
        lengths: entries of a vector of each sum.

    Returns:
        The noise multiplier of each.

    Raises:
        InvalidParametersError: a value out of range, or a δ that is no more than what the secure
            sums spend of it.
    """
    checks.epsilon("epsilon", epsilon)
    checks.probability("delta", delta)
    shares = [checks.positive("weight", weight) for weight in weights]

    def multipliers(scale: float) -> tuple[float, ...]:
        return tuple(scale / math.sqrt(share / sum(shares)) for share in shares)

    def costs(scale: float) -> float:
        noises = zip(multipliers(scale), lengths, strict=True)
        sums = (VectorSum(noise, length, delta, 1) for noise, length in noises)
        return composed_epsilon(tuple(each.event(Unit.PHONE) for each in sums), delta)

    low, high = 2.0**-40, 2.0**60
    if costs(high) > epsilon:
        raise InvalidParametersError(
            f"epsilon={epsilon:g} with delta={delta:g} is out of reach for {len(shares)} secure "
            "sums: what they may fail by costs more; give a larger delta"
        )
    for _ in range(_SEARCHED):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if costs(middle) <= epsilon else (middle, high)
    return multipliers(high)
