"""Batches for contrastive learning: two views each of many recordings, without labels."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from earshot_models import augmentations as augment
from earshot_models.augmentations import Augmentations, Variant
from earshot_models.pools import Audible, Pool, Sound
from earshot_protocol.checks import whole


class Pairs:
    """Batches of pairs of views.

    A batch depends on the seed and its number alone. The two windows of a pair come from the same
    recording, from different parts where possible.
    """

    def __init__(
        self, pools: Iterable[Pool], augmentations: Augmentations, batch: int, seed: int
    ) -> None:
        """Locate the audible parts of the sounds.

        Args:
            pools: At least one pool of sounds; silent sounds are left out.
            augmentations: Augmentations that make two views of a window.
            batch: Pairs in a batch, at least 2.
            seed: Seed of the batches, at least 0.

        Raises:
            InvalidParametersError: The `batch` or the `seed` is out of range.
            InvalidInputError: A pool is silent, or the pools are of several rates.
        """
        self._augmentations = augmentations
        self._batch = whole("batch", batch, 2)
        self._seed = whole("seed", seed, 0)
        self._sound = Sound(pools, augmentations.pitch + augmentations.speed)

    def batch(
        self, number: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
        """Return batch `number`: two views of each of `batch` sounds.

        Returns:
            float32 (batch, rate) twice, and the recording that each pair was cut from, int32
            (batch,): two pairs of one recording need not sound alike.
        """
        generator = np.random.default_rng([self._seed, number])
        views = np.empty((2, self._batch, self._sound.rate), dtype=np.float32)
        recordings = np.empty(self._batch, dtype=np.int32)
        for row in range(self._batch):
            views[:, row], recordings[row] = self._pair(generator)
            if generator.random() < self._augmentations.company:
                beside, _ = self._pair(generator)
                loudness = 10 ** (-generator.uniform(*self._augmentations.company_snr) / 20)
                for own, other in zip(views[:, row], beside, strict=True):
                    own[:] = augment.unit(own + loudness * other)
        mixed = augment.mix(views.reshape(2 * self._batch, -1), self._augmentations, generator)
        return mixed[: self._batch], mixed[self._batch :], recordings

    def _pair(self, generator: np.random.Generator) -> tuple[list[NDArray[np.float32]], int]:
        """Return two views of a variant of a recording, and the recording's number."""
        pool = self._sound.draw(generator)
        of = augment.variant(self._augmentations, generator)
        windows, recording = self._windows(pool, of, generator)
        views = [
            augment.view(window, self._augmentations, of, self._sound.rate, generator)
            for window in windows
        ]
        return views, recording

    def _windows(
        self, pool: Audible, of: Variant, generator: np.random.Generator
    ) -> tuple[list[NDArray[np.float32]], int]:
        """Return two windows of one recording, with lengths that `augment.length` draws."""
        offset = self._augmentations.offset
        sound = pool.draw(generator)
        recording = int(pool.recordings[sound])
        start = int(generator.choice(pool.starts[sound]))
        length = augment.length(self._augmentations, of, pool.rate, generator)
        first = pool.window(sound, start, length, generator)
        if offset is None:
            sound = pool.other(sound, generator)
            starts = pool.starts[sound]
        else:
            starts = pool.starts[sound]
            starts = starts[np.abs(starts - start) <= offset * pool.rate]
        start = int(generator.choice(starts))
        length = augment.length(self._augmentations, of, pool.rate, generator)
        return [first, pool.window(sound, start, length, generator)], recording
