"""What may stand between a sound and the number a phone makes of it: rooms, microphones, pockets.

All are synthetic, so that there is no licence to keep and no recording to learn by heart. They are
spectra of one second at 8 kHz, to multiply with.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.spectrum import SAMPLE_RATE, WINDOW

ROOMS, MICROPHONES = 256, 64
"""How many there are."""

_BINS = WINDOW // 2 + 1
_ROOM_SAMPLES = 2400
_CLOTH_FLOOR = 10 ** (-30 / 20)
_COMPANDING = 255.0
_QUIET = 1e-6

_Sound = NDArray[np.float32]


@cache
def rooms() -> NDArray[np.complex64]:
    """Spectra of rooms: a direct sound, and an echo of 20 to 150 ms that dies away.

    The same ones in every run, and not drawn anew for every view: a transform for each would take
    as long as all else.
    """
    generator = np.random.default_rng(8000)
    time = np.arange(_ROOM_SAMPLES)
    decay = generator.uniform(0.02, 0.15, (ROOMS, 1)) * SAMPLE_RATE
    echo = generator.standard_normal((ROOMS, _ROOM_SAMPLES)) * np.exp(-time / decay)
    response = generator.uniform(0.05, 0.4, (ROOMS, 1)) * echo
    response[:, 0] = 1
    return np.asarray(np.fft.rfft(response, WINDOW), dtype=np.complex64)


@cache
def microphones() -> NDArray[np.float32]:
    """Responses of microphones: a few decibels up and down over the octaves, and a low end.

    Smooth over about an octave, as those of small microphones behind small openings are.
    """
    generator = np.random.default_rng(8001)
    knots = np.linspace(np.log2(50 / 1000), 2.0, 8)
    decibels = generator.normal(0, 4, (MICROPHONES, len(knots)))
    curves = np.stack([np.interp(octaves(), knots, each) for each in decibels])
    low = np.exp2(generator.uniform(np.log2(40), np.log2(300), (MICROPHONES, 1)))
    hertz = np.maximum(np.arange(_BINS), 1)
    return np.asarray(10 ** (curves / 20) / np.sqrt(1 + (low / hertz) ** 2), dtype=np.float32)


def cloth(knee: float) -> NDArray[np.float32]:
    """Response of a pocket, float32 (4001,): 12 dB an octave less above the knee in hertz.

    Down to 30 dB less: that much still comes through the opening.
    """
    hertz = np.arange(_BINS, dtype=np.float32)
    response = np.maximum((1 + (hertz / knee) ** 4) ** -0.5, _CLOTH_FLOOR)
    return np.asarray(response, dtype=np.float32)


def companded(sound: _Sound, bits: int) -> _Sound:
    """A second as a telephone codec gives it back, quantized on the µ-law scale (ITU-T G.711).

    Args:
        sound: float32 (8000,).
        bits: of a sample, 2 or more; telephones have 8.
    """
    peak = max(float(np.abs(sound).max()), _QUIET)
    steps = 2 ** (bits - 1)
    scale = np.log1p(_COMPANDING)
    level = np.round(np.log1p(_COMPANDING * np.abs(sound) / peak) / scale * steps) / steps
    loudness = np.expm1(level * scale) / _COMPANDING * peak
    return np.asarray(np.copysign(loudness, sound), dtype=np.float32)


@cache
def octaves() -> NDArray[np.float32]:
    """Octaves above 1 kHz, flat below 50 Hz."""
    return np.log2(np.maximum(np.arange(_BINS, dtype=np.float32), 50) / 1000)
