"""What teacher and student hear together: sound of all kinds, faster, slower and mixed."""

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

CHANCES = ("changed", "coloured", "backwards", "mixed")
"""Of a `Variation`; at 0 there is none of it."""


@dataclass(frozen=True)
class Variation:
    """How a few hours of sound become as many lessons as there is time for.

    A teacher can be asked about anything, so what it says of a mixture is as true as what it says
    of a recording.

    Attributes:
        changed: chance of another speed.
        octaves: by which pitch and tempo change then, at most.
        coloured: chance of another colour.
        slope: decibels per octave by which it changes then, at most.
        backwards: chance to be heard backwards.
        mixed: chance of a second sound beside the first.
        mixed_snr: decibels of the second above the first, least and most.
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
    """A number of seconds; each follows from the seed and its number alone.

    Attributes:
        count: how many there are.
        rate: samples per second, of all pools.
        identity: tells these lessons from any others: of other sound, variation or seed.
    """

    def __init__(
        self, pools: Sequence[Pool], variation: Variation, count: int, seed: int = 0
    ) -> None:
        """Find out where the sounds can be heard.

        Args:
            pools: at least one, all of one rate; silent sounds are left out.
            variation: of the sounds.
            count: of lessons, at least 2.
            seed: at least 0.

        Raises:
            InvalidParametersError: if `count` or `seed` is out of range.
            InvalidInputError: if a pool is silent, or the pools are of several rates.
        """
        self.count = whole("count", count, 2)
        self._seed = whole("seed", seed, 0)
        self._variation = variation
        self._sound = Sound(pools)
        self.rate = self._sound.rate
        self.identity = self._identity(pools)

    def spectrum(self, number: int) -> tuple[NDArray[np.complex64], int]:
        """What is heard in a lesson, and the recording that most of it was cut from.

        Returns:
            The real Fourier transform of a second of unit root mean square, complex64
            (rate // 2 + 1,), and the number of a recording.
        """
        generator = np.random.default_rng([self._seed, number])
        spectrum, recording = self._one(generator)
        if generator.random() < self._variation.mixed:
            beside, _ = self._one(generator)
            loudness = 10 ** (generator.uniform(*self._variation.mixed_snr) / 20)
            spectrum = _unit(spectrum + np.float32(loudness) * beside)
        return spectrum, recording

    def sound(self, number: int) -> NDArray[np.float32]:
        """The same as samples, float32 (rate,)."""
        from scipy import fft

        return np.asarray(fft.irfft(self.spectrum(number)[0], self.rate), dtype=np.float32)

    def _one(self, generator: np.random.Generator) -> tuple[NDArray[np.complex64], int]:
        """A second of one recording; at another speed, of another colour or backwards perhaps."""
        from scipy import fft

        pool = self._sound.draw(generator)
        octaves = 0.0
        if generator.random() < self._variation.changed:
            octaves = generator.uniform(-self._variation.octaves, self._variation.octaves)
        index, window = _window(pool, octaves, generator)
        spectrum = augment.band(fft.rfft(window), len(window), self.rate)
        if generator.random() < self._variation.coloured:
            slope = generator.uniform(-self._variation.slope, self._variation.slope)
            spectrum *= responses.tilted(slope, self.rate)
        if generator.random() < self._variation.backwards:
            spectrum = spectrum.conj()
        return _unit(spectrum), int(pool.recordings[index])

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
    """Batches for a student: a second as a phone hears it, and what the teacher said of it.

    The student alone hears the room, the pocket and the noise: what it says must not depend on
    them. Each batch follows from the seed and its number alone, so any can be drawn again.
    """

    def __init__(
        self,
        lessons: Lessons,
        targets: NDArray[np.float32],
        augmentations: Augmentations,
        batch: int,
        seed: int,
        rate: int,
    ) -> None:
        """Put lessons and targets together.

        Args:
            lessons: what is heard.
            targets: float32 (lessons, parts × 128), unit rows.
            augmentations: of what the student hears; pitch, speed and company are the lessons'.
            batch: lessons in a batch, at least 2.
            seed: at least 0.
            rate: samples per second that the phone hears, at most those of the lessons.

        Raises:
            InvalidParametersError: if `batch`, `seed` or `rate` is out of range.
            InvalidInputError: if there are more or fewer targets than lessons.
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

    def batch(
        self, number: int
    ) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.int32]]:
        """Batch `number`: lessons in an order that is another in each pass through all of them.

        Returns:
            float32 (batch, rate), the targets float32 (batch, parts × 128), and the recording that
            most of each was cut from, int32 (batch,).
        """
        generator = np.random.default_rng([self._seed, number])
        chosen = generator.integers(self._lessons.count, size=self._batch)
        heard = [self._lessons.spectrum(int(lesson)) for lesson in chosen]
        spectra = (augment.band(each, self._lessons.rate, self._rate) for each, _ in heard)
        sounds = augment.phones(spectra, self._augmentations, generator)
        recordings = np.array([recording for _, recording in heard], dtype=np.int32)
        return sounds, self._targets[chosen], recordings


def _window(
    pool: Audible, octaves: float, generator: np.random.Generator
) -> tuple[int, NDArray[np.float32]]:
    """Which sound, and a window of it that becomes a second when it is heard faster or slower."""
    length = augment.resampled(pool.rate, octaves)
    index = int(generator.integers(len(pool.sounds)))
    start = int(generator.choice(pool.starts[index]))
    return index, pool.window(index, start, length, generator)


def _unit(spectrum: NDArray[np.complex64]) -> NDArray[np.complex64]:
    """The spectrum of a real sound of an even number of samples, at unit root mean square."""
    samples = 2 * (len(spectrum) - 1)
    power = 2 * float(np.sum(np.square(np.abs(spectrum)), dtype=np.float64)) / samples**2
    return np.asarray(spectrum / np.float32(max(np.sqrt(power), 1e-6)), dtype=np.complex64)
