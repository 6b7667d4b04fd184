"""Every validator names what it was given, what is wrong with it, and what would be right."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from earshot_protocol.checks import (
    between,
    epsilon,
    fraction,
    positive,
    probability,
    share,
    whole,
)
from earshot_protocol.errors import InvalidParametersError


@pytest.mark.parametrize(
    ("check", "accepted", "refused"),
    [
        (lambda x: whole("x", x), [1, 2**70, np.int8(3)], [0, -1, 1.0, math.nan, "1", None]),
        (lambda x: whole("x", x, 0, 5), [0, 5], [-1, 6, 5.0]),
        (lambda x: positive("x", x), [5e-324, 1, 1e308], [0, -1, math.inf, math.nan]),
        (lambda x: positive("x", x, 2), [0.1, 2], [0, 2.1, math.nan]),
        (lambda x: between("x", x, -1), [-1, 0, math.inf], [-1.1, -math.inf, math.nan]),
        (lambda x: between("x", x, 0.25, 2), [0.25, 2], [0.2, 2.1, math.inf, math.nan]),
        (lambda x: fraction("x", x), [0, 0.999], [-0.1, 1, math.nan]),
        (lambda x: share("x", x), [0, 1], [-0.1, 1.1, math.nan]),
        (lambda x: probability("x", x), [1e-300, 0.999], [0, 1, -0.1, math.nan]),
    ],
)
def test_what_is_in_range_comes_back_and_the_rest_is_named(
    check: Callable[[object], float], accepted: list[float], refused: list[object]
) -> None:
    assert [check(value) for value in accepted] == accepted
    for value in refused:
        with pytest.raises(InvalidParametersError, match=r"^x=.+: must be .+"):
            check(value)


CHECKS: dict[str, Callable[[object], float]] = {
    "whole": lambda x: whole("x", x, 0, 2),
    "positive": lambda x: positive("x", x),
    "epsilon": lambda x: epsilon("x", x),
    "between": lambda x: between("x", x, 0, 2),
    "fraction": lambda x: fraction("x", x),
    "share": lambda x: share("x", x),
    "probability": lambda x: probability("x", x),
}


@pytest.mark.parametrize("check", CHECKS.values(), ids=CHECKS)
@pytest.mark.parametrize(
    "value",
    ["0.5", "1", b"1", True, np.True_, None, [1], np.array([0.5]), np.str_("1"), 1j, {}],
    ids=repr,
)
def test_what_is_no_number_is_named_and_never_read_as_one(
    check: Callable[[object], float], value: object
) -> None:
    with pytest.raises(InvalidParametersError, match=r"^x=.+: must be .+"):
        check(value)


@pytest.mark.parametrize("name", CHECKS)
def test_a_number_of_numpy_comes_back_as_python_s(name: str) -> None:
    number, python = (1, int) if name == "whole" else (0.5, float)
    kinds = [np.int8, np.uint64] if python is int else [np.float16, np.float32, np.longdouble]
    for value in [number, np.array(number), *(kind(number) for kind in kinds)]:
        found = CHECKS[name](value)
        assert (type(found), found) == (python, number)


def test_a_whole_number_beyond_every_float_is_refused() -> None:
    with pytest.raises(InvalidParametersError, match="must be a number, at least 0"):
        between("x", 10**400, 0)


def test_bounds_are_told() -> None:
    for message, refuse in {
        "n=0: must be a whole number, at least 1": lambda: whole("n", 0),
        "n=9: must be a whole number, from 2 to 8": lambda: whole("n", 9, 2, 8),
        "x=3: must be a positive, finite number, at most 2": lambda: positive("x", 3, 2),
        "x=-1: must be a number, at least 0": lambda: between("x", -1, 0),
        "x=3: must be a number, from 0.25 to 2": lambda: between("x", 3, 0.25, 2),
    }.items():
        with pytest.raises(InvalidParametersError) as refusal:
            refuse()
        assert str(refusal.value) == message
