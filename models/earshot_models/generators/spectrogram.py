"""Seconds of sound as small pictures that generators learn, and pictures turned back into sound.

A picture is a log-mel spectrogram in decibels of full scale, stretched from a fixed range to [-1,
1]. Nothing in it depends on other clips, so no mean and no peak of a data set has to be protected.
The way back guesses the phases by Griffin-Lim (Griffin and Lim, IEEE TASSP 1984; with momentum
after Perraudin et al., WASPAA 2013).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.spectrum import LOWEST_HERTZ, SAMPLE_RATE

LOUDEST_PEAK = 0.9
"""Largest magnitude of a sample of generated sound."""
LOUDEST_RMS = 0.1
"""Largest root mean square of generated sound, 20 dB below full scale, however loud its picture
is."""

_FINER = 2
"""Factor on the number of frames for the way back: Griffin-Lim needs frames that overlap a lot."""
_ITERATIONS = 32


@dataclass(frozen=True)
class SpectrogramSettings:
    """Settings of a picture.

    Attributes:
        rate: Samples per second; a picture shows one second.
        frames: Frames per second, a divisor of the rate.
        bands: Mel bands from 50 Hz to half the rate.
        window: Samples of one frame, an even number that exceeds the distance between two frames.
        floor: Decibels of full scale that become -1; softer sound does, too.
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
        if self.rate % (_FINER * self.frames):
            raise InvalidParametersError(
                f"frames={self.frames}: half a frame must be a whole number of samples, of which "
                f"a second has {self.rate}"
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

    def band_hertz(self) -> NDArray[np.float64]:
        """Return the middle of each band in hertz, (bands,)."""
        from librosa import mel_frequencies

        edges = mel_frequencies(self.bands + 2, fmin=LOWEST_HERTZ, fmax=self.rate / 2)
        return np.asarray(edges[1:-1], dtype=np.float64)


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


def strip(sound: NDArray[np.float32], settings: SpectrogramSettings = SMALL) -> NDArray[np.float32]:
    """Make one picture of sound of any length, with the same number of frames per second.

    Args:
        sound: Samples, (samples,), at least one.
        settings: Settings of the picture.

    Returns:
        float32 (frames, bands) in [-1, 1]; the last frame may reach beyond the end.

    Raises:
        InvalidInputError: The shape is wrong, or samples are not finite.
    """
    given = _checked("sound", np.asarray(sound)[np.newaxis], (np.size(sound),))[0]
    if not given.size:
        raise InvalidInputError("sound: holds no samples")
    return _framed(np.pad(given, (0, -given.size % settings.hop)), settings)


def _framed(samples: NDArray[np.float64], settings: SpectrogramSettings) -> NDArray[np.float32]:
    """Make a picture of whole hops; each frame's middle is the middle of its share of the sound."""
    edge = (settings.window - settings.hop) // 2
    padded = np.pad(samples, edge)
    frames = np.lib.stride_tricks.sliding_window_view(padded, settings.window)[:: settings.hop]
    power = np.square(np.abs(np.fft.rfft(frames * _window(settings), axis=1)))
    return _scaled(power @ _filters(settings).T, settings).astype(np.float32)


def sound(
    pictures: NDArray[np.float32], settings: SpectrogramSettings = SMALL, seed: int = 0
) -> NDArray[np.float32]:
    """Make seconds of sound whose pictures are nearly these.

    However loud a picture, its sound stays below `LOUDEST_PEAK` and `LOUDEST_RMS`.

    Args:
        pictures: Pictures, (n, frames, bands); numbers outside [-1, 1] are moved to its edge.
        settings: Settings of the pictures.
        seed: Seed of the phases that Griffin-Lim begins with; the same for every picture, so that a
            picture's sound does not depend on the others.

    Returns:
        float32 (n, rate).

    Raises:
        InvalidInputError: The shape is wrong, or numbers are not finite.
    """
    given = _checked("pictures", pictures, settings.shape)
    found = [_played(picture, settings, seed) for picture in given]
    return np.stack(found) if found else np.empty((0, settings.rate), dtype=np.float32)


def _played(
    picture: NDArray[np.float64], settings: SpectrogramSettings, seed: int
) -> NDArray[np.float32]:
    import librosa

    span = settings.ceiling - settings.floor
    decibels = settings.floor + (np.clip(picture, -1, 1) + 1) / 2 * span
    # The floor stands for anything softer, so silence stays silent.
    power = np.where(decibels > settings.floor, 10 ** (decibels / 10), 0.0)
    # Places are in frames, whose middles are half a frame into their share of the second.
    places = np.arange(_FINER * settings.frames + 1) / _FINER - 0.5
    known = np.arange(settings.frames)
    finer = np.stack([np.interp(places, known, band) for band in power.T])
    scale = settings.window / 4  # of a Hann window's spectrum, for a sine of amplitude 1
    magnitudes = scale * _magnitudes(finer, settings)
    wave = librosa.griffinlim(
        magnitudes,
        n_iter=_ITERATIONS,
        hop_length=settings.hop // _FINER,
        n_fft=settings.window,
        length=settings.rate,
        random_state=seed,
    )
    return _softened(np.asarray(wave, dtype=np.float64))


def _magnitudes(power: NDArray[np.float64], settings: SpectrogramSettings) -> Any:
    """Return each frequency's magnitude from the power in mel bands.

    It is found by non-negative least squares.
    """
    from librosa.util import nnls

    return np.sqrt(nnls(_filters(settings), power))


def _softened(wave: NDArray[np.float64]) -> NDArray[np.float32]:
    peak, rms = np.abs(wave).max(), np.sqrt(np.mean(np.square(wave)))
    gain = min(1.0, LOUDEST_PEAK / max(peak, 1e-12), LOUDEST_RMS / max(rms, 1e-12))
    return np.asarray(gain * wave, dtype=np.float32)


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
