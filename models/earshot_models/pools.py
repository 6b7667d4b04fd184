"""Pools of training sound, by origin, and their audible windows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_models.augmentations import resampled
from earshot_protocol.checks import positive
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.spectrum import SAMPLE_RATE

LEAST_RMS = 1e-3
"""Least root mean square of a training window; quieter ones are uninformative."""

_HOPS = 10
"""Starts of windows per second."""


@dataclass(frozen=True)
class Pool:
    """Recordings of one origin.

    Attributes:
        sounds: Samples of each sound, float32 (samples,).
        recordings: Recording of each sound, int64 (sounds,); sounds with one number were cut from
            one recording. Two pools never share a number.
        share: Share of a batch, relative to the other pools.
        name: Name of the origin.
        rate: Samples per second.
        unreadable: Error of each file that was left out.
    """

    sounds: Sequence[NDArray[np.float32]]
    recordings: NDArray[np.int64]
    share: float
    name: str = ""
    rate: int = SAMPLE_RATE
    unreadable: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if len(self.sounds) != len(self.recordings) or not self.sounds:
            raise InvalidInputError(
                f"a pool needs sounds and a recording for each, not {len(self.sounds)} sounds and "
                f"{len(self.recordings)} recordings"
            )
        positive("share", self.share)


class Audible:
    """Sounds of a pool that are not silent, and the places where windows of them may start.

    Attributes:
        sounds: Sounds of the pool that are not silent, float32 (samples,) each.
        starts: Starts of each sound's windows, int64 (windows,), in samples, a tenth of a second
            apart.
        recordings: Recording of each sound, int64 (sounds,).
        share: Share of a batch, relative to the other pools.
        rate: Samples per second.
    """

    def __init__(self, pool: Pool, octaves: float) -> None:
        """Select the sounds that are not silent.

        Args:
            pool: Recordings of one origin.
            octaves: Largest change of pitch downwards, by which windows are shortened, in octaves.

        Raises:
            InvalidInputError: The whole pool is silent.
        """
        shortest = resampled(pool.rate, -octaves)
        starts = [_loud(sound, pool.rate, shortest) for sound in pool.sounds]
        audible = [index for index, loud in enumerate(starts) if len(loud)]
        if not audible:
            raise InvalidInputError("all sounds of a pool are silent")
        self.sounds = [pool.sounds[index] for index in audible]
        self.starts = [starts[index] for index in audible]
        self.recordings = pool.recordings[audible]
        self.share = pool.share
        self.rate = pool.rate
        lengths = np.sqrt([len(sound) for sound in self.sounds])
        self._chances = lengths / lengths.sum()

    def draw(self, generator: np.random.Generator) -> int:
        """Draw the index of a sound, with a probability proportional to the root of its length.

        A long sound has more to hear than a short one, but its seconds resemble each other.
        """
        return int(generator.choice(len(self.sounds), p=self._chances))

    def other(self, index: int, generator: np.random.Generator) -> int:
        """Draw the index of a sound that was cut from the same recording, perhaps the same."""
        of = np.flatnonzero(self.recordings == self.recordings[index])
        return int(generator.choice(of))

    def window(
        self, index: int, start: int, length: int, generator: np.random.Generator
    ) -> NDArray[np.float32]:
        """Return `length` samples from about `start`; a shorter sound is padded at random."""
        sound = self.sounds[index]
        if len(sound) < length:
            window = np.zeros(length, dtype=np.float32)
            place = int(generator.integers(length - len(sound) + 1))
            window[place : place + len(sound)] = sound
            return window
        start = min(start + int(generator.integers(self.rate // _HOPS)), len(sound) - length)
        return np.asarray(sound[start : start + length], dtype=np.float32)


class Sound:
    """All audible sound of several pools at one rate.

    Attributes:
        rate: Samples per second.
    """

    def __init__(self, pools: Iterable[Pool], octaves: float) -> None:
        """Select the sounds of all pools that are not silent.

        Args:
            pools: Pools, at least one, all of one rate.
            octaves: Largest change of pitch downwards, by which windows are shortened, in octaves.

        Raises:
            InvalidInputError: There is no pool, a pool is silent, or the pools are of several
                rates.
        """
        self._pools = [Audible(pool, octaves) for pool in pools]
        if not self._pools:
            raise InvalidInputError("there must be a pool to draw from")
        rates = {pool.rate for pool in self._pools}
        if len(rates) != 1:
            raise InvalidInputError(f"the pools must be of one rate, not {sorted(rates)}")
        (self.rate,) = rates
        shares = np.array([pool.share for pool in self._pools])
        self._shares = shares / shares.sum()

    def draw(self, generator: np.random.Generator) -> Audible:
        """Draw one of the pools, with a probability proportional to its share."""
        return self._pools[generator.choice(len(self._pools), p=self._shares)]


def _loud(sound: NDArray[np.float32], rate: int, shortest: int) -> NDArray[np.int64]:
    """Return starts, a tenth of a second apart, after which half a second is not silent.

    Where windows may be shorter than that, it is the samples of the `shortest`.
    """
    samples = min(rate // 2, shortest)
    starts = np.arange(0, max(len(sound) - rate, 0) + 1, rate // _HOPS)
    energy = np.concatenate([[0.0], np.cumsum(np.square(sound, dtype=np.float64))])
    ends = np.minimum(starts + samples, len(sound))
    loud = energy[ends] - energy[starts] > LEAST_RMS**2 * samples
    return np.asarray(starts[loud], dtype=np.int64)
