"""A cache for functions of one message, which all phones of a simulation share."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TypeVar

import msgspec

_M = TypeVar("_M", bound=msgspec.Struct)
_R = TypeVar("_R")


def remembered(size: int) -> Callable[[Callable[[_M], _R]], Callable[[_M], _R]]:
    """Cache the results of a function of one message.

    The function must depend on nothing else and change nothing. Two messages are the same if their
    type and their encoding are. Equality is not enough: 0.0 equals -0.0, and 1000 equals 1000.0,
    and a function may tell them apart. Exceptions are not remembered.

    Args:
        size: Number of messages whose results are kept, the latest ones.
    """

    def decorate(function: Callable[[_M], _R]) -> Callable[[_M], _R]:
        latest = functools.lru_cache(maxsize=size)(lambda same: function(same.message))

        @functools.wraps(function)
        def of(message: _M) -> _R:
            return latest(_Same(message))

        return of

    return decorate


_encoder = msgspec.msgpack.Encoder()


class _Same:
    """A message that is compared by its type and its encoding."""

    __slots__ = ("_encoded", "message")

    def __init__(self, message: msgspec.Struct) -> None:
        self.message = message
        self._encoded = _encoder.encode(message)

    def __hash__(self) -> int:
        return hash(self._encoded)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Same)
            and type(self.message) is type(other.message)
            and self._encoded == other._encoded
        )
