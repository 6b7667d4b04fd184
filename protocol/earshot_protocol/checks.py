"""Validators of numbers: each says in one sentence what was wrong and what would be accepted.

They return the checked value, so that a check and an assignment are one line.
"""

from __future__ import annotations

import math
import operator

from earshot_protocol.errors import InvalidParametersError

SMALLEST_EPSILON = 1e-9
"""Smallest ε: noise for less would leave the range of its samplers."""


def whole(name: str, value: int, least: int = 1, most: int | None = None) -> int:
    """Return a value that is a whole number from `least` to `most`, both included.

    Without `most` there is no upper limit.

    Raises:
        InvalidParametersError: The value is not such a number.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or (most is not None and number > most):
        accepted = f"at least {least}" if most is None else f"from {least} to {most}"
        raise InvalidParametersError(f"{name}={value!r}: must be a whole number, {accepted}")
    return number


def positive(name: str, value: float, most: float = math.inf) -> float:
    """Return a value that is above 0, finite and at most `most`.

    Raises:
        InvalidParametersError: The value is not such a number.
    """
    # The condition is negated so that not-a-number is refused, here and below.
    if not (0 < value <= most and math.isfinite(value)):
        limit = "" if most == math.inf else f", at most {most:g}"
        raise InvalidParametersError(f"{name}={value}: must be a positive, finite number{limit}")
    return float(value)


def epsilon(name: str, value: float) -> float:
    """Return an ε for which noise can be drawn: finite, and at least 10⁻⁹.

    Raises:
        InvalidParametersError: The value is not such a number.
    """
    if positive(name, value) < SMALLEST_EPSILON:
        raise InvalidParametersError(f"{name}={value}: must be at least {SMALLEST_EPSILON:g}")
    return float(value)


def noise(name: str, value: float) -> float:
    """Return a deviation or scale of noise whose square, and its inverse's, a number holds.

    Raises:
        InvalidParametersError: The value is not from 10⁻⁹ to 10⁹.
    """
    return between(name, value, 1e-9, 1e9)


def between(name: str, value: float, least: float, most: float = math.inf) -> float:
    """Return a value from `least` to `most`, both included; without `most` there is no upper limit.

    Raises:
        InvalidParametersError: The value is not such a number.
    """
    if not least <= value <= most:
        accepted = f"at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        raise InvalidParametersError(f"{name}={value}: must be a number, {accepted}")
    return float(value)


def fraction(name: str, value: float) -> float:
    """Return a part of a whole that is never all of it: at least 0 and below 1.

    Raises:
        InvalidParametersError: The value is not such a number.
    """
    if not 0 <= value < 1:
        raise InvalidParametersError(f"{name}={value}: must be at least 0 and below 1")
    return float(value)


def share(name: str, value: float) -> float:
    """Return a part of a whole that may be all of it: from 0 to 1.

    Raises:
        InvalidParametersError: The value is not such a number.
    """
    if not 0 <= value <= 1:
        raise InvalidParametersError(f"{name}={value}: must be from 0 to 1")
    return float(value)


def probability(name: str, value: float) -> float:
    """Return a probability that is neither impossible nor certain, such as a δ.

    Raises:
        InvalidParametersError: The value is not such a number.
    """
    if not 0 < value < 1:
        raise InvalidParametersError(f"{name}={value}: must be above 0 and below 1")
    return float(value)
