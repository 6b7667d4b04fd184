"""Features of a recording for an encoder: one second of mono, and its log-mel spectrum.

Only numpy: this file runs on the phone.
"""

from __future__ import annotations

from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.spectrum import (
    FRAMES,
    NARROW,
    POWER_FLOOR,
    RATES,
    SILENT_RMS,
    Spectrum,
)

FULL_SCALE = 0.999
"""Magnitude from which on a sample counts as clipped."""

CLIPPED_FRACTION = 0.001
"""Fraction of samples at full scale above which a second is clipped."""


class Unusable(StrEnum):
    """Reasons why a recording cannot be used."""

    TOO_SHORT = "too short"
    SILENT = "silent"
    CLIPPED = "clipped"
    NOT_FINITE = "not finite"
    UNREADABLE = "unreadable"


class UnusableRecordingError(InvalidInputError):
    """A recording that cannot be used; `reason` is one of `Unusable`."""

    def __init__(self, reason: Unusable, detail: str) -> None:
        super().__init__(reason, detail)
        self.reason = reason
        self.detail = detail

    def __str__(self) -> str:
        return f"the recording is {self.reason}: {self.detail}"


def one_second(
    samples: NDArray[np.generic], rate: int, wanted: int = NARROW.rate
) -> NDArray[np.float32]:
    """Return the first full second of a recording, mono at the rate of an encoder.

    Channels are averaged and a constant offset is removed. Resampling cuts the discrete spectrum of
    that second, so it is band-limited. Only the sound below half that rate counts.

    Args:
        samples: Samples (samples,) or (samples, channels), floats in [-1, 1], or signed 16- or
            32-bit integers, which are scaled to [-1, 1].
        rate: Samples per second, 1,000 to 768,000.
        wanted: Samples per second that the encoder hears; `rate` must not be below it.

    Returns:
        float32 (wanted,), contiguous.

    Raises:
        InvalidInputError: `samples` or `rate` has an invalid shape, type or range, or `rate` is
            below `wanted`.
        UnusableRecordingError: The second is too short, not finite, silent (root mean square below
            `SILENT_RMS`) or clipped (over `CLIPPED_FRACTION` of the samples of a channel at
            `FULL_SCALE` or above).
    """
    channels = _channels(samples, rate)
    if rate < wanted:
        raise InvalidInputError(
            f"the recording has {rate:,} samples per second, but the encoder hears {wanted:,}: "
            "record at that rate or above"
        )
    _check_heard(channels)
    mono = channels.mean(axis=1)
    second = _resample(mono - mono.mean(), wanted)
    level = float(np.sqrt(np.mean(second * second)))
    if level < SILENT_RMS:
        raise UnusableRecordingError(
            Unusable.SILENT, f"its rms is {level:.1e}; it must be at least {SILENT_RMS:.0e}"
        )
    return second.astype(np.float32)


def log_mel(samples: NDArray[np.floating], spectrum: Spectrum = NARROW) -> NDArray[np.float32]:
    """Return the log-mel spectrogram: periodic Hann window, 32 ms frames every 16 ms, 64 bands.

    The weights of a band sum to one (`mel_filters`) and the power of a frame is divided by the
    energy of the window, so white noise of variance v reads log(v) in every band.

    Args:
        samples: Floats (batch, spectrum.rate).
        spectrum: Spectrum to compute.

    Returns:
        float32 (batch, 61, 64): log(mean power + 1e-8), natural logarithm.

    Raises:
        InvalidInputError: `samples` has another shape or type.
    """
    check_seconds(samples, spectrum.rate)
    sound = samples.astype(np.float32, copy=False)
    windows = np.lib.stride_tricks.sliding_window_view(sound, spectrum.frame, axis=1)
    frames = windows[:, :: spectrum.hop][:, :FRAMES]
    bins = np.fft.rfft(frames * spectrum.hann_window(), axis=2)
    power = (bins.real**2 + bins.imag**2).astype(np.float32, copy=False)
    # Second by second, as matrices of one size: products of many rows and of few round differently,
    # and an embedding would depend on what else is embedded with it.
    mel = np.matmul(power, spectrum.mel_filters())
    logarithm = np.log(mel + np.float32(POWER_FLOOR))
    return np.asarray(logarithm, dtype=np.float32)


def check_seconds(samples: NDArray[np.generic], rate: int) -> None:
    """Refuse samples other than floats (batch, rate): seconds at the rate of an encoder.

    Raises:
        InvalidInputError: The samples have another shape or type.
    """
    if samples.ndim != 2 or samples.shape[1] != rate or samples.dtype.kind != "f":
        raise InvalidInputError(
            f"samples must be floats of shape (batch, {rate}), seconds at {rate // 1000} kHz, not "
            f"{samples.dtype} of shape {samples.shape}"
        )


def _channels(samples: NDArray[np.generic], rate: int) -> NDArray[np.float64]:
    """Return the first second as float64 (rate, channels)."""
    if not isinstance(rate, int | np.integer) or not RATES[0] <= rate <= RATES[1]:
        raise InvalidInputError(
            f"rate must be an integer, {RATES[0]} to {RATES[1]} samples per second, not {rate}"
        )
    array = np.asarray(samples)
    if array.ndim not in (1, 2) or (array.ndim == 2 and array.shape[1] == 0):
        raise InvalidInputError(
            f"samples must have shape (samples,) or (samples, channels), not {array.shape}"
        )
    if array.dtype.kind != "f" and array.dtype not in (np.int16, np.int32):
        raise InvalidInputError(f"samples must be floats, int16 or int32, not {array.dtype}")
    if array.ndim == 2 and len(array) < rate <= array.shape[1]:
        raise InvalidInputError(
            f"samples of shape {array.shape}: time is the first axis, channels the second; these "
            "look like (channels, samples), so give their transpose"
        )
    if len(array) < rate:
        raise UnusableRecordingError(
            Unusable.TOO_SHORT,
            f"it has {len(array):,} samples; it must have one second, {rate:,} at this rate",
        )
    second = array[:rate].reshape(rate, -1)
    if array.dtype.kind == "f":
        return second.astype(np.float64)
    return second / -float(np.iinfo(array.dtype).min)


def _check_heard(channels: NDArray[np.float64]) -> None:
    if not np.isfinite(channels).all():
        raise UnusableRecordingError(Unusable.NOT_FINITE, "it holds NaN or infinite samples")
    clipped = float((np.abs(channels) >= FULL_SCALE).mean(axis=0).max())
    if clipped > CLIPPED_FRACTION:
        raise UnusableRecordingError(
            Unusable.CLIPPED,
            f"{clipped:.1%} of its samples are at full scale; the limit is {CLIPPED_FRACTION:.1%}",
        )


def _resample(mono: NDArray[np.float64], wanted: int) -> NDArray[np.float64]:
    """Resample one second to a rate that is not above its own, by its spectrum."""
    if len(mono) == wanted:
        return mono
    band = np.fft.rfft(mono)[: wanted // 2 + 1]
    # The bin at half the rate is left out: there a real signal's phase is ambiguous.
    band[wanted // 2] = 0
    return np.fft.irfft(band, wanted) * (wanted / len(mono))
