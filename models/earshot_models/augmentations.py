"""What may happen to a sound without making it another: the views that contrastive learning pairs.

Everything here is numpy on waveforms, so it serves every back end of Keras. Speed, colour and room
are one pass through the spectrum: a window of another length is brought to one second there, and
filtered on the way. Masks over bands and time belong to the front end, where the bands are.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.checks import between, share
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.spectrum import SAMPLE_RATE, WINDOW

_BINS = WINDOW // 2 + 1
_ROOMS = 256
_ROOM_SAMPLES = 2400
_QUIET = 1e-6

_Generator = np.random.Generator
_Sound = NDArray[np.float32]


@dataclass(frozen=True)
class Augmentations:
    """What happens to recordings; 0 switches an augmentation off.

    Some of it both views of a pair share: then a recording that is higher, brighter, in a room or
    in other company is a recording of its own, to be told from the others. So a few hundred
    recordings become as many as there are batches, and none is learned by heart. The rest differs
    between the views, and is what an encoder should not hear.

    Attributes:
        offset: seconds between the two windows, at most; None for anywhere in the recording.
        pitch: shared: octaves by which pitch and tempo change together, at most.
        colour: shared: decibels per octave by which the colour changes, at most.
        room: shared: chance of the response of a random room.
        company: shared: chance of another recording beside this one.
        company_snr: decibels between the two, least and most.
        speed: octaves by which pitch and tempo of a view change, at most.
        tilt: decibels per octave by which the colour of a view changes, at most.
        overdrive: chance of a view to be recorded up to 12 dB too loud. (Any other gain changes
            nothing: the front end brings every second to the same level.)
        background: chance of another view of the batch in the background.
        background_snr: decibels between a view and its background, least and most.
        noise: chance of white noise, 5 to 35 dB below.
    """

    offset: float | None = None
    pitch: float = 0.4
    colour: float = 6.0
    room: float = 0.3
    company: float = 0.5
    company_snr: tuple[float, float] = (0.0, 15.0)
    speed: float = 0.05
    tilt: float = 1.5
    overdrive: float = 0.05
    background: float = 0.3
    background_snr: tuple[float, float] = (8.0, 20.0)
    noise: float = 0.3

    def __post_init__(self) -> None:
        for name in ("room", "company", "overdrive", "background", "noise"):
            share(name, getattr(self, name))
        for name, most in (("pitch", 1), ("speed", 1), ("colour", 24), ("tilt", 24)):
            between(name, getattr(self, name), 0, most)
        if self.offset is not None:
            between("offset", self.offset, 0)
        for name in ("company_snr", "background_snr"):
            least, most = getattr(self, name)
            if not least <= most:
                raise InvalidParametersError(f"{name} must be (least, most), not {(least, most)}")

    def without(self, name: str) -> Augmentations:
        """The same with one augmentation switched off, for ablation.

        Raises:
            InvalidParametersError: there is none of that name.
        """
        names = [field.name for field in fields(self) if not field.name.endswith("_snr")]
        if name not in names:
            raise InvalidParametersError(f"there is no {name!r}; there are {', '.join(names)}")
        return replace(self, **{name: 0.0})  # type: ignore[arg-type]  # none is a pair


@dataclass(frozen=True)
class Variant:
    """What both views of a pair share.

    Attributes:
        octaves: by which it is higher and faster.
        slope: of its colour, in decibels per octave.
        room: number of its room, or None.
    """

    octaves: float = 0.0
    slope: float = 0.0
    room: int | None = None


def variant(augmentations: Augmentations, generator: _Generator) -> Variant:
    """Draw what the views of a pair will share."""
    octaves = generator.uniform(-augmentations.pitch, augmentations.pitch)
    slope = generator.uniform(-augmentations.colour, augmentations.colour)
    inside = generator.random() < augmentations.room
    return Variant(octaves, slope, int(generator.integers(_ROOMS)) if inside else None)


def length(augmentations: Augmentations, of: Variant, generator: _Generator) -> int:
    """Samples that a view of one second is made from: more of them sound faster and higher."""
    from scipy.fft import next_fast_len

    octaves = of.octaves + generator.uniform(-augmentations.speed, augmentations.speed)
    # Even, and a product of small primes: the transform of another length takes thrice as long.
    return 2 * int(next_fast_len(round(WINDOW * 2**octaves / 2), real=True))


def view(
    window: _Sound, augmentations: Augmentations, of: Variant, generator: _Generator
) -> _Sound:
    """One second made of a window of any length: resampled, coloured, and put in a room.

    Args:
        window: float32 (samples,), as many as `length` said.
        augmentations: of which tilt and overdrive act here.
        of: what the other view of the pair shares.
        generator: of what it does not share.

    Returns:
        float32 (8000,) of unit root mean square, or zeros if the window is silent.
    """
    from scipy import fft

    changed = np.zeros(_BINS, dtype=np.complex64)
    spectrum = fft.rfft(window)
    # The bin at half of either rate is left out: there a real signal's phase is ambiguous.
    bins = min(WINDOW // 2, (len(window) + 1) // 2)
    changed[:bins] = spectrum[:bins]
    slope = of.slope + generator.uniform(-augmentations.tilt, augmentations.tilt)
    changed *= np.exp(np.float32(slope * np.log(10) / 20) * _octaves())
    if of.room is not None:
        changed *= _rooms()[of.room]
    sound = unit(fft.irfft(changed, WINDOW))
    if generator.random() < augmentations.overdrive:
        peak = np.abs(sound).max() * 10 ** (-generator.uniform(0, 12) / 20)
        sound = unit(np.clip(sound, -peak, peak))
    return sound


def mix(views: _Sound, augmentations: Augmentations, generator: _Generator) -> _Sound:
    """Put other views of the batch into the background of some, and noise behind some.

    Both the views, of unit root mean square, and what is returned are float32 (batch, 8000).
    """
    count = len(views)
    decibels = generator.uniform(*augmentations.background_snr, count)
    loudness = (generator.random(count) < augmentations.background) * 10 ** (-decibels / 20)
    mixed = views + loudness.astype(np.float32)[:, np.newaxis] * views[generator.permutation(count)]
    noisy = np.flatnonzero(generator.random(count) < augmentations.noise)
    hiss = generator.standard_normal((len(noisy), WINDOW), dtype=np.float32)
    level = 10 ** (-generator.uniform(5, 35, (len(noisy), 1)) / 20)
    mixed[noisy] += level.astype(np.float32) * hiss
    return np.asarray(mixed, dtype=np.float32)


@cache
def _rooms() -> NDArray[np.complex64]:
    """Spectra of rooms: a direct sound, and an echo of 20 to 150 ms that dies away.

    The same ones in every run, and not drawn anew for every view: a transform for each would take
    as long as all else.
    """
    generator = np.random.default_rng(8000)
    time = np.arange(_ROOM_SAMPLES)
    decay = generator.uniform(0.02, 0.15, (_ROOMS, 1)) * SAMPLE_RATE
    echo = generator.standard_normal((_ROOMS, _ROOM_SAMPLES)) * np.exp(-time / decay)
    response = generator.uniform(0.05, 0.4, (_ROOMS, 1)) * echo
    response[:, 0] = 1
    return np.asarray(np.fft.rfft(response, WINDOW), dtype=np.complex64)


@cache
def _octaves() -> NDArray[np.float32]:
    """Octaves above 1 kHz, flat below 50 Hz."""
    return np.log2(np.maximum(np.arange(_BINS, dtype=np.float32), 50) / 1000)


def unit(sound: NDArray[np.floating]) -> _Sound:
    """The sound at unit root mean square; silence as it is."""
    level = np.sqrt(np.mean(np.square(sound)))
    return np.asarray(sound / max(float(level), _QUIET), dtype=np.float32)
