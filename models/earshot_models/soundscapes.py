"""Ten synthetic environments that a listener can tell apart, one second at a time.

Each scene is built from its sources: shaped noise, impulses through resonances, and oscillators. A
clip then passes through a "microphone": background noise, a spectral tilt and a level, all drawn
anew for every clip. Everything is vectorised over the clips of a call.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.spectrum import SAMPLE_RATE

PEAK = 0.95
"""Largest magnitude of a sample."""

QUIETEST, LOUDEST = 0.02, 0.2
"""Least and greatest root mean square of a clip, before its peak is held under `PEAK`."""

_BATCH = 32
"""Clips made at a time, so that their scratch arrays stay in the cache."""

_KNOTS = 80
"""Pieces of a slow envelope: one every 12.5 ms."""

_Sound = NDArray[np.floating]
_Spectrum = NDArray[np.complexfloating]


@dataclass(frozen=True)
class _Draw:
    """Source of parameters for each clip of a batch, of one second at a rate."""

    generator: np.random.Generator
    count: int
    rate: int

    def __call__(self, low: float = 0, high: float = 1, columns: int = 1) -> _Sound:
        """Return uniform numbers, float32 (count, columns)."""
        return self.generator.uniform(low, high, (self.count, columns)).astype(np.float32)


def synthesize(
    scene: str, count: int, generator: np.random.Generator, rate: int = SAMPLE_RATE
) -> NDArray[np.float32]:
    """Synthesize random clips of one scene.

    Args:
        scene: Name of the scene, one of `SCENES`.
        count: Number of clips, at least 0.
        generator: Source of all randomness.
        rate: Samples per second, a multiple of 8,000; another rate gives other clips of the same
            scene.

    Returns:
        float32 (count, rate): one second each, in [-0.95, 0.95], none silent.

    Raises:
        InvalidInputError: There is no such scene, the `count` is negative, or the `rate` is not a
            multiple of 8,000.
    """
    if scene not in _SOURCES:
        raise InvalidInputError(f"scene must be one of {', '.join(SCENES)}; not {scene!r}")
    if count < 0:
        raise InvalidInputError(f"count must be at least 0, not {count}")
    if rate < SAMPLE_RATE or rate % SAMPLE_RATE:
        raise InvalidInputError(f"rate must be a multiple of {SAMPLE_RATE}, not {rate}")
    clips = np.empty((count, rate), dtype=np.float32)
    for start in range(0, count, _BATCH):
        batch = clips[start : start + _BATCH]
        draw = _Draw(generator, len(batch), rate)
        batch[:] = _microphone(_SOURCES[scene](draw), draw)
    return clips


def _microphone(sound: _Sound, draw: _Draw) -> _Sound:
    """Add background noise at 10 to 30 dB, a tilt of up to 1 dB per octave, and a level."""
    background = _noise_spectrum(_slope(draw(-6, 0), draw), draw)
    background *= 10 ** (draw(-30, -10) / 20)
    tilt = _slope(draw(-1, 1), draw)
    mixed = _unit(_time((np.fft.rfft(_unit(sound)) + background) * tilt))
    level = QUIETEST * (LOUDEST / QUIETEST) ** draw(0, 1)
    peak = np.abs(mixed).max(axis=1, keepdims=True)
    return np.asarray(mixed * np.minimum(level, PEAK / peak), dtype=np.float32)


def _rain(draw: _Draw) -> _Sound:
    """Make a bright hiss and a few hundred drops per second."""
    hiss = _noise(_slope(draw(2, 4), draw) * _highpass(600, draw), draw)
    ring = _resonance(draw(2200, 2800), draw(300, 600), draw)
    drops = _time(np.fft.rfft(_impulses(draw(150, 500), draw)) * ring)
    return hiss + draw(0.5, 1.0) * _unit(drops)


def _traffic(draw: _Draw) -> _Sound:
    """Make engines below 200 Hz and the roar of tyres around 800 Hz; one vehicle passes."""
    engine = _noise(_bump(draw(80, 120), 1.0, draw), draw)
    tyres = _noise(_bump(draw(700, 900), 0.8, draw), draw)
    passing = (_seconds(draw.rate) - draw(0, 1)) / draw(0.5, 1)
    return engine + tyres * draw(0.5, 0.8) / (1 + passing**2)


def _siren(draw: _Draw) -> _Sound:
    """Make a horn between two pitches: swept like a wail, or switched like a two-tone horn."""
    turns = _seconds(draw.rate) * draw(1, 2.5) + draw()
    sharpness = draw(1, 4)
    glide = np.tanh(sharpness * np.sin(2 * np.pi * turns)) / np.tanh(sharpness)
    cycles = _cycles(draw(600, 700) * draw(1.2, 1.35) ** glide, draw)
    horn = sum(np.sin(2 * np.pi * k * cycles) / k**0.7 for k in range(1, 5))
    return np.asarray(horn, dtype=np.float32)


def _birds(draw: _Draw) -> _Sound:
    """Make chirps that glide around 3 kHz, each with its own pitch, over a quiet wood."""
    song = np.zeros((draw.count, draw.rate), dtype=np.float32)
    for _ in range(2):
        beat = _seconds(draw.rate) * draw(5, 9) + draw()
        chirp = np.floor(beat)
        within = beat - chirp
        pitch = np.take_along_axis(draw(2500, 3300, 10), chirp.astype(np.intp), axis=1)
        glide = draw(-500, 500)
        duty = draw(0.5, 0.8)
        envelope = np.sin(np.pi * np.minimum(within / duty, 1)) ** 2
        song += envelope * np.sin(2 * np.pi * _cycles(pitch + glide * within, draw))
    return song


def _machine_hum(draw: _Draw) -> _Sound:
    """Make steady mains harmonics over the air of a fan."""
    cycles = _cycles(draw(98, 122) + np.zeros(draw.rate, np.float32), draw)
    hum = np.zeros((draw.count, draw.rate), dtype=np.float32)
    for k in range(1, 11):
        strength = draw(0.6, 1.0) / k
        hum += strength * np.sin(2 * np.pi * (k * cycles + draw()))
    fan = _noise(_bump(draw(300, 500), 1.0, draw), draw)
    return _unit(hum) + draw(0.1, 0.25) * fan


def _crowd(draw: _Draw) -> _Sound:
    """Make many simultaneous voices, whose syllables blend."""
    return _babble(voices=8, depth=0.8, draw=draw)


def _wind(draw: _Draw) -> _Sound:
    """Make gusts: noise that falls steeply above 150 Hz, with a hollow whistle."""
    gusts = _swing(draw(2, 4), 1.2, draw)
    rumble = _noise(_slope(draw(-11, -9), draw) * _highpass(60, draw), draw)
    whistle = _noise(_bump(draw(400, 500), 0.25, draw), draw)
    return gusts * (rumble + draw(0.1, 0.3) * gusts * whistle)


def _waves(draw: _Draw) -> _Sound:
    """Make a piece of a swell: broad surf that grows or ebbs over the second."""
    surf = _noise(_slope(draw(-4, -2), draw) * _highpass(200, draw), draw)
    rising = draw.generator.random((draw.count, 1)) < 0.5
    steepness = draw(1.5, 3)
    steepness = np.where(rising, steepness, -steepness)
    return surf * np.exp(steepness * (_seconds(draw.rate) - 0.5))


def _train(draw: _Draw) -> _Sound:
    """Make pairs of wheels over rail joints, and the rumble of the carriage."""
    rumble = _noise(_bump(draw(100, 140), 0.8, draw), draw)
    beat = _seconds(draw.rate) * draw(3, 4.5) + draw()
    gap = draw(0.25, 0.4)
    strikes = (np.diff(np.floor(beat), axis=1, prepend=0) > 0).astype(np.float32)
    strikes += (np.diff(np.floor(beat - gap), axis=1, prepend=-1) > 0).astype(np.float32)
    ring = _resonance(draw(450, 600), draw(80, 140), draw)
    clacks = _time(np.fft.rfft(strikes) * ring)
    return rumble + draw(1.2, 2.0) * _unit(clacks)


def _cafe(draw: _Draw) -> _Sound:
    """Make a few voices nearby, and cups that clink."""
    voices = _unit(_babble(voices=3, depth=1.5, draw=draw))
    ring = _resonance(draw(2800, 3400), draw(15, 30), draw)
    clinks = _time(np.fft.rfft(_impulses(draw(6, 12), draw)) * ring)
    return voices + draw(0.7, 1.1) * _unit(clinks)


_SOURCES: dict[str, Callable[[_Draw], _Sound]] = {
    "rain": _rain,
    "traffic": _traffic,
    "siren": _siren,
    "birds": _birds,
    "machine hum": _machine_hum,
    "crowd": _crowd,
    "wind": _wind,
    "waves": _waves,
    "train": _train,
    "café": _cafe,
}

SCENES: tuple[str, ...] = tuple(_SOURCES)
"""Names of the scenes, in the order of their indices."""


def _babble(voices: int, depth: float, draw: _Draw) -> _Sound:
    """Make voices with random vowels: pulses through formants of open and closed vowels."""
    said = np.zeros((2, draw.count, draw.rate), dtype=np.float32)
    for _ in range(voices):
        intonation = _swing(draw(1, 3), 0.1, draw)
        cycles = _cycles(draw(110, 210) * intonation, draw)
        glottis = (0.5 + 0.5 * np.cos(2 * np.pi * cycles)) ** 8
        for vowel in range(2):
            syllables = _swing(draw(3, 6), depth, draw)
            said[vowel] += glottis * syllables
    open_vowel, closed_vowel = np.fft.rfft(said)
    return _time(
        open_vowel * _formants(draw, 650, 1100, 2500)
        + closed_vowel * _formants(draw, 350, 2000, 2700)
    )


def _formants(draw: _Draw, *hertz: float) -> _Spectrum:
    """Return resonances side by side."""
    centres = np.array(hertz, np.float32)[:, np.newaxis]
    return np.asarray(_resonance(centres, np.float32(120), draw).sum(axis=0), dtype=np.complex64)


def _unit(sound: _Sound) -> _Sound:
    """Scale sounds to a root mean square of one."""
    level = np.sqrt(np.mean(sound * sound, axis=1, keepdims=True))
    return np.asarray(sound / level, dtype=np.float32)


@cache
def _seconds(rate: int) -> _Sound:
    return np.arange(rate, dtype=np.float32) / rate


@cache
def _hertz(rate: int) -> _Sound:
    """Return the frequencies of the spectrum's bins, at least 1 Hz."""
    return np.maximum(np.arange(rate // 2 + 1, dtype=np.float32), 1)


@cache
def _octaves(rate: int) -> _Sound:
    """Return octaves above 1 kHz, flat below 30 Hz."""
    return np.log2(np.maximum(_hertz(rate), 30) / 1000)


def _slope(decibels_per_octave: _Sound, draw: _Draw) -> _Sound:
    return np.exp(decibels_per_octave * _octaves(draw.rate) * np.float32(np.log(10) / 20))


def _bump(hertz: _Sound, octaves: float, draw: _Draw) -> _Sound:
    """Return a bell around `hertz`, with a deviation of `octaves`."""
    away = (_octaves(draw.rate) - np.log2(hertz / 1000)) / np.float32(octaves)
    return np.asarray(np.exp(-0.5 * away**2), dtype=np.float32)


def _highpass(hertz: float, draw: _Draw) -> _Sound:
    return np.asarray(1 / (1 + (np.float32(hertz) / _hertz(draw.rate)) ** 4), dtype=np.float32)


def _resonance(hertz: _Sound, bandwidth: _Sound | np.float32, draw: _Draw) -> _Spectrum:
    """Return an oscillator's response that rings at `hertz` and decays as exp(-π bandwidth t)."""
    f = _hertz(draw.rate)
    return hertz * bandwidth / (hertz**2 - f**2 + 1j * bandwidth * f)


def _time(spectrum: _Spectrum) -> _Sound:
    """Transform spectra (…, rate / 2 + 1) to (…, rate) samples."""
    rate = 2 * (spectrum.shape[-1] - 1)
    return np.fft.irfft(spectrum, rate).astype(np.float32, copy=False)


def _noise(response: _Sound, draw: _Draw) -> _Sound:
    """Draw Gaussian noise of the given magnitude response, one row per clip, of unit variance."""
    return _time(_noise_spectrum(response, draw))


def _noise_spectrum(response: _Sound, draw: _Draw) -> _Spectrum:
    white = draw.generator.standard_normal((draw.count, draw.rate // 2 + 1, 2), dtype=np.float32)
    # Parseval: the variance of the sound is four times the response's energy over the rate squared.
    energy = np.sum(response * response, axis=1, keepdims=True)
    gain = response * (draw.rate / 2 / np.sqrt(energy))
    return np.asarray(white.view(np.complex64)[..., 0] * gain, dtype=np.complex64)


def _impulses(rate: _Sound, draw: _Draw) -> _Sound:
    """Draw impulses of random height at random times: one, plus on average `rate` per second."""
    chance = rate / draw.rate
    luck = draw.generator.random((draw.count, draw.rate), dtype=np.float32)
    height = np.maximum(1 - luck / chance, 0)
    height[np.arange(draw.count), draw.generator.integers(0, draw.rate, draw.count)] = 1
    return height


def _cycles(hertz: _Sound, draw: _Draw) -> _Sound:
    """Return the phase in cycles, modulo one, of an oscillator of the given pitch over time."""
    cycles = np.cumsum(hertz / draw.rate, axis=1) + draw()
    return cycles - np.floor(cycles)


def _swing(rate: _Sound, depth: float, draw: _Draw) -> _Sound:
    """Return a positive envelope that wanders around one about `rate` times per second."""
    knots = np.linspace(0, 1, _KNOTS + 1, dtype=np.float32)
    wander = np.zeros((draw.count, _KNOTS + 1), dtype=np.float32)
    for ratio in (0.7, 1.0, 1.6):
        wander += np.sin(2 * np.pi * (ratio * rate * knots + draw()))
    values: _Sound = np.exp(depth / math.sqrt(3) * wander)
    # Straight lines from knot to knot; `np.interp` takes one row only.
    piece = draw.rate // _KNOTS
    within = np.arange(piece, dtype=np.float32) / piece
    start, step = values[:, :-1, np.newaxis], np.diff(values, axis=1)[:, :, np.newaxis]
    return (start + step * within).reshape(-1, draw.rate)
