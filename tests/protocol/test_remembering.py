"""What is worked out once for messages that are the same, and again for any that are not."""

from __future__ import annotations

import math

import msgspec
import pytest

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.phases.parameters import check_once
from earshot_protocol.remembering import remembered
from earshot_protocol.secure_sum.parameters import choose


class _Number(msgspec.Struct, frozen=True):
    value: float


class _Other(msgspec.Struct, frozen=True):
    value: float


def test_a_message_that_came_again_is_not_worked_out_again() -> None:
    seen: list[msgspec.Struct] = []

    @remembered(4)
    def square(message: _Number) -> float:
        seen.append(message)
        return message.value**2

    assert [square(_Number(3.0)), square(_Number(3.0)), square(_Number(4.0))] == [9, 9, 16]
    assert seen == [_Number(3.0), _Number(4.0)]


def test_messages_that_are_equal_are_not_the_same_where_their_bytes_differ() -> None:
    @remembered(8)
    def said(message: msgspec.Struct) -> str:
        return f"{type(message).__name__} {message.value!r}"  # type: ignore[attr-defined]

    equal = (_Number(0.0), _Number(-0.0), _Number(False), _Number(0), _Other(0.0))
    assert [said(each) for each in equal] == [
        "_Number 0.0",
        "_Number -0.0",
        "_Number False",
        "_Number 0",
        "_Other 0.0",
    ]
    assert said(_Number(math.nan)) == "_Number nan"


def test_only_the_latest_are_kept() -> None:
    counted: list[float] = []

    @remembered(2)
    def count(message: _Number) -> None:
        counted.append(message.value)

    for value in (1.0, 2.0, 3.0, 2.0, 1.0):
        count(_Number(value))
    assert counted == [1.0, 2.0, 3.0, 1.0]


def test_what_is_refused_once_is_refused_again() -> None:
    good = choose(200, (3,), 10, 0.1, 0.05)
    weak = msgspec.structs.replace(good, threshold=1)
    check_once(good)
    for _ in range(2):
        with pytest.raises(InvalidParametersError, match="threshold"):
            check_once(weak)
    check_once(good)
    # A number that is equal and of another type is looked at for itself.
    with pytest.raises(InvalidParametersError, match="phones"):
        check_once(msgspec.structs.replace(good, phones=200.0))  # type: ignore[arg-type]
