"""Sound to learn from, by origin, and where in it something can be heard."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.checks import positive
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.spectrum import SAMPLE_RATE

LEAST_RMS = 1e-3
"""A window below this is not learned from: what it holds says little."""

_HOPS = 10
"""Starts of windows in a second."""


@dataclass(frozen=True)
class Pool:
    """Recordings of one origin.

    Attributes:
        sounds: float32 (samples,) each.
        recordings: int64 (sounds,); sounds with one number were cut from one recording. Two pools
            never share a number.
        share: of a batch, relative to the other pools.
        name: of the origin.
        rate: samples per second.
    """

    sounds: Sequence[NDArray[np.float32]]
    recordings: NDArray[np.int64]
    share: float
    name: str = ""
    rate: int = SAMPLE_RATE

    def __post_init__(self) -> None:
        if len(self.sounds) != len(self.recordings) or not self.sounds:
            raise InvalidInputError(
                f"a pool needs sounds and as many recordings, not {len(self.sounds)} and "
                f"{len(self.recordings)}"
            )
        positive("share", self.share)


class Audible:
    """The sounds of a pool that are not silent, and where windows of them may start.

    Attributes:
        sounds: as the pool's.
        starts: of each sound, int64 (windows,), samples a tenth of a second apart.
        recordings: as the pool's.
        share: as the pool's.
        rate: as the pool's.
    """

    def __init__(self, pool: Pool) -> None:
        """Listen to all of it.

        Raises:
            InvalidInputError: if a pool is silent.
        """
        starts = [_loud(sound, pool.rate) for sound in pool.sounds]
        audible = [index for index, loud in enumerate(starts) if len(loud)]
        if not audible:
            raise InvalidInputError("all sounds of a pool are silent")
        self.sounds = [pool.sounds[index] for index in audible]
        self.starts = [starts[index] for index in audible]
        self.recordings = pool.recordings[audible]
        self.share = pool.share
        self.rate = pool.rate

    def window(
        self, index: int, start: int, length: int, generator: np.random.Generator
    ) -> NDArray[np.float32]:
        """`length` samples from about `start`; a shorter sound lies anywhere in silence."""
        sound = self.sounds[index]
        if len(sound) < length:
            window = np.zeros(length, dtype=np.float32)
            place = int(generator.integers(length - len(sound) + 1))
            window[place : place + len(sound)] = sound
            return window
        start = min(start + int(generator.integers(self.rate // _HOPS)), len(sound) - length)
        return np.asarray(sound[start : start + length], dtype=np.float32)


class Sound:
    """All that can be heard of pools, which are of one rate.

    Attributes:
        rate: samples per second.
    """

    def __init__(self, pools: Iterable[Pool]) -> None:
        """Listen to all of them.

        Raises:
            InvalidInputError: if there is none, one is silent, or they are of several rates.
        """
        self._pools = list(map(Audible, pools))
        if not self._pools:
            raise InvalidInputError("there must be a pool to draw from")
        rates = {pool.rate for pool in self._pools}
        if len(rates) != 1:
            raise InvalidInputError(f"the pools must be of one rate, not {sorted(rates)}")
        (self.rate,) = rates
        shares = np.array([pool.share for pool in self._pools])
        self._shares = shares / shares.sum()

    def draw(self, generator: np.random.Generator) -> Audible:
        """One of the pools, as likely as its share."""
        return self._pools[generator.choice(len(self._pools), p=self._shares)]


def _loud(sound: NDArray[np.float32], rate: int) -> NDArray[np.int64]:
    """Starts, a tenth of a second apart, after which half a second is not silent.

    No view is made from a shorter window than that half: where it is loud, the whole is.
    """
    starts = np.arange(0, max(len(sound) - rate, 0) + 1, rate // _HOPS)
    energy = np.concatenate([[0.0], np.cumsum(np.square(sound, dtype=np.float64))])
    ends = np.minimum(starts + rate // 2, len(sound))
    loud = energy[ends] - energy[starts] > LEAST_RMS**2 * (rate // 2)
    return np.asarray(starts[loud], dtype=np.int64)
