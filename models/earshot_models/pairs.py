"""Batches for contrastive learning: two views each of many recordings, without a label in sight."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_models import augmentations as augment
from earshot_models.augmentations import Augmentations, Variant
from earshot_protocol.checks import positive, whole
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.spectrum import SAMPLE_RATE, WINDOW

LEAST_RMS = 1e-3
"""A window below this is not paired: what it holds says little."""

_HOP = 800
_SHORTEST = WINDOW // 2
"""No view is made from a shorter window: where this much is loud, the whole is."""


@dataclass(frozen=True)
class Pool:
    """Recordings of one origin.

    Attributes:
        sounds: float32 (samples,) each, at 8 kHz.
        recordings: int64 (sounds,); sounds with one number were cut from one recording. Two pools
            never share a number.
        share: of a batch, relative to the other pools.
        name: of the origin.
    """

    sounds: Sequence[NDArray[np.float32]]
    recordings: NDArray[np.int64]
    share: float
    name: str = ""

    def __post_init__(self) -> None:
        if len(self.sounds) != len(self.recordings) or not self.sounds:
            raise InvalidInputError(
                f"a pool needs sounds and as many recordings, not {len(self.sounds)} and "
                f"{len(self.recordings)}"
            )
        positive("share", self.share)


class Pairs:
    """Draws batches; each follows from the seed and its number alone, so any can be drawn again.

    A sound is as likely to be drawn as any other of its pool. The two windows of a pair come from
    the same recording, from another part of it where there is one.
    """

    def __init__(
        self, pools: Iterable[Pool], augmentations: Augmentations, batch: int, seed: int
    ) -> None:
        """Find out where the sounds can be heard.

        Args:
            pools: at least one; silent sounds are left out.
            augmentations: what makes two views of a window.
            batch: pairs in a batch, at least 2.
            seed: at least 0.

        Raises:
            InvalidParametersError: if `batch` or `seed` is out of range.
            InvalidInputError: if a pool is silent.
        """
        self._augmentations = augmentations
        self._batch = whole("batch", batch, 2)
        self._seed = whole("seed", seed, 0)
        self._pools = list(map(_Audible, pools))
        if not self._pools:
            raise InvalidInputError("there must be a pool to draw from")
        shares = np.array([pool.share for pool in self._pools])
        self._shares = shares / shares.sum()

    def batch(
        self, number: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
        """Batch `number`: two views of each of `batch` sounds.

        Returns:
            float32 (batch, 8000) twice, and the recording that each pair was cut from, int32
            (batch,): two pairs of one recording need not sound alike.
        """
        generator = np.random.default_rng([self._seed, number])
        views = np.empty((2, self._batch, WINDOW), dtype=np.float32)
        recordings = np.empty(self._batch, dtype=np.int32)
        for row in range(self._batch):
            views[:, row], recordings[row] = self._pair(generator)
            if generator.random() < self._augmentations.company:
                beside, _ = self._pair(generator)
                loudness = 10 ** (-generator.uniform(*self._augmentations.company_snr) / 20)
                for own, other in zip(views[:, row], beside, strict=True):
                    own[:] = augment.unit(own + loudness * other)
        mixed = augment.mix(views.reshape(-1, WINDOW), self._augmentations, generator)
        return mixed[: self._batch], mixed[self._batch :], recordings

    def _pair(self, generator: np.random.Generator) -> tuple[list[NDArray[np.float32]], int]:
        """Two views of a variant of a recording, and which one it is."""
        pool = self._pools[generator.choice(len(self._pools), p=self._shares)]
        of = augment.variant(self._augmentations, generator)
        windows, recording = pool.windows(self._augmentations, of, generator)
        views = [augment.view(window, self._augmentations, of, generator) for window in windows]
        return views, recording


class _Audible:
    """The sounds of a pool that are not silent, and where windows of them may start."""

    def __init__(self, pool: Pool) -> None:
        starts = list(map(_loud, pool.sounds))
        audible = [index for index, loud in enumerate(starts) if len(loud)]
        if not audible:
            raise InvalidInputError("all sounds of a pool are silent")
        self.sounds = [pool.sounds[index] for index in audible]
        self.starts = [starts[index] for index in audible]
        self.recordings = pool.recordings[audible]
        self.share = pool.share

    def windows(
        self, augmentations: Augmentations, of: Variant, generator: np.random.Generator
    ) -> tuple[list[NDArray[np.float32]], int]:
        """Two windows of one recording, of the lengths that `augment.length` wants."""
        sound = int(generator.integers(len(self.sounds)))
        recording = int(self.recordings[sound])
        start = int(generator.choice(self.starts[sound]))
        first = self._window(sound, start, augment.length(augmentations, of, generator), generator)
        if augmentations.offset is None:
            sound = int(generator.choice(np.flatnonzero(self.recordings == recording)))
            starts = self.starts[sound]
        else:
            starts = self.starts[sound]
            starts = starts[np.abs(starts - start) <= augmentations.offset * SAMPLE_RATE]
        start = int(generator.choice(starts))
        second = self._window(sound, start, augment.length(augmentations, of, generator), generator)
        return [first, second], recording

    def _window(
        self, index: int, start: int, length: int, generator: np.random.Generator
    ) -> NDArray[np.float32]:
        """`length` samples from about `start`; a shorter sound lies anywhere in silence."""
        sound = self.sounds[index]
        if len(sound) < length:
            window = np.zeros(length, dtype=np.float32)
            place = int(generator.integers(length - len(sound) + 1))
            window[place : place + len(sound)] = sound
            return window
        start = min(start + int(generator.integers(_HOP)), len(sound) - length)
        return np.asarray(sound[start : start + length], dtype=np.float32)


def _loud(sound: NDArray[np.float32]) -> NDArray[np.int64]:
    """Starts, a tenth of a second apart, after which half a second is not silent."""
    starts = np.arange(0, max(len(sound) - WINDOW, 0) + 1, _HOP)
    energy = np.concatenate([[0.0], np.cumsum(np.square(sound, dtype=np.float64))])
    ends = np.minimum(starts + _SHORTEST, len(sound))
    loud = energy[ends] - energy[starts] > LEAST_RMS**2 * _SHORTEST
    return np.asarray(starts[loud], dtype=np.int64)
