"""Random choices whose probabilities are exact to 128 bits.

A choice here differs from the named law by a statistical distance below 2^-119: a probability is
rounded down to a multiple of 2^-128, and at most 256 of them meet in one choice.
"""

from __future__ import annotations

import decimal
import os
from decimal import Decimal

from earshot_protocol import checks
from earshot_protocol.randomness import RandomBytes

_BITS = 128
_NOTHING = 90
"""Exponent from which exp(−x) counts as zero: exp(−90) is below 2^-128."""
_CONTEXT = decimal.Context(prec=60)


def grid_exp(rate: float, steps: int) -> int:
    """Return ⌊exp(−rate · steps) · 2^128⌋, a probability on the grid of 128 uniform bits.

    Args:
        rate: Rate such as ε, positive and finite.
        steps: Number such as a difference of counts, at least 0.

    Raises:
        InvalidParametersError: The rate is not positive, or steps are negative.
    """
    rate, steps = checks.positive("rate", rate), checks.whole("steps", steps, 0)
    with decimal.localcontext(_CONTEXT):
        exponent = Decimal(rate) * steps
        return 0 if exponent > _NOTHING else int((-exponent).exp() * 2**_BITS)


def bernoulli_exp(rate: float, steps: int, random: RandomBytes = os.urandom) -> bool:
    """Draw True with probability exp(−rate · steps); always with no steps.

    Args:
        rate: Rate such as ε, positive and finite.
        steps: Number such as a difference of counts, at least 0.
        random: Source of bytes; a seeded one belongs in simulations only.
    """
    return int.from_bytes(random(_BITS // 8)) < grid_exp(rate, steps)


def uniform_below(limit: int, random: RandomBytes = os.urandom) -> int:
    """Draw one of 0, …, limit − 1, each with the same probability.

    Args:
        limit: Number of outcomes, at least 1.
        random: Source of bytes; a seeded one belongs in simulations only.
    """
    bits = (checks.whole("limit", limit) - 1).bit_length()
    while True:  # each draw is below the limit with a probability above one half
        drawn = int.from_bytes(random(-(-bits // 8))) >> (-bits % 8)
        if drawn < limit:
            return drawn


def geometric(mean: int, random: RandomBytes = os.urandom) -> int:
    """Draw from the geometric distribution with this mean.

    Args:
        mean: Mean of the distribution, at least 1.
        random: Source of bytes; a seeded one belongs in simulations only.

    Returns:
        A number of at least 1.
    """
    times = 1
    while uniform_below(mean, random):
        times += 1
    return times
