"""Calibration of noise to a budget: the least noise with which releases together cost no more.

Noise is found by halving an interval down to the precision of doubles, and the safe end of the last
interval is taken: the cost is never above the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import Unit, VectorSum

_SEARCHED = 60
"""Halvings of an interval: more than doubles can distinguish."""


def largest_scale(
    events: Callable[[float], Iterable[Event]],
    epsilon: float,
    delta: float,
    least: float = 2.0**-60,
    most: float = 2.0**40,
) -> float:
    """Return the largest scale at which releases together are (ε, δ)-private.

    Args:
        events: Function from a scale to the events released at it; a larger scale costs more.
        epsilon: Value of ε, at least 10⁻⁹.
        delta: Value of δ, above 0 and below 1.
        least: Smallest scale that is tried, above 0.
        most: Largest scale that is tried.

    Returns:
        The scale, from `least` to `most`.

    Raises:
        InvalidParametersError: The value of ε or δ is out of range, or no scale costs so little
            because δ is at most what secure sums may fail by.
    """
    checks.epsilon("epsilon", epsilon)
    checks.probability("delta", delta)
    low, high = least, most
    if composed_epsilon(events(low), delta) > epsilon:
        raise InvalidParametersError(
            f"epsilon={epsilon:g} with delta={delta:g} is out of reach: the chance that releases "
            "such as secure sums fail costs more than that, whatever the noise; give a larger delta"
        )
    for _ in range(_SEARCHED):
        middle = math.sqrt(low * high)
        within = composed_epsilon(events(middle), delta) <= epsilon
        low, high = (middle, high) if within else (low, middle)
    return low


def noise_multipliers(
    epsilon: float,
    delta: float,
    weights: Sequence[float],
    lengths: Sequence[int],
    unit: Unit = Unit.PHONE,
    rows: Sequence[int] | None = None,
) -> tuple[float, ...]:
    """Return noise of several `VectorSum`s that together are (ε, δ)-private, and hardly less.

    Args:
        epsilon: Value of ε, at least 10⁻⁹.
        delta: Value of δ.
        weights: Shares of the sums in the cost, as ρ of zero-concentrated privacy; positive.
        lengths: Number of entries of a vector of each sum.
        unit: Unit in which neighbours differ.
        rows: Number of entries of a vector of each sum that one recording adds to; by default all.

    Returns:
        The noise multiplier of each sum.

    Raises:
        InvalidParametersError: A value is out of range, or δ is at most what the secure sums spend
            of it.
    """
    shares = _shares(weights, len(lengths))

    def multipliers(scale: float) -> tuple[float, ...]:
        return tuple(1 / (scale * math.sqrt(share)) for share in shares)

    def events(scale: float) -> list[Event]:
        sums = zip(multipliers(scale), lengths, rows or lengths, strict=True)
        return [
            VectorSum(noise, length, delta, 1, row=row).event(unit) for noise, length, row in sums
        ]

    return multipliers(largest_scale(events, epsilon, delta))


def check_delta(delta: float, phones: int) -> None:
    """Refuse a δ with which a phase may expose one of its phones and keep its word.

    Raises:
        InvalidParametersError: The value of δ is not a probability, or is 1/phones or more.
    """
    checks.probability("delta", delta)
    if delta * checks.whole("phones", phones) >= 1:
        raise InvalidParametersError(
            f"delta={delta:g}: must be below 1/phones = {1 / phones:g}, or everything about one of "
            f"{phones} phones may be revealed"
        )


def _shares(weights: Sequence[float], count: int) -> list[float]:
    """Return weights scaled to add up to 1."""
    if not weights or len(weights) != count:
        raise InvalidParametersError(
            f"weights: lengths need one each, {count} in all, but there are {len(weights)}"
        )
    each = [checks.positive("weight", weight) for weight in weights]
    return [weight / math.fsum(each) for weight in each]
