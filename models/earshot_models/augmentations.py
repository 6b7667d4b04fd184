"""What may happen to a sound without making it another: the views that contrastive learning pairs.

Everything here is numpy on waveforms, so it serves every back end of Keras. Speed, colour and room
are one pass through the spectrum: a window of another length is brought to one second there, and
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
        microphone: chance of a view to be heard by another of a few microphones.
        pocket: chance of a view to be heard through cloth, which takes away what is above a knee
            between 0.5 and 2.5 kHz.
        codec: chance of a view to have been companded to 4 to 8 bits (ITU-T G.711's µ-law).
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
    return Variant(octaves, slope, int(generator.integers(responses.ROOMS)) if inside else None)


def length(augmentations: Augmentations, of: Variant, rate: int, generator: _Generator) -> int:
    """Samples that a view of one second is made from: more of them sound faster and higher."""
    return resampled(
        rate, of.octaves + generator.uniform(-augmentations.speed, augmentations.speed)
    )


def resampled(samples: int, octaves: float) -> int:
    """Samples that become so many when they are heard some octaves higher, about."""
    from scipy.fft import next_fast_len

    # Even, and a product of small primes: the transform of another length takes thrice as long.
    return 2 * int(next_fast_len(round(samples * 2**octaves / 2), real=True))


def view(
    window: _Sound, augmentations: Augmentations, of: Variant, rate: int, generator: _Generator
) -> _Sound:
    """One second made of a window of any length: resampled, and heard as `heard` says.

    Args:
        window: float32 (samples,), as many as `length` said.
        augmentations: as for `heard`.
        of: what the other view of the pair shares.
        rate: samples of the view.
        generator: of what it does not share.

    Returns:
        float32 (rate,) of unit root mean square, or zeros if the window is silent.
    """
    from scipy import fft

    return heard(band(fft.rfft(window), len(window), rate), augmentations, of, generator)


def band(spectrum: NDArray[np.complexfloating], samples: int, wanted: int) -> _Spectrum:
    """The spectrum of a window once it has another number of samples: complex64 (wanted/2 + 1,).

    Args:
        spectrum: of a window, by a real Fourier transform, (samples // 2 + 1,).
        samples: of the window.
        wanted: an even number.
    """
    changed = np.zeros(wanted // 2 + 1, dtype=np.complex64)
    # The bin at half of either rate is left out: there a real signal's phase is ambiguous.
    bins = min(wanted // 2, (samples + 1) // 2)
    changed[:bins] = spectrum[:bins]
    return changed


def heard(
    spectrum: _Spectrum, augmentations: Augmentations, of: Variant, generator: _Generator
) -> _Sound:
    """One second of a spectrum: coloured, in a room, a pocket, by a microphone and a codec.

    Args:
        spectrum: complex64 (rate / 2 + 1,), as `band` makes it; not changed.
        augmentations: of which tilt, microphone, pocket, codec and overdrive act here.
        of: whose slope and room act here.
        generator: of the rest.

    Returns:
        float32 (rate,) of unit root mean square, or zeros if the spectrum is.
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
    """What phones hear of seconds, each in a room of its own, coloured, in company, in noise.

    Args:
        spectra: of the seconds, complex64 (rate / 2 + 1,) each; not changed.
        augmentations: all but offset, pitch, company and speed act here.
        generator: of everything.

    Returns:
        float32 (seconds, rate).
    """
    views = []
    for spectrum in spectra:
        of = variant(augmentations, generator)
        views.append(heard(spectrum, augmentations, of, generator))
    return mix(np.stack(views), augmentations, generator)


def mix(views: _Sound, augmentations: Augmentations, generator: _Generator) -> _Sound:
    """Put other views of the batch into the background of some, and noise behind some.

    Both the views, of unit root mean square, and what is returned are float32 (batch, rate).
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
    """The sound at unit root mean square; silence as it is."""
    level = np.sqrt(np.mean(np.square(sound)))
    return np.asarray(sound / max(float(level), _QUIET), dtype=np.float32)
