"""What an encoder's network is given: the log-mel spectrum of one second of mono.

A phone computes it with numpy, training on whatever device trains; both must hear the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

RATES = (1000, 768_000)
"""Sample rates that any sound has, in hertz."""

SILENT_RMS = 1e-4
"""A second whose root mean square is below this (80 dB below full scale) is silent."""

FRAMES, BANDS = 61, 64
"""Of every spectrum: frames of 32 ms, every 16 ms, and mel bands."""

LOWEST_HERTZ = 50.0
"""The lowest mel band starts here: below it a phone's microphone hears mostly handling."""

POWER_FLOOR = 1e-8
"""Added to each band's mean power before the logarithm: 80 dB below full scale."""

# Slaney's scale: 15 mel at 1 kHz, and 27 mel for each further factor of 6.4.
_BREAK_HERTZ, _BREAK_MEL = 1000.0, 15.0
_LOG_STEP = np.log(6.4) / 27


@dataclass(frozen=True)
class Spectrum:
    """The spectrum of a second at one rate, 61 frames of 64 bands.

    Attributes:
        rate: samples per second, a multiple of 8,000; all of them are the second.
    """

    rate: int

    @property
    def frame(self) -> int:
        """Samples of one analysis frame (32 ms)."""
        return self.rate * 32 // 1000

    @property
    def hop(self) -> int:
        """Samples from one frame to the next (16 ms)."""
        return self.rate * 16 // 1000

    @property
    def features(self) -> str:
        """What an encoder's card calls it, with the level that a second is brought to first."""
        return f"log-mel {FRAMES}x{BANDS} at {self.rate // 1000} kHz, unit rms"

    def hann_window(self) -> NDArray[np.float32]:
        """Periodic Hann window of unit energy, float32 (frame,); read-only, as all share it."""
        return _hann_window(self.frame)

    def mel_filters(self) -> NDArray[np.float32]:
        """Triangles of power over frequency, float32 (frame / 2 + 1, 64), each of unit sum.

        Evenly spaced on Slaney's mel scale (M. Slaney, Auditory Toolbox, 1998: linear below 1 kHz,
        logarithmic above) from 50 Hz to half the rate. Read-only too.
        """
        return _mel_filters(self.rate, self.frame)


NARROW, WIDE = Spectrum(8000), Spectrum(16_000)

SPECTRA: Mapping[str, Spectrum] = MappingProxyType({each.features: each for each in (NARROW, WIDE)})
"""All that encoders are given, by what their cards call it."""

SAMPLE_RATE = WINDOW = NARROW.rate
"""Samples per second, and samples of a second, of sound that is not for one encoder."""


@cache
def _hann_window(frame: int) -> NDArray[np.float32]:
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(frame) / frame)
    return _shared(hann / np.sqrt(np.sum(hann**2)))


@cache
def _mel_filters(rate: int, frame: int) -> NDArray[np.float32]:
    ends = _hertz_to_mel(np.array([LOWEST_HERTZ, rate / 2]))
    edges = _mel_to_hertz(np.linspace(ends[0], ends[1], BANDS + 2))
    low, centre, high = edges[:-2], edges[1:-1], edges[2:]
    hertz = np.arange(frame // 2 + 1)[:, np.newaxis] * (rate / frame)
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
