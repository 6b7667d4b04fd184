"""Decoding of audio files to samples, at 8 kHz by default."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.sound_reading import SUFFIXES as SUFFIXES
from earshot_protocol.sound_reading import opened
from earshot_protocol.spectrum import SAMPLE_RATE, SILENT_RMS


def recorded_rate(path: Path) -> int:
    """Return the samples per second of a file, read from its header alone.

    Raises:
        UnreadableFileError: The file cannot be opened as sound.
    """
    with opened(path) as file:
        return file.rate


def read_mono(path: Path, rate: int = SAMPLE_RATE) -> NDArray[np.float32]:
    """Decode a file to the mean of its channels, float32 (samples,), at `rate`.

    Raises:
        UnreadableFileError: The file cannot be read as sound.
    """
    with opened(path) as file:
        own = file.rate
        samples = [second.mean(axis=1, dtype=np.float32) for second in file.seconds()]
    return resample(np.concatenate(samples), own, rate)


def resample(
    samples: NDArray[np.float32], rate: int, wanted: int = SAMPLE_RATE
) -> NDArray[np.float32]:
    """Resample float32 (samples,) from `rate` to `wanted` by soxr at high quality."""
    if rate == wanted:
        return samples
    import soxr

    return np.asarray(soxr.resample(samples, rate, wanted, quality="HQ"), dtype=np.float32)


def windows(samples: NDArray[np.float32], hop: int, rate: int = SAMPLE_RATE) -> NDArray[np.float32]:
    """Cut a clip into windows of one second.

    A shorter clip is put in the middle of a second of silence: a spoken digit lasts 0.4 s.

    Args:
        samples: Samples of the clip, float32 (samples,).
        hop: Samples from one second's start to the next.
        rate: Samples per second.

    Returns:
        float32 (seconds, rate), at least one; a view where possible.
    """
    if len(samples) < rate:
        before = (rate - len(samples)) // 2
        return np.pad(samples, (before, rate - len(samples) - before))[np.newaxis]
    return np.lib.stride_tricks.sliding_window_view(samples, rate)[::hop]


def loud(cut: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Return whether each of float32 (seconds, samples) is audible: bool (seconds,)."""
    level = np.sqrt(np.mean(np.square(cut, dtype=np.float64), axis=1))
    return np.asarray(level >= SILENT_RMS)


def seconds(
    samples: NDArray[np.float32], hop: int | None = None, rate: int = SAMPLE_RATE
) -> NDArray[np.float32]:
    """Return the seconds that `windows` cuts, without the silent ones: float32 (seconds, rate).

    Without `hop`, one second follows the other.
    """
    cut = windows(samples, hop or rate, rate)
    return np.ascontiguousarray(cut[loud(cut)])
