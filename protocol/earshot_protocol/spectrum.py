"""Input of an encoder's network: the log-mel spectrum of one second of mono sound.

A phone computes it with numpy, training on its own device; both must give the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

RATES = (1000, 768_000)
"""Lowest and highest sample rate of any sound, in hertz."""

SILENT_RMS = 1e-4
"""Root mean square below which a second is silent (80 dB below full scale)."""

FRAMES, BANDS = 61, 64
"""Shape of every spectrum: frames of 32 ms, every 16 ms, and mel bands."""

LOWEST_HERTZ = 50.0
"""Lower edge of the lowest mel band: below it a phone records mostly handling noise."""

POWER_FLOOR = 1e-8
"""Power added to each band's mean before the logarithm: 80 dB below full scale."""

# Slaney's scale: 15 mel at 1 kHz, and 27 mel for each further factor of 6.4.
_BREAK_HERTZ, _BREAK_MEL = 1000.0, 15.0
_LOG_STEP = np.log(6.4) / 27


@dataclass(frozen=True)
class Spectrum:
    """Spectrum of a second at one rate, 61 frames of 64 bands.

    Attributes:
        rate: Samples per second, a multiple of 8,000.
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
        """Name on an encoder's card, with the level to which a second is normalized."""
        return f"log-mel {FRAMES}x{BANDS} at {self.rate // 1000} kHz, unit rms"

    def hann_window(self) -> NDArray[np.float32]:
        """Return the periodic Hann window of unit energy, float32 (frame,); shared, read-only."""
        return _hann_window(self.frame)

    def mel_filters(self) -> NDArray[np.float32]:
        """Return triangles of power over frequency, float32 (frame / 2 + 1, 64), each of unit sum.

        They are evenly spaced on Slaney's mel scale (M. Slaney, Auditory Toolbox, 1998: linear
        below 1 kHz, logarithmic above) from 50 Hz to half the rate. The array is read-only, as it
        is shared.
        """
        return _mel_filters(self.rate, self.frame)


NARROW, WIDE = Spectrum(8000), Spectrum(16_000)

SPECTRA: Mapping[str, Spectrum] = MappingProxyType({each.features: each for each in (NARROW, WIDE)})
"""All spectra that encoders use, by their names on cards."""

SAMPLE_RATE = NARROW.rate
"""Samples per second of sound that is not for a particular encoder."""


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
