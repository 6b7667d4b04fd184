"""Validators of numbers: every error states the wrong value and what would be accepted.

They return the checked value as Python's `int` or `float`, so that a check and an assignment are
one line. Booleans and strings are not numbers.
"""

from __future__ import annotations

import math

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.plain_values import plain_value

SMALLEST_EPSILON = 1e-9
"""Smallest ε: noise for a smaller one would exceed the range of the samplers."""


def whole(name: str, value: int, least: int = 1, most: int | None = None) -> int:
    """Return a value that is a whole number from `least` to `most`, both included.

    Without `most` there is no upper limit.

    Raises:
        InvalidParametersError: The value is not such a number.
    """
    number = plain_value(value)
    whole = isinstance(number, int) and not isinstance(number, bool)
    if not whole or number < least or (most is not None and number > most):
        accepted = f"at least {least}" if most is None else f"from {least} to {most}"
        raise InvalidParametersError(f"{name}={number!r}: must be a whole number, {accepted}")
    return int(number)


def positive(name: str, value: float, most: float = math.inf) -> float:
    """Return a value that is above 0, finite and at most `most`.

    Raises:
        InvalidParametersError: The value is not such a number.
    """
    number = _number(value)
    # The condition is negated so that not-a-number is refused, here and below.
    if not (0 < number <= most and math.isfinite(number)):
        limit = "" if most == math.inf else f", at most {most:g}"
        raise _refused(name, value, f"a positive, finite number{limit}")
    return number


def epsilon(name: str, value: float) -> float:
    """Return an ε for which noise can be drawn: finite, and at least 10⁻⁹.

    Raises:
        InvalidParametersError: The value is not such a number.
    """
    number = positive(name, value)
    if number < SMALLEST_EPSILON:
        raise _refused(name, value, f"at least {SMALLEST_EPSILON:g}")
    return number


def noise(name: str, value: float) -> float:
    """Return a standard deviation or scale of noise whose square and inverse square are finite.

    Raises:
        InvalidParametersError: The value is not from 10⁻⁹ to 10⁹.
    """
    return between(name, value, 1e-9, 1e9)


def between(name: str, value: float, least: float, most: float = math.inf) -> float:
    """Return a value from `least` to `most`, both included; without `most` there is no upper limit.

    Raises:
        InvalidParametersError: The value is not such a number.
    """
    number = _number(value)
    if not least <= number <= most:
        accepted = f"at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        raise _refused(name, value, f"a number, {accepted}")
    return number


def fraction(name: str, value: float) -> float:
    """Return a fraction that is at least 0 and below 1.

    Raises:
        InvalidParametersError: The value is not such a number.
    """
    number = _number(value)
    if not 0 <= number < 1:
        raise _refused(name, value, "at least 0 and below 1")
    return number


def share(name: str, value: float) -> float:
    """Return a fraction from 0 to 1.

    Raises:
        InvalidParametersError: The value is not such a number.
    """
    number = _number(value)
    if not 0 <= number <= 1:
        raise _refused(name, value, "from 0 to 1")
    return number


def probability(name: str, value: float) -> float:
    """Return a probability strictly between 0 and 1, such as a δ.

    Raises:
        InvalidParametersError: The value is not such a number.
    """
    number = _number(value)
    if not 0 < number < 1:
        raise _refused(name, value, "above 0 and below 1")
    return number


def _number(value: object) -> float:
    """Return the value as a float; if it is not a number, NaN, which is in no range."""
    number = plain_value(value)
    if isinstance(number, bool) or not isinstance(number, int | float):
        return math.nan
    try:
        return float(number)
    except OverflowError:  # an integer too large for a float
        return math.nan


def _refused(name: str, value: object, accepted: str) -> InvalidParametersError:
    return InvalidParametersError(f"{name}={plain_value(value)!r}: must be {accepted}")
