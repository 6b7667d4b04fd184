"""What an encoder's network is given: the log-mel spectrum of one second of mono at 8 kHz.

A phone computes it with numpy, training on whatever device trains; both must hear the same.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

SAMPLE_RATE = 8000
"""Samples per second of all sound that a network learns from or embeds."""

WINDOW = 8000
"""Samples of one recording: one second."""

RATES = (1000, 768_000)
"""Sample rates that are accepted, and resampled to `SAMPLE_RATE`, in hertz."""

SILENT_RMS = 1e-4
"""A second whose root mean square is below this (80 dB below full scale) is silent."""

FRAME = 256
"""Samples of one analysis frame (32 ms)."""

HOP = 128
"""Samples from one frame to the next (16 ms)."""

FRAMES = 1 + (WINDOW - FRAME) // HOP
BANDS = 64

LOWEST_HERTZ = 50.0
"""The lowest mel band starts here: below it a phone's microphone hears mostly handling."""

POWER_FLOOR = 1e-8
"""Added to each band's mean power before the logarithm: 80 dB below full scale."""

# Slaney's scale: 15 mel at 1 kHz, and 27 mel for each further factor of 6.4.
_BREAK_HERTZ, _BREAK_MEL = 1000.0, 15.0
_LOG_STEP = np.log(6.4) / 27


@cache
def hann_window() -> NDArray[np.float32]:
    """Periodic Hann window of unit energy, float32 (256,); read-only, as every caller shares it."""
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)
    return _shared(hann / np.sqrt(np.sum(hann**2)))


@cache
def mel_filters() -> NDArray[np.float32]:
    """Triangles of power over frequency, float32 (129, 64), each of unit sum; read-only too.

    Evenly spaced on Slaney's mel scale (M. Slaney, Auditory Toolbox, 1998: linear below 1 kHz,
    logarithmic above) from 50 Hz to 4 kHz.
    """
    ends = _hertz_to_mel(np.array([LOWEST_HERTZ, SAMPLE_RATE / 2]))
    edges = _mel_to_hertz(np.linspace(ends[0], ends[1], BANDS + 2))
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    hertz = np.arange(FRAME // 2 + 1)[:, np.newaxis] * (SAMPLE_RATE / FRAME)
    rise = (hertz - low) / (centre - low)
    fall = (high - hertz) / (high - centre)
    triangles = np.maximum(0.0, np.minimum(rise, fall))
    return _shared(triangles / triangles.sum(axis=0))


def _hertz_to_mel(hertz: NDArray[np.float64]) -> NDArray[np.float64]:
    above = np.log(np.maximum(hertz, _BREAK_HERTZ) / _BREAK_HERTZ) / _LOG_STEP
    below = np.minimum(hertz, _BREAK_HERTZ) * (_BREAK_MEL / _BREAK_HERTZ)
    return np.asarray(below + above, dtype=np.float64)


def _mel_to_hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    below = np.minimum(mel, _BREAK_MEL) * (_BREAK_HERTZ / _BREAK_MEL)
    above = np.exp(np.maximum(mel - _BREAK_MEL, 0.0) * _LOG_STEP)
    return np.asarray(below * above, dtype=np.float64)


def _shared(numbers: NDArray[np.float64]) -> NDArray[np.float32]:
    single = numbers.astype(np.float32)
    single.setflags(write=False)
    return single
