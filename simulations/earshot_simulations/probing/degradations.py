"""Degradations of sound: noise, a pocket, another device, another room.

All of them differ from the augmentations that encoders train with (`earshot_models.augmentations`):
otherwise this would measure how well encoders memorized those. They apply numpy and scipy to
waveforms. Levels are relative to each second's own root mean square. Each call draws pocket,
microphone and room once, and noise for each second. The draws are the same at every rate, so
encoders of several rates hear the same in the band that they share.

- **noise**: pink (equal power in every octave, from 20 Hz), 20, 10 or 0 dB below each second.
- **pocket**: cloth, a Butterworth low-pass of second order with its knee at 0.8 to 1.25 kHz, 12 dB
  per octave above; rumble of steps, noise of 20 to 120 Hz, 12 dB below the second as it is outside;
  rustle, up to six strokes of noise of 150 Hz to 2 kHz that die away in 20 to 80 ms, 18 dB below.
- **device**: a small microphone, a high-pass of second order at 150 to 350 Hz and a resonance of 6
  to 12 dB at 2 to 3.4 kHz; then a transform codec: frames of 32 ms in bands of 250 Hz, each
  quantised in steps of its root mean square (about 11 dB of signal to noise), and those 35 dB below
  the loudest dropped.
- **room**: a bare one of 2.5 to 4 m by 2.5 to 4 m by 2.2 to 3 m whose walls reflect 70 to 85 % of
  the amplitude, 1 m or more from the source; by image sources, and their high-pass, without
  which echoes add up to a constant pressure (Allen and Berkley, 1979).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.spectrum import NARROW

POCKET_KNEE = (800.0, 1250.0)
RUMBLE_BELOW_HERTZ, RUMBLE_DECIBELS = 120.0, -12.0
RUSTLE_HERTZ, RUSTLE_DECIBELS, _MOST_STROKES = (150.0, 2000.0), -18.0, 6

MICROPHONE_FROM_HERTZ = (150.0, 350.0)
RESONANCE_HERTZ, RESONANCE_DECIBELS = (2000.0, 3400.0), (6.0, 12.0)

CODEC_FRAME_SECONDS = 0.032
_CODEC_BANDS_HERTZ, _CODEC_RANGE_DECIBELS = 250.0, 35.0

ROOM_METRES = ((2.5, 4.0), (2.5, 4.0), (2.2, 3.0))
REFLECTED = (0.7, 0.85)
_ROOM_FROM_HERTZ = 50.0
_ECHO_SECONDS = 0.15
_METRES_PER_SECOND = 343.0
_FROM_WALL, _APART = 0.3, 1.0

_LOWEST_HERTZ = 20.0

_Generator = np.random.Generator
_Sound = NDArray[np.floating]


@dataclass(frozen=True)
class SoundCondition:
    """A condition under which sound is heard.

    Attributes:
        name: Name in figures.
        title: Name in tables.
        hear: Function from seconds, floats (batch, rate), to as many degraded ones.
    """

    name: str
    title: str
    hear: Callable[[_Sound, _Generator], _Sound]


def degraded(
    condition: SoundCondition, sound: _Sound, clip: NDArray[np.int64], seed: int = 0
) -> NDArray[np.float32]:
    """Degrade each clip by a condition; deterministic for a seed.

    Args:
        condition: Condition, one of `CONDITIONS`.
        sound: Sound (seconds, rate), at 8,000 samples per second or more.
        clip: Number of each second's clip, (seconds,): a clip is degraded by one call.
        seed: Seed of all draws.

    Returns:
        Degraded sound, float32 (seconds, rate).
    """
    heard = np.empty(sound.shape, dtype=np.float32)
    for number in np.unique(clip):
        own = clip == number
        generator = np.random.default_rng([seed, int(number), *condition.name.encode()])
        heard[own] = condition.hear(sound[own].astype(np.float64), generator)
    return heard


def noisy(sound: _Sound, generator: _Generator, decibels: float) -> _Sound:
    """Add pink noise, this many decibels below each second."""
    return sound + _at(_noise(sound.shape, generator, slope=-0.5), sound, -decibels)


def in_a_pocket(sound: _Sound, generator: _Generator) -> _Sound:
    """Muffle sound by cloth, and add rumble and rustle."""
    cloth = muffled(sound, generator.uniform(*POCKET_KNEE))
    rumble = _noise(sound.shape, generator, band=(_LOWEST_HERTZ, RUMBLE_BELOW_HERTZ))
    rustle = _noise(sound.shape, generator, band=RUSTLE_HERTZ) * _strokes(sound.shape, generator)
    return cloth + _at(rumble, sound, RUMBLE_DECIBELS) + _at(rustle, sound, RUSTLE_DECIBELS)


def muffled(sound: _Sound, knee: float) -> _Sound:
    """Filter seconds (batch, rate) by a low-pass of 12 dB per octave above a knee in hertz."""
    from scipy import signal

    sections = signal.butter(2, knee, fs=sound.shape[1], output="sos")
    return np.asarray(signal.sosfilt(sections, sound, axis=1))


def by_another_device(sound: _Sound, generator: _Generator) -> _Sound:
    """Pass sound through a small microphone and a codec."""
    from scipy import signal

    low, rate = generator.uniform(*MICROPHONE_FROM_HERTZ), sound.shape[1]
    sections = signal.butter(2, low, "highpass", fs=rate, output="sos")
    taken = signal.sosfilt(sections, sound, axis=1)
    peak = signal.iirpeak(generator.uniform(*RESONANCE_HERTZ), 2.0, fs=rate)
    gain = 10 ** (generator.uniform(*RESONANCE_DECIBELS) / 20) - 1
    return coded(taken + gain * signal.lfilter(*peak, taken, axis=1))


def coded(sound: _Sound) -> _Sound:
    """Code and decode seconds (batch, rate) by a codec of a few bits per coefficient."""
    from scipy import signal

    frame = round(CODEC_FRAME_SECONDS * sound.shape[1])
    shape = {"window": "cosine", "nperseg": frame, "noverlap": frame // 2}
    bins = signal.stft(sound, **shape)[2]
    width = max(1, round(_CODEC_BANDS_HERTZ * CODEC_FRAME_SECONDS))
    band = np.arange(bins.shape[1]) // width
    power = np.stack(
        [(np.abs(bins[:, band == each]) ** 2).mean(axis=1) for each in range(band[-1] + 1)], axis=1
    )
    least = power.max(axis=1, keepdims=True) * 10 ** (-_CODEC_RANGE_DECIBELS / 10)
    step = np.sqrt(power)[:, band]
    kept = ((power > 0) & (power >= least))[:, band]
    safe = np.where(kept, step, 1)
    quantised = np.where(
        kept, safe * (np.round(bins.real / safe) + 1j * np.round(bins.imag / safe)), 0
    )
    return np.asarray(signal.istft(quantised, **shape)[1][:, : sound.shape[1]])


def in_a_room(sound: _Sound, generator: _Generator) -> _Sound:
    """Add the echoes of a small room."""
    from scipy import signal

    size = np.array([generator.uniform(*side) for side in ROOM_METRES])
    while True:
        source, ear = generator.uniform(_FROM_WALL, size - _FROM_WALL, (2, 3))
        if np.linalg.norm(source - ear) >= _APART:
            break
    rate = sound.shape[1]
    response = audible(echoes(size, source, ear, generator.uniform(*REFLECTED), rate), rate)
    return np.asarray(signal.fftconvolve(sound, response[np.newaxis], axes=1)[:, : sound.shape[1]])


def echoes(
    size: _Sound, source: _Sound, ear: _Sound, reflected: float, rate: int = NARROW.rate
) -> _Sound:
    """Return the impulse response of a box, from the direct sound on, which has amplitude 1.

    Args:
        size: Size of the box in metres, (3,).
        source: Place of the source in metres from a corner, (3,).
        ear: Place of the ear in metres from a corner, (3,).
        reflected: Share of the amplitude that each wall reflects.
        rate: Samples per second.

    Returns:
        Samples of 150 ms.
    """
    farthest = _ECHO_SECONDS * _METRES_PER_SECOND + np.linalg.norm(source - ear)
    apart, bounces = [], []
    for length, at, to in zip(size, source, ear, strict=True):
        order = np.arange(-int(farthest / (2 * length)) - 1, int(farthest / (2 * length)) + 2)
        apart.append(np.concatenate([at + 2 * order * length, -at + 2 * order * length]) - to)
        bounces.append(np.concatenate([2 * np.abs(order), np.abs(order) + np.abs(order - 1)]))
    distance = np.sqrt(sum(each**2 for each in np.ix_(*apart)))
    count = sum(np.ix_(*bounces))
    first = distance.min()
    delay = np.rint((distance - first) / _METRES_PER_SECOND * rate).astype(np.int64)
    near = delay < round(_ECHO_SECONDS * rate)
    response = np.zeros(round(_ECHO_SECONDS * rate))
    np.add.at(response, delay[near], (reflected**count * first / distance)[near])
    return response


def audible(response: _Sound, rate: int = NARROW.rate) -> _Sound:
    """Remove the frequencies below 50 Hz from an impulse response."""
    from scipy import signal

    sections = signal.butter(2, _ROOM_FROM_HERTZ, "highpass", fs=rate, output="sos")
    return np.asarray(signal.sosfilt(sections, response))


CONDITIONS = (
    *(
        SoundCondition(f"noise_{level}", f"noise, {level} dB", partial(noisy, decibels=level))
        for level in (20, 10, 0)
    ),
    SoundCondition("pocket", "in a pocket", in_a_pocket),
    SoundCondition("device", "another device", by_another_device),
    SoundCondition("room", "a small room", in_a_room),
)
"""All conditions, in the order of the tables."""


def _noise(
    shape: tuple[int, ...],
    generator: _Generator,
    slope: float = 0.0,
    band: tuple[float, float] = (_LOWEST_HERTZ, np.inf),
) -> _Sound:
    """Return Gaussian noise (seconds, rate) of a band, its amplitude as a power of the frequency.

    The upper part of a wider spectrum comes from a separate generator, so that the rest is the same
    at every rate.
    """
    count, rate = shape
    hertz = np.fft.rfftfreq(rate, 1 / rate)
    inside = (hertz >= band[0]) & (hertz <= band[1])
    amplitude = np.where(inside, np.maximum(hertz, _LOWEST_HERTZ) ** slope, 0)
    white = np.fft.rfft(generator.standard_normal((count, NARROW.rate)))
    if rate > NARROW.rate:
        known = white[:, : NARROW.rate // 2]
        more = (2, count, len(hertz) - known.shape[1])
        real, imaginary = generator.spawn(1)[0].normal(0, np.sqrt(NARROW.rate / 2), more)
        white = np.hstack([known, real + 1j * imaginary])
    return np.asarray(np.fft.irfft(white * amplitude, rate))


def _strokes(shape: tuple[int, ...], generator: _Generator) -> _Sound:
    """Return envelopes (seconds, rate) of cloth that rubs a few times a second."""
    time = np.arange(shape[1]) / shape[1]
    envelopes = np.zeros(shape)
    for row in range(shape[0]):
        for _ in range(generator.integers(_MOST_STROKES + 1)):
            since = time - generator.uniform(0, time[-1])
            envelopes[row] += np.where(
                since >= 0, np.exp(-since / generator.uniform(0.02, 0.08)), 0
            )
    return envelopes


def _at(noise: _Sound, sound: _Sound, decibels: float) -> _Sound:
    """Scale noise to a level relative to each second's; zero if one of the two is silent."""
    level, own = (np.sqrt(np.mean(of**2, axis=1, keepdims=True)) for of in (sound, noise))
    wanted = level * 10 ** (decibels / 20)
    gain: _Sound = np.divide(wanted, own, out=np.zeros_like(own), where=own > 0)
    return noise * gain
