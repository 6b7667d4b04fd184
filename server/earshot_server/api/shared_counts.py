"""Counters in memory shared by several processes, any of which can read the totals.

The memory has no name in a file system: nobody can take it away, nothing else can fill it, and it
is gone with the last process that holds it. Each process writes into a part of its own, without a
lock that a process could hold as it is killed; whoever comes in its place counts on from there.
"""

from __future__ import annotations

import mmap
import struct
import threading
from collections.abc import Iterator, Sequence

import msgspec

PART = 2**18
"""Bytes for each process: four times what all endpoints and statuses together need."""
_USED = struct.Struct("=Q")
_HEAD = struct.Struct("=II")

Key = tuple[str, ...]
"""Name of what is counted, and its labels."""


class SharedCounts:
    """Counts of all processes that were forked since this was made.

    The memory is a row of parts: the bytes in use, then a record for each key. A record is the
    length of the key and the number of its counts, the key in JSON, filled up to eight bytes, and
    the counts as doubles.

    Args:
        parts: Most processes that count at a time.
    """

    def __init__(self, parts: int = 1) -> None:
        memory = mmap.mmap(-1, parts * PART)
        memory.write(bytes(len(memory)))  # a machine that lacks the memory says so now
        self._parts = [memoryview(memory)[at : at + PART] for at in range(0, len(memory), PART)]
        self._lock = threading.Lock()
        self.take(0)

    def take(self, part: int | None) -> None:
        """Claim a slot of the shared memory for this process.

        Args:
            part: Number of the part; None if all are taken, so that nobody sees what it counts.
        """
        self._own = memoryview(bytearray(PART)) if part is None else self._parts[part]
        self._places = {key: place for key, place, _ in _records(self._own)}

    def add(self, key: Key, amounts: Sequence[float]) -> None:
        """Add to the counts of a key, whose number never changes."""
        numbers = struct.Struct(f"={len(amounts)}d")
        with self._lock:
            place = self._places.get(key) or self._append(key, numbers)
            if place is None:
                return
            present = numbers.unpack_from(self._own, place)
            added = (count + more for count, more in zip(present, amounts, strict=True))
            # Whoever adds up meanwhile sees each of the numbers before this or after it.
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
        """Return the sum of all counts in a part, which grows with whatever is counted there."""
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
    """Yield the key, the place and the number of the counts of each record."""
    (used,) = _USED.unpack_from(part)
    at = _USED.size
    while at < used:
        length, count = _HEAD.unpack_from(part, at)
        place = at + _HEAD.size + length
        yield msgspec.json.decode(part[at + _HEAD.size : place], type=Key), place, count
        at = place + 8 * count
