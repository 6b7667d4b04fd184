"""Calibration of noise to a budget: the least noise with which releases together cost no more.

Noise is found by bisection, down to the precision of doubles, and the safe end of the last interval
is taken: the cost is never above the budget.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.composition import Composition, composed_epsilon
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import Unit, VectorSum

_HARDLY = 1 - 1e-5
"""Relative tolerance of the search: this share of the wanted ε is close enough."""
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
        InvalidParametersError: The value of ε or δ is out of range; or no scale costs so little,
            because δ is at most the failure probability of the secure sums; or none so much,
            because beyond some ε they use up δ.
    """
    checks.epsilon("epsilon", epsilon)
    checks.probability("delta", delta)
    if composed_epsilon(events(least), delta) > epsilon:
        raise InvalidParametersError(
            f"epsilon={epsilon:g} with delta={delta:g} is out of reach: the chance that releases "
            "such as secure sums fail costs more than that, whatever the noise; give a larger delta"
        )

    def within(scale: float) -> bool:
        return composed_epsilon(events(scale), delta) <= epsilon

    def reached(scale: float) -> bool:
        released = tuple(events(scale))
        return composed_epsilon(released, delta) * _HARDLY <= _added(released, delta)

    found = _largest(within, least, most)
    if not reached(found) or composed_epsilon(events(found), delta) < _HARDLY * epsilon:
        limit = _added(tuple(events(_largest(reached, least, found))), delta)
        raise InvalidParametersError(
            f"epsilon={epsilon:g} with delta={delta:g} is out of reach: beyond "
            f"epsilon={math.floor(100 * limit) / 100:g}, the chance that secure sums fail is all "
            "of that delta, whatever the noise; give at most that"
        )
    return found


def _largest(fits: Callable[[float], bool], least: float, most: float) -> float:
    """Return the largest scale that fits, where all smaller ones do, by halving."""
    for _ in range(_SEARCHED):
        middle = math.sqrt(least * most)
        least, most = (middle, most) if fits(middle) else (least, middle)
    return least


def _added(events: Sequence[Event], delta: float) -> float:
    """Return the sum of the events' individual costs, an upper bound on what reports show."""
    each = (Composition([event]) for event in events)
    return math.fsum(
        one.added_epsilon if math.isfinite(one.added_epsilon) else one.epsilon(delta)
        for one in each
    )


def noise_multipliers(
    epsilon: float,
    delta: float,
    weights: Sequence[float],
    lengths: Sequence[int],
    unit: Unit = Unit.PHONE,
    recordings: Sequence[float] | None = None,
    survivors: int | None = 1,
) -> tuple[float, ...]:
    """Return noise of several `VectorSum`s that together are (ε, δ)-private, and hardly less.

    Args:
        epsilon: Value of ε, at least 10⁻⁹.
        delta: Value of δ.
        weights: Shares of the sums in the cost, as ρ of zero-concentrated privacy; positive.
        lengths: Number of entries of a vector of each sum.
        unit: Unit in which neighbours differ.
        recordings: Most that one recording moves a vector of each sum, as `VectorSum.recording`.
        survivors: Any number where phones share the noise, since costs do not depend on it; None
            where each of two operators adds the whole noise.

    Returns:
        The noise multiplier of each sum.

    Raises:
        InvalidParametersError: A value is out of range, or the secure sums use up δ.
    """
    shares = _shares(weights, len(lengths))
    moved = recordings or [VectorSum.recording] * len(lengths)

    def multipliers(scale: float) -> tuple[float, ...]:
        return tuple(1 / (scale * math.sqrt(share)) for share in shares)

    def events(scale: float) -> list[Event]:
        sums = zip(multipliers(scale), lengths, moved, strict=True)
        return [
            VectorSum(noise, length, delta, survivors, recording).event(unit)
            for noise, length, recording in sums
        ]

    return multipliers(largest_scale(events, epsilon, delta))


def check_delta(delta: float, phones: int) -> None:
    """Refuse a δ that permits a phase to expose one of its phones.

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
