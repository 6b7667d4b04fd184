"""Augmentations: label-preserving changes that make the views of contrastive learning.

Everything here is numpy on waveforms, so it serves every back end of Keras. Speed, colour and room
take one pass through the spectrum: a window of another length is brought to one second there and
filtered on the way. Masks over bands and time belong to the front end, where the bands are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

import numpy as np
from numpy.typing import NDArray

from earshot_models import responses
from earshot_protocol.checks import between, share
from earshot_protocol.errors import InvalidParametersError

_QUIET = 1e-6

_KNEE_HERTZ = (500.0, 2500.0)
_CODEC_BITS = (4, 8)

_Generator = np.random.Generator
_Sound = NDArray[np.float32]
_Spectrum = NDArray[np.complex64]


@dataclass(frozen=True)
class Augmentations:
    """Augmentations of recordings; 0 switches one off.

    Some are shared by both views of a pair: a recording with another pitch, colour, room or company
    counts as a different recording. This turns a few hundred recordings into many and prevents
    memorization. The rest differ between the views; an encoder should ignore them.

    Attributes:
        offset: Largest distance between the two windows, in seconds; None for anywhere in the
            recording.
        pitch: Largest shared change of pitch and tempo, in octaves.
        colour: Largest shared change of colour, in decibels per octave.
        room: Chance that both views are heard in the same random room.
        company: Chance that both views are heard beside another recording.
        company_snr: Least and greatest level of a recording over its company, in decibels.
        speed: Largest change of a view's pitch and tempo, in octaves.
        tilt: Largest change of a view's colour, in decibels per octave.
        microphone: Chance that a view is heard by another of a few microphones.
        pocket: Chance that a view is heard through cloth, a low-pass filter with a knee between 0.5
            and 2.5 kHz.
        codec: Chance that a view is companded to 4 to 8 bits (ITU-T G.711's µ-law).
        overdrive: Chance that a view is recorded up to 12 dB too loud. (Any other gain changes
        nothing: the front end brings every second to the same level.)
        background: Chance that another view of the batch is in the background.
        background_snr: Least and greatest level of a view over its background, in decibels.
        noise: Chance of white noise, 5 to 35 dB below the view.
    """

    offset: float | None = None
    pitch: float = 0.4
    colour: float = 6.0
    room: float = 0.3
    company: float = 0.5
    company_snr: tuple[float, float] = (0.0, 15.0)
    speed: float = 0.05
    tilt: float = 1.5
    microphone: float = 0.0
    pocket: float = 0.0
    codec: float = 0.0
    overdrive: float = 0.05
    background: float = 0.3
    background_snr: tuple[float, float] = (8.0, 20.0)
    noise: float = 0.3

    def __post_init__(self) -> None:
        chances = ("room", "company", "microphone", "pocket", "codec", "overdrive", "background")
        for name in (*chances, "noise"):
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
        """Return a copy with one augmentation switched off, for ablation.

        Raises:
            InvalidParametersError: There is no augmentation of that name.
        """
        names = [field.name for field in fields(self) if not field.name.endswith("_snr")]
        if name not in names:
            raise InvalidParametersError(f"there is no {name!r}; there are {', '.join(names)}")
        return replace(self, **{name: 0.0})  # type: ignore[arg-type]  # pairs are excluded


@dataclass(frozen=True)
class Variant:
    """Changes that both views of a pair share.

    Attributes:
        octaves: Change of pitch and tempo, in octaves.
        slope: Change of colour, in decibels per octave.
        room: Number of the room, or None for no room.
    """

    octaves: float = 0.0
    slope: float = 0.0
    room: int | None = None


def variant(augmentations: Augmentations, generator: _Generator) -> Variant:
    """Draw the changes that the views of a pair share."""
    octaves = generator.uniform(-augmentations.pitch, augmentations.pitch)
    slope = generator.uniform(-augmentations.colour, augmentations.colour)
    inside = generator.random() < augmentations.room
    return Variant(octaves, slope, int(generator.integers(responses.ROOMS)) if inside else None)


def length(augmentations: Augmentations, of: Variant, rate: int, generator: _Generator) -> int:
    """Draw the number of samples that a view of one second is made from.

    More samples sound faster and higher.
    """
    return resampled(
        rate, of.octaves + generator.uniform(-augmentations.speed, augmentations.speed)
    )


def resampled(samples: int, octaves: float) -> int:
    """Return about how many samples last as long as `samples` when played octaves higher."""
    from scipy.fft import next_fast_len

    # Even, and a product of small primes: transforms of other lengths take three times as long.
    return 2 * int(next_fast_len(round(samples * 2**octaves / 2), real=True))


def view(
    window: _Sound, augmentations: Augmentations, of: Variant, rate: int, generator: _Generator
) -> _Sound:
    """Make one second from a window of any length: resample it and augment it as `heard` does.

    Args:
        window: Samples, float32 (samples,), as many as `length` returned.
        augmentations: Augmentations for `heard`.
        of: Changes that the other view of the pair shares.
        rate: Samples in the view.
        generator: Source of the changes that are not shared.

    Returns:
        float32 (rate,) of unit root mean square, or zeros if the window is silent.
    """
    from scipy import fft

    return heard(band(fft.rfft(window), len(window), rate), augmentations, of, generator)


def band(spectrum: NDArray[np.complexfloating], samples: int, wanted: int) -> _Spectrum:
    """Return a window's spectrum at another number of samples: complex64 (wanted / 2 + 1,).

    Args:
        spectrum: Real Fourier transform of the window, (samples // 2 + 1,).
        samples: Samples in the window.
        wanted: Samples wanted, an even number.
    """
    changed = np.zeros(wanted // 2 + 1, dtype=np.complex64)
    # The bin at half of either rate is left out: there a real signal's phase is ambiguous.
    bins = min(wanted // 2, (samples + 1) // 2)
    changed[:bins] = spectrum[:bins]
    return changed


def heard(
    spectrum: _Spectrum, augmentations: Augmentations, of: Variant, generator: _Generator
) -> _Sound:
    """Make one second from a spectrum: apply colour, room, pocket, microphone and codec.

    Args:
        spectrum: Spectrum as `band` returns it, complex64 (rate / 2 + 1,); not changed.
        augmentations: Augmentations, of which tilt, microphone, pocket, codec and overdrive act
            here.
        of: Shared changes, of which slope and room act here.
        generator: Source of all other randomness.

    Returns:
        float32 (rate,) of unit root mean square, or zeros if the spectrum is zero.
    """
    from scipy import fft

    rate = 2 * (len(spectrum) - 1)
    slope = of.slope + generator.uniform(-augmentations.tilt, augmentations.tilt)
    response = responses.tilted(slope, rate)
    if generator.random() < augmentations.microphone:
        microphone = generator.integers(responses.MICROPHONES)
        response = response * responses.microphones(rate)[microphone]
    if generator.random() < augmentations.pocket:
        knee = float(np.exp(generator.uniform(*np.log(_KNEE_HERTZ))))
        response = response * responses.cloth(knee, rate)
    changed = spectrum * response
    if of.room is not None:
        changed *= responses.rooms(rate)[of.room]
    sound = unit(fft.irfft(changed, rate))
    if generator.random() < augmentations.overdrive:
        peak = np.abs(sound).max() * 10 ** (-generator.uniform(0, 12) / 20)
        sound = unit(np.clip(sound, -peak, peak))
    if generator.random() < augmentations.codec:
        sound = unit(
            responses.companded(sound, int(generator.integers(*_CODEC_BITS, endpoint=True)))
        )
    return sound


def phones(
    spectra: Iterable[_Spectrum], augmentations: Augmentations, generator: _Generator
) -> _Sound:
    """Augment seconds as phones hear them: room, device response, other sounds, noise.

    Args:
        spectra: Spectra of the seconds, complex64 (rate / 2 + 1,) each; not changed.
        augmentations: Augmentations, of which all except offset, pitch, company and speed act here.
        generator: Source of all randomness.

    Returns:
        float32 (seconds, rate).
    """
    views = []
    for spectrum in spectra:
        of = variant(augmentations, generator)
        views.append(heard(spectrum, augmentations, of, generator))
    return mix(np.stack(views), augmentations, generator)


def mix(views: _Sound, augmentations: Augmentations, generator: _Generator) -> _Sound:
    """Mix other views of the batch, and noise, into some views.

    Both the views, of unit root mean square, and the result are float32 (batch, rate).
    """
    count = len(views)
    decibels = generator.uniform(*augmentations.background_snr, count)
    loudness = (generator.random(count) < augmentations.background) * 10 ** (-decibels / 20)
    mixed = views + loudness.astype(np.float32)[:, np.newaxis] * views[generator.permutation(count)]
    noisy = np.flatnonzero(generator.random(count) < augmentations.noise)
    hiss = generator.standard_normal((len(noisy), views.shape[1]), dtype=np.float32)
    level = 10 ** (-generator.uniform(5, 35, (len(noisy), 1)) / 20)
    mixed[noisy] += level.astype(np.float32) * hiss
    return np.asarray(mixed, dtype=np.float32)


def unit(sound: NDArray[np.floating]) -> _Sound:
    """Scale a sound to unit root mean square; leave silence unchanged."""
    level = np.sqrt(np.mean(np.square(sound)))
    return np.asarray(sound / max(float(level), _QUIET), dtype=np.float32)
