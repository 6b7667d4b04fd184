"""Random bytes: recorded, replayed, and chosen to reach the tails.

A sampler is a function of its random bytes. So a party has added all of its noise, and nothing
else, if the same bytes give the same noise again, entry by entry.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt

from earshot_protocol.arrays import Whole
from earshot_protocol.keyed_randomness import keyed
from earshot_protocol.randomness import RandomBytes

Words = npt.NDArray[np.uint64]

WORD_BITS = 64
LARGEST_WORD = 2**WORD_BITS - 1


class Noted:
    """A recording source of bytes.

    Args:
        source: Source of the bytes.
    """

    def __init__(self, source: RandomBytes) -> None:
        self._source = source
        self._answers: list[bytes] = []

    def __call__(self, size: int) -> bytes:
        """Return this many bytes."""
        self._answers.append(self._source(size))
        return self._answers[-1]

    def taken(self) -> list[bytes]:
        """Return the recorded answers, and start a new record."""
        taken, self._answers = self._answers, []
        return taken


def drawn_again(draw: Callable[[RandomBytes], Whole], answers: Sequence[bytes]) -> Whole | None:
    """Draw from recorded bytes; None if they do not fit.

    Args:
        draw: Function that draws from a source of bytes.
        answers: Answers of the recorded source.
    """
    left = list(answers)[::-1]

    def again(size: int) -> bytes:
        if not left or len(left[-1]) != size:
            raise _OtherBytesError
        return left.pop()

    try:
        drawn = draw(again)
    except _OtherBytesError:
        return None
    return None if left else drawn


class _OtherBytesError(Exception):
    """A replay requests more or fewer bytes than were recorded."""


def steered(key: bytes, *names: object) -> RandomBytes:
    """Return a source of extreme words, very small or very large.

    A digit that is rarely one is one here every other time. For half of the words the logarithm is
    about uniform; for the others, that of their distance from the largest word.
    """
    random = keyed(key, *names)

    def source(size: int) -> bytes:
        return steered_words(random, (-(-size * 8 // WORD_BITS),)).tobytes()[:size]

    return source


def steered_words(random: RandomBytes, shape: tuple[int, ...]) -> Words:
    """Return extreme words, see `steered`, as uint64 of this shape."""
    words = np.frombuffer(random(8 * int(np.prod(shape))), dtype="<u8").reshape(shape)
    choices = np.frombuffer(random(words.size), dtype=np.uint8).reshape(shape)
    small = words >> (choices % WORD_BITS).astype(np.uint64)
    return np.where(choices >= 2**7, ~small, small).astype("<u8")
