"""That a phone refuses by name, without any change and before any noise is drawn."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
import pytest

from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_protocol.errors import RemoteError
from earshot_protocol.wire import Task


class CountedBytes:
    """A seeded source of bytes that tells how many were drawn."""

    def __init__(self, seed: int = 1) -> None:
        self._bytes = np.random.default_rng(seed).bytes
        self.drawn = 0

    def __call__(self, size: int) -> bytes:
        self.drawn += size
        return self._bytes(size)


def everything_in(phone: Phone) -> Any:
    """Return what the phone keeps, but for its recordings and the time at which it looked."""
    assert isinstance(phone._store, MemoryStore)
    values, *others = msgspec.msgpack.decode(phone._store.to_bytes())
    return {name: value for name, value in values.items() if name != "calendar"}, others


def refuses(phone: Phone, task: Task, error: type[RemoteError], words: str = "") -> Any:
    """Return the refusal, which is of this very type; words are a pattern."""
    assert isinstance(phone._memory.random, CountedBytes)
    before, drawn = everything_in(phone), phone._memory.random.drawn
    with pytest.raises(error, match=words or None) as raised:
        phone.answer(task)
    assert raised.type is error
    assert everything_in(phone) == before
    assert phone._memory.random.drawn == drawn
    return raised.value
