"""Counters in memory shared by several processes, any of which can read the totals.

The memory is anonymous: nothing else can remove or fill it, and it is freed with the last process
that maps it. Each process writes to its own part, without a lock that it could hold when it is
killed; its successor continues the counts of the part.
"""

from __future__ import annotations

import mmap
import struct
import threading
from collections.abc import Iterator, Sequence

import msgspec

PART = 2**18
"""Bytes of a part: four times the need of all endpoints and statuses together."""
_USED = struct.Struct("=Q")
_HEAD = struct.Struct("=II")

Key = tuple[str, ...]
"""Name of a counter, and its labels."""


class SharedCounts:
    """Counts of this process and of all that are forked from it afterwards.

    The memory is an array of parts: the number of bytes in use, then a record for each key. A
    record is the length of the key, the number of its counts, the key in JSON, padded to a multiple
    of eight bytes, and the counts as doubles.

    Args:
        parts: Largest number of processes that count at a time.
    """

    def __init__(self, parts: int = 1) -> None:
        memory = mmap.mmap(-1, parts * PART)
        memory.write(bytes(len(memory)))  # fail now, not later, if memory is short
        self._parts = [memoryview(memory)[at : at + PART] for at in range(0, len(memory), PART)]
        self._lock = threading.Lock()
        self.take(0)

    def take(self, part: int | None) -> None:
        """Let this process count in a part of the shared memory.

        Args:
            part: Index of the part; None if all are taken: then its counts are in no total.
        """
        self._own = memoryview(bytearray(PART)) if part is None else self._parts[part]
        self._places = {key: place for key, place, _ in _records(self._own)}

    def add(self, key: Key, amounts: Sequence[float]) -> None:
        """Add to the counts of a key; their number must be the same in every call.

        Without room for a new key, nothing is counted.
        """
        numbers = struct.Struct(f"={len(amounts)}d")
        with self._lock:
            place = self._places.get(key) or self._append(key, numbers)
            if place is None:
                return
            present = numbers.unpack_from(self._own, place)
            added = (count + more for count, more in zip(present, amounts, strict=True))
            # A concurrent reader sees each number either before or after this.
            self._own[place : place + numbers.size] = numbers.pack(*added)

    def totals(self) -> dict[Key, list[float]]:
        """Return the counts of all processes together."""
        totals: dict[Key, list[float]] = {}
        for part in self._parts:
            for key, place, count in _records(part):
                present = struct.unpack_from(f"={count}d", part, place)
                before = totals.get(key, [0.0] * count)
                totals[key] = [one + other for one, other in zip(before, present, strict=True)]
        return totals

    def of_part(self, part: int | None) -> float:
        """Return the sum of all counts in a part; it grows with everything counted there."""
        if part is None:
            return 0.0
        return sum(
            sum(struct.unpack_from(f"={count}d", self._parts[part], place))
            for _, place, count in _records(self._parts[part])
        )

    def _append(self, key: Key, numbers: struct.Struct) -> int | None:
        """Return the place of a new record's counts; None if there is no room for them."""
        name = msgspec.json.encode(key)
        name += b" " * (-len(name) % 8)
        (used,) = _USED.unpack_from(self._own)
        begin: int = max(used, _USED.size)
        place = begin + _HEAD.size + len(name)
        end = place + numbers.size
        if end > PART:
            return None
        self._own[begin:place] = _HEAD.pack(len(name), numbers.size // 8) + name
        self._own[: _USED.size] = _USED.pack(end)  # last, so that a record is whole or not there
        self._places[key] = place
        return place


def _records(part: memoryview) -> Iterator[tuple[Key, int, int]]:
    """Yield the key of each record, and the offset and number of its counts."""
    (used,) = _USED.unpack_from(part)
    at = _USED.size
    while at < used:
        length, count = _HEAD.unpack_from(part, at)
        place = at + _HEAD.size + length
        yield msgspec.json.decode(part[at + _HEAD.size : place], type=Key), place, count
        at = place + 8 * count
