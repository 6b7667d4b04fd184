"""Seconds of sound as small pictures, the training data of generators.

A picture is a log-mel spectrogram in decibels of full scale, scaled from a fixed range to [-1, 1].
It does not depend on other clips, so no mean or peak of a data set needs protection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.spectrum import LOWEST_HERTZ, SAMPLE_RATE


@dataclass(frozen=True)
class SpectrogramSettings:
    """Settings of a picture.

    Attributes:
        rate: Samples per second; a picture shows one second.
        frames: Frames per second, a divisor of the rate.
        bands: Mel bands from 50 Hz to half the rate.
        window: Samples of one frame, an even number that exceeds the distance between two frames.
        floor: Decibels of full scale that become -1, as does softer sound.
        ceiling: Decibels of full scale that become 1; 0 is a sine of amplitude 1.

    Raises:
        InvalidParametersError: The numbers make no picture.
    """

    rate: int = SAMPLE_RATE
    frames: int = 32
    bands: int = 40
    window: int = 512
    floor: float = -80.0
    ceiling: float = 0.0

    def __post_init__(self) -> None:
        checks.whole("rate", self.rate, 1000)
        checks.whole("frames", self.frames)
        checks.whole("bands", self.bands, 1, self.window // 4)
        if self.rate % self.frames:
            raise InvalidParametersError(
                f"frames={self.frames}: must divide the {self.rate} samples of a second"
            )
        if self.window % 2 or not self.hop < self.window <= self.rate:
            raise InvalidParametersError(
                f"window={self.window}: must be even, longer than the {self.hop} samples from one "
                f"frame to the next and at most a second, {self.rate}"
            )
        if not self.floor < self.ceiling:
            raise InvalidParametersError(
                f"floor={self.floor}: must be below the ceiling, {self.ceiling}"
            )

    @property
    def hop(self) -> int:
        """Samples from one frame to the next."""
        return self.rate // self.frames

    @property
    def shape(self) -> tuple[int, int]:
        """Frames and bands of a picture."""
        return self.frames, self.bands


SMALL = SpectrogramSettings()
"""A second at 8 kHz as 32 frames of 40 bands."""


def log_mel(
    sound: NDArray[np.float32], settings: SpectrogramSettings = SMALL
) -> NDArray[np.float32]:
    """Make pictures of seconds of sound.

    Args:
        sound: Seconds with full scale at ±1, (n, rate).
        settings: Settings of the pictures.

    Returns:
        float32 (n, frames, bands) in [-1, 1].

    Raises:
        InvalidInputError: The shape is wrong, or samples are not finite.
    """
    given = _checked("sound", sound, (settings.rate,))
    pictures = np.empty((len(given), *settings.shape), dtype=np.float32)
    for picture, second in zip(pictures, given, strict=True):
        picture[:] = _framed(second, settings)
    return pictures


def _framed(samples: NDArray[np.float64], settings: SpectrogramSettings) -> NDArray[np.float32]:
    """Make a picture of whole hops, each frame centred on its hop."""
    edge = (settings.window - settings.hop) // 2
    padded = np.pad(samples, edge)
    frames = np.lib.stride_tricks.sliding_window_view(padded, settings.window)[:: settings.hop]
    power = np.square(np.abs(np.fft.rfft(frames * _window(settings), axis=1)))
    return _scaled(power @ _filters(settings).T, settings).astype(np.float32)


def _scaled(power: NDArray[np.float64], settings: SpectrogramSettings) -> NDArray[np.float64]:
    decibels = 10 * np.log10(np.maximum(power, 10 ** (settings.floor / 10)))
    share = (decibels - settings.floor) / (settings.ceiling - settings.floor)
    return np.clip(2 * share - 1, -1, 1)


def _window(settings: SpectrogramSettings) -> NDArray[np.float64]:
    """Return a periodic Hann window under which a sine of amplitude 1 has a peak of 1."""
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(settings.window) / settings.window)
    return np.asarray(hann * 4 / settings.window, dtype=np.float64)


def _filters(settings: SpectrogramSettings) -> NDArray[np.float64]:
    """Return triangles of height 1 on Slaney's mel scale, (bands, window / 2 + 1)."""
    from librosa.filters import mel

    return np.asarray(
        mel(
            sr=settings.rate,
            n_fft=settings.window,
            n_mels=settings.bands,
            fmin=LOWEST_HERTZ,
            norm=None,
            dtype=np.float64,
        )
    )


def _checked(name: str, numbers: Any, shape: tuple[int, ...]) -> NDArray[np.float64]:
    table = np.asarray(numbers)
    if table.shape[1:] != shape or table.ndim != len(shape) + 1:
        wanted = " × ".join(map(str, ("n", *shape)))
        raise InvalidInputError(f"{name} of shape {table.shape}: must be {wanted}")
    if not np.issubdtype(table.dtype, np.floating) or not np.isfinite(table).all():
        raise InvalidInputError(f"{name} of {table.dtype}: must be finite floating-point numbers")
    return table.astype(np.float64)
