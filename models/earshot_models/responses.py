"""Frequency responses of rooms, microphones and pockets.

All are synthetic, which avoids licences and memorized recordings. A response multiplies the
spectrum of one second at a rate: bin n is n hertz.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

ROOMS, MICROPHONES = 256, 64
"""Number of rooms, and of microphones."""

_ROOM_SECONDS = 0.3
_KNOTS = np.linspace(np.log2(0.05), 3.0, 9)
"""Octaves above 1 kHz at which a microphone's response is drawn."""

_CLOTH_FLOOR = 10 ** (-30 / 20)
_COMPANDING = 255.0
_QUIET = 1e-6


@cache
def rooms(rate: int) -> NDArray[np.complex64]:
    """Return responses of rooms (rooms, rate / 2 + 1): sound and an echo that dies in 20 to 150 ms.

    They are fixed, not drawn for every view, as a transform for each view would be slow.
    """
    generator = np.random.default_rng(8000)
    time = np.arange(round(_ROOM_SECONDS * rate))
    decay = generator.uniform(0.02, 0.15, (ROOMS, 1)) * rate
    echo = generator.standard_normal((ROOMS, len(time))) * np.exp(-time / decay)
    # The ratio of echo to sound is the same at any rate.
    response = generator.uniform(0.05, 0.4, (ROOMS, 1)) * np.sqrt(8000 / rate) * echo
    response[:, 0] = 1
    return np.asarray(np.fft.rfft(response, rate), dtype=np.complex64)


@cache
def microphones(rate: int) -> NDArray[np.float32]:
    """Return responses of microphones (microphones, rate / 2 + 1), each with a low end.

    Decibels vary smoothly over about an octave, as for small microphones behind small openings.
    """
    generator = np.random.default_rng(8001)
    decibels = generator.normal(0, 4, (MICROPHONES, len(_KNOTS)))
    curves = np.stack([np.interp(octaves(rate), _KNOTS, each) for each in decibels])
    low = np.exp2(generator.uniform(np.log2(40), np.log2(300), (MICROPHONES, 1)))
    hertz = np.maximum(np.arange(rate // 2 + 1), 1)
    return np.asarray(10 ** (curves / 20) / np.sqrt(1 + (low / hertz) ** 2), dtype=np.float32)


def cloth(knee: float, rate: int) -> NDArray[np.float32]:
    """Return the response of a pocket (rate / 2 + 1,): -12 dB per octave above the knee in hertz.

    It falls to -30 dB at most: that much still comes through the opening.
    """
    hertz = np.arange(rate // 2 + 1, dtype=np.float32)
    response = np.maximum((1 + (hertz / knee) ** 4) ** -0.5, _CLOTH_FLOOR)
    return np.asarray(response, dtype=np.float32)


def companded(sound: NDArray[np.float32], bits: int) -> NDArray[np.float32]:
    """Return a second as a telephone codec reproduces it, quantized by µ-law (ITU-T G.711).

    Args:
        sound: Samples, float32 (samples,).
        bits: Bits of a sample, at least 2; telephones have 8.
    """
    peak = max(float(np.abs(sound).max()), _QUIET)
    steps = 2 ** (bits - 1)
    scale = np.log1p(_COMPANDING)
    level = np.round(np.log1p(_COMPANDING * np.abs(sound) / peak) / scale * steps) / steps
    loudness = np.expm1(level * scale) / _COMPANDING * peak
    return np.asarray(np.copysign(loudness, sound), dtype=np.float32)


def tilted(slope: float, rate: int) -> NDArray[np.float32]:
    """Return the response (rate / 2 + 1,) that rises by `slope` decibels per octave."""
    decibels = np.float32(slope) * octaves(rate)
    return np.asarray(np.exp(np.float32(np.log(10) / 20) * decibels), dtype=np.float32)


@cache
def octaves(rate: int) -> NDArray[np.float32]:
    """Return the octaves above 1 kHz of every bin (rate / 2 + 1,), flat below 50 Hz."""
    return np.log2(np.maximum(np.arange(rate // 2 + 1, dtype=np.float32), 50) / 1000)
