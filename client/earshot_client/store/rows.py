"""The byte layout of sealed rows; every recording's row has the same length."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from datetime import date

import numpy as np
from numpy.typing import NDArray

from earshot_client.store.interface import LARGEST_NAME

_COUNT = struct.Struct("<Q")
_CHOICE = struct.Struct(f"<H{4 * LARGEST_NAME}s")
"""Length of a choice in bytes, and the bytes, at most four per character in UTF-8."""
_NO_CHOICE = 0xFFFF
_MADE = struct.Struct("<I?")
"""Day by its number in the Gregorian calendar, 0 for none, and whether it was counted."""


@dataclass(frozen=True)
class RecordingRow:
    """Content of a recording's row, before it is sealed.

    Attributes:
        embedding: Embedding, float32 (dimensions,).
        day: Day on which it was made; None if unknown.
        choice: Choice of the user; None if there is none.
        counted: Whether a histogram has counted it.
    """

    embedding: NDArray[np.float32]
    day: date | None = None
    choice: str | None = None
    counted: bool = False

    def pack(self) -> bytes:
        """Return the row's plain text."""
        encoded = b"" if self.choice is None else self.choice.encode()
        length = _NO_CHOICE if self.choice is None else len(encoded)
        made = _MADE.pack(0 if self.day is None else self.day.toordinal(), self.counted)
        return self.embedding.astype("<f4").tobytes() + _CHOICE.pack(length, encoded) + made

    @classmethod
    def unpack(cls, plaintext: bytes, dimensions: int) -> RecordingRow:
        """Read what `pack` made of a recording with this many dimensions."""
        embedding = np.frombuffer(plaintext, "<f4", dimensions)
        length, encoded = _CHOICE.unpack_from(plaintext, embedding.nbytes)
        ordinal, counted = _MADE.unpack_from(plaintext, embedding.nbytes + _CHOICE.size)
        return cls(
            embedding,
            date.fromordinal(ordinal) if ordinal else None,
            None if length == _NO_CHOICE else encoded[:length].decode(),
            counted,
        )


def pack_count(count: int) -> bytes:
    """Pack a number of ledger entries."""
    return _COUNT.pack(count)


def unpack_count(plaintext: bytes) -> int:
    """Read what `pack_count` made."""
    (count,) = _COUNT.unpack(plaintext)
    return int(count)
