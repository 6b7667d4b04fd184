"""Lessons for teacher and student: sounds at varied speeds, mixed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_models import augmentations as augment
from earshot_models import responses
from earshot_models.augmentations import Augmentations
from earshot_models.pools import Audible, Pool, Sound
from earshot_protocol.checks import between, share, whole
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

_Sound = NDArray[np.float32]

CHANCES = ("changed", "coloured", "backwards", "mixed")
"""Chances in a `Variation`; 0 switches one off."""


@dataclass(frozen=True)
class Variation:
    """Variation of a few hours of sound into any number of lessons.

    A teacher's output is a valid target for any sound, mixtures included.

    Attributes:
        changed: Chance of another speed.
        octaves: Largest change of pitch and tempo at another speed, in octaves.
        coloured: Chance of another colour.
        slope: Largest change of colour, in decibels per octave.
        backwards: Chance that a sound is heard backwards.
        mixed: Chance of a second sound beside the first.
        mixed_snr: Least and greatest level of the second sound over the first, in decibels.
    """

    changed: float = 0.75
    octaves: float = 0.5
    coloured: float = 0.5
    slope: float = 6.0
    backwards: float = 0.15
    mixed: float = 0.5
    mixed_snr: tuple[float, float] = (-15.0, 5.0)

    def __post_init__(self) -> None:
        for chance in CHANCES:
            share(chance, getattr(self, chance))
        between("octaves", self.octaves, 0, 1)
        between("slope", self.slope, 0, 24)
        least, most = self.mixed_snr
        if not least <= most:
            raise InvalidParametersError(f"mixed_snr must be (least, most), not {self.mixed_snr}")


class Lessons:
    """A sequence of seconds, each a function of the seed and its number.

    Attributes:
        count: Number of lessons.
        rate: Samples per second of all pools.
        identity: Digest of the sound, the variation, the count and the seed.
    """

    def __init__(
        self, pools: Sequence[Pool], variation: Variation, count: int, seed: int = 0
    ) -> None:
        """Locate the audible parts of the sounds.

        Args:
            pools: Pools of sounds, at least one, all of one rate; silent sounds are left out.
            variation: Variation of the sounds.
            count: Number of lessons, at least 2.
            seed: Seed of the lessons, at least 0.

        Raises:
            InvalidParametersError: The `count` or the `seed` is out of range.
            InvalidInputError: A pool is silent, or the pools are of several rates.
        """
        self.count = whole("count", count, 2)
        self._seed = whole("seed", seed, 0)
        self._variation = variation
        self._sound = Sound(pools, variation.octaves)
        self.rate = self._sound.rate
        self.identity = self._identity(pools)

    def spectrum(self, number: int) -> tuple[NDArray[np.complex64], int]:
        """Return a lesson's spectrum, and the recording that most of it was cut from.

        Returns:
            The real Fourier transform of a second of unit root mean square, complex64
            (rate // 2 + 1,), and the number of a recording.
        """
        (spectrum,), recording = self._heard(number, None)
        return spectrum, recording

    def pair(
        self, number: int, generator: np.random.Generator
    ) -> tuple[list[NDArray[np.complex64]], int]:
        """Return the spectra of a lesson and of another second of the same sounds.

        Both have the same pitch, colour, direction and second sound; the generator draws the part
        of each recording that the other second is cut from.

        Returns:
            Two spectra and the recording, each as `spectrum` returns it.
        """
        return self._heard(number, generator)

    def _heard(
        self, number: int, apart: np.random.Generator | None
    ) -> tuple[list[NDArray[np.complex64]], int]:
        generator = np.random.default_rng([self._seed, number])
        spectra, recording = self._one(generator, apart)
        if generator.random() < self._variation.mixed:
            beside, _ = self._one(generator, apart)
            loudness = np.float32(10 ** (generator.uniform(*self._variation.mixed_snr) / 20))
            spectra = [
                _unit(own + loudness * other) for own, other in zip(spectra, beside, strict=True)
            ]
        return spectra, recording

    def sound(self, number: int) -> NDArray[np.float32]:
        """Return a lesson's samples, float32 (rate,)."""
        from scipy import fft

        return np.asarray(fft.irfft(self.spectrum(number)[0], self.rate), dtype=np.float32)

    def _one(
        self, generator: np.random.Generator, apart: np.random.Generator | None
    ) -> tuple[list[NDArray[np.complex64]], int]:
        """Draw a second of one recording, perhaps at another speed, recoloured or backwards.

        With a generator `apart`, draw a second one from elsewhere in it, changed alike.
        """
        from scipy import fft

        pool = self._sound.draw(generator)
        octaves = 0.0
        if generator.random() < self._variation.changed:
            octaves = generator.uniform(-self._variation.octaves, self._variation.octaves)
        index = pool.draw(generator)
        windows = [_window(pool, index, octaves, generator)]
        if apart is not None:
            windows.append(_window(pool, pool.other(index, apart), octaves, apart))
        spectra = np.stack([augment.band(fft.rfft(each), len(each), self.rate) for each in windows])
        if generator.random() < self._variation.coloured:
            slope = generator.uniform(-self._variation.slope, self._variation.slope)
            spectra *= responses.tilted(slope, self.rate)
        if generator.random() < self._variation.backwards:
            spectra = spectra.conj()
        return [_unit(each) for each in spectra], int(pool.recordings[index])

    def _identity(self, pools: Sequence[Pool]) -> str:
        digest = hashlib.sha256()
        for pool in pools:
            for sound in pool.sounds:
                digest.update(np.ascontiguousarray(sound).tobytes())
        shares = [[pool.share, len(pool.sounds)] for pool in pools]
        settings = [asdict(self._variation), self.count, self._seed, self.rate, shares]
        digest.update(json.dumps(settings).encode())
        return digest.hexdigest()


class TaughtBatches:
    """Batches for a student: a second as a phone hears it, and the teacher's output for it.

    Only the student hears the room, the pocket and the noise, so that it learns to ignore them. Of
    some lessons it hears another second, too: in the same room and another pocket, noise and
    microphone. Each batch depends on the seed and its number alone.
    """

    def __init__(
        self,
        lessons: Lessons,
        targets: NDArray[np.float32],
        augmentations: Augmentations,
        batch: int,
        seed: int,
        rate: int,
        pairs: int = 0,
    ) -> None:
        """Combine lessons and targets.

        Args:
            lessons: Lessons to hear.
            targets: Teacher's output for each lesson, unit rows, float32 (lessons, parts × 128).
            augmentations: Augmentations of the student's sound, except pitch, speed and company,
                which belong to the lessons.
            batch: Lessons in a batch, at least 2.
            seed: Seed of the batches, at least 0.
            rate: Samples per second that the phone hears, at most those of the lessons.
            pairs: Lessons of which it hears another second, at most `batch`.

        Raises:
            InvalidParametersError: The `batch`, the `seed`, the `rate` or `pairs` is out of range.
            InvalidInputError: There are more or fewer targets than lessons.
        """
        if len(targets) != lessons.count:
            raise InvalidInputError(
                f"{lessons.count} lessons need as many targets, not {len(targets)}"
            )
        self._lessons = lessons
        self._targets = targets
        self._augmentations = augmentations
        self._batch = whole("batch", batch, 2)
        self._seed = whole("seed", seed, 0)
        self._rate = whole("rate", rate, 1, lessons.rate)
        self._pairs = whole("pairs", pairs, 0, batch)

    def batch(
        self, number: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
        """Return batch `number`: random lessons, each perhaps more than once.

        Returns:
            float32 (batch + pairs, rate), the other seconds of the first lessons behind all
            lessons; the targets float32 (batch, parts × 128); and the recording that most of each
            lesson was cut from, int32 (batch,).
        """
        generator = np.random.default_rng([self._seed, number])
        chosen = generator.integers(self._lessons.count, size=self._batch)
        lessons, others = list[_Sound](), list[_Sound]()
        recordings = np.empty(self._batch, dtype=np.int32)
        for place, lesson in enumerate(chosen):
            of = augment.variant(self._augmentations, generator)
            spectra, recordings[place] = self._spectra(int(lesson), place, generator)
            for views, spectrum in zip((lessons, others), spectra, strict=False):
                narrow = augment.band(spectrum, self._lessons.rate, self._rate)
                views.append(augment.heard(narrow, self._augmentations, of, generator))
        sounds = augment.mix(np.stack(lessons + others), self._augmentations, generator)
        return sounds, self._targets[chosen], recordings

    def _spectra(
        self, lesson: int, place: int, generator: np.random.Generator
    ) -> tuple[list[NDArray[np.complex64]], int]:
        if place < self._pairs:
            return self._lessons.pair(lesson, generator)
        spectrum, recording = self._lessons.spectrum(lesson)
        return [spectrum], recording


def _window(
    pool: Audible, index: int, octaves: float, generator: np.random.Generator
) -> NDArray[np.float32]:
    """Return a window of a sound that lasts a second, played faster or slower by `octaves`."""
    start = int(generator.choice(pool.starts[index]))
    return pool.window(index, start, augment.resampled(pool.rate, octaves), generator)


def _unit(spectrum: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """Scale the spectrum of a real sound of an even number of samples to unit root mean square."""
    samples = 2 * (len(spectrum) - 1)
    power = 2 * float(np.sum(np.square(np.abs(spectrum)), dtype=np.float64)) / samples**2
    return np.asarray(spectrum / np.float32(max(np.sqrt(power), 1e-6)), dtype=np.complex64)
