"""From a second of sound to what the network sees, on whatever device trains it.

The phone computes the same numbers with numpy (`earshot_client.features.log_mel`). The two packages
may not import each other, so the definition stands in both, and a test holds them together.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from earshot_models.audio import RATE, SILENT_RMS
from earshot_protocol.errors import InvalidParametersError

FRAME, HOP = 256, 128
FRAMES, BANDS = 61, 64
LOWEST_HERTZ = 50.0
POWER_FLOOR = 1e-8

# Slaney's scale: 15 mel at 1 kHz, and 27 mel for each further factor of 6.4.
_BREAK_HERTZ, _BREAK_MEL = 1000.0, 15.0
_LOG_STEP = float(np.log(6.4) / 27)


@keras.saving.register_keras_serializable("earshot")
class LogMel(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Seconds at unit level → log-mel spectra; in training, parts of them are masked.

    float32 (batch, 8000) → float32 (batch, 61, 64, 1). A masked part holds the mean of its
    spectrum (SpecAugment, Park et al. 2019).
    """

    def __init__(
        self, mask: float = 0.0, bands: int = 12, frames: int = 14, seed: int = 0, **kwargs: Any
    ) -> None:
        """Choose the masks.

        Args:
            mask: chance of a mask over bands, and of one over time.
            bands: widest mask, 1 to 32.
            frames: longest mask, 1 to 30.
            seed: of the masks.
            kwargs: of `keras.layers.Layer`.

        Raises:
            InvalidParametersError: if one is out of range.
        """
        super().__init__(**kwargs)
        if not 0 <= mask <= 1 or not 1 <= bands <= BANDS // 2 or not 1 <= frames <= FRAMES // 2:
            raise InvalidParametersError(
                f"mask must be a chance, bands 1 to {BANDS // 2} and frames 1 to {FRAMES // 2}; "
                f"not {mask}, {bands} and {frames}"
            )
        self._mask = mask
        self._widest = {1: frames, 2: bands}
        self._seeds = keras.random.SeedGenerator(seed)
        self._window = _window()
        self._bands = _mel_bands()

    def call(self, samples: Any, training: bool = False) -> Any:
        """Log-mel spectra; see the class."""
        power = ops.mean(ops.square(samples), axis=1, keepdims=True)
        sound = samples / ops.maximum(ops.sqrt(power), SILENT_RMS)
        frames = ops.extract_sequences(sound, FRAME, HOP)
        real, imaginary = ops.rfft(frames * self._window)
        power = ops.square(real) + ops.square(imaginary)
        spectrum = ops.log(ops.matmul(power, self._bands) + POWER_FLOOR)
        if training and self._mask:
            mean = ops.mean(spectrum, axis=(1, 2), keepdims=True)
            for axis in (1, 2):
                spectrum = ops.where(self._masked(spectrum, axis), mean, spectrum)
        return ops.expand_dims(spectrum, -1)

    def _masked(self, spectrum: Any, axis: int) -> Any:
        """Where the mask along an axis lies, one per example, broadcastable."""
        count, length = ops.shape(spectrum)[0], spectrum.shape[axis]
        chance, width, place = (
            keras.random.uniform((count, 1), seed=self._seeds) for _ in range(3)
        )
        width = ops.floor(width * self._widest[axis]) + 1
        start = ops.floor(place * (length - width + 1))
        index = ops.expand_dims(ops.arange(length, dtype="float32"), 0)
        masked = ops.logical_and(index >= start, index < start + width)
        masked = ops.logical_and(masked, chance < self._mask)
        return ops.expand_dims(masked, 3 - axis)


def _window() -> NDArray[np.float32]:
    """Periodic Hann window of unit energy."""
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FRAME) / FRAME)
    return np.asarray(hann / np.sqrt(np.sum(hann**2)), dtype=np.float32)


def _mel_bands() -> NDArray[np.float32]:
    """Triangular filters float32 (129, 64), each of unit sum."""
    ends = _mel(np.array([LOWEST_HERTZ, RATE / 2]))
    edges = _hertz(np.linspace(ends[0], ends[1], BANDS + 2))
    bins = np.arange(FRAME // 2 + 1)[:, np.newaxis] * (RATE / FRAME)
    rise = (bins - edges[:-2]) / np.diff(edges)[:-1]
    fall = (edges[2:] - bins) / np.diff(edges)[1:]
    triangles = np.clip(np.minimum(rise, fall), 0, None)
    return np.asarray(triangles / triangles.sum(axis=0), dtype=np.float32)


def _mel(hertz: NDArray[np.float64]) -> NDArray[np.float64]:
    linear = hertz * (_BREAK_MEL / _BREAK_HERTZ)
    above = _BREAK_MEL + np.log(np.maximum(hertz, 1.0) / _BREAK_HERTZ) / _LOG_STEP
    return np.where(hertz < _BREAK_HERTZ, linear, above)


def _hertz(mel: NDArray[np.float64]) -> NDArray[np.float64]:
    linear = mel * (_BREAK_HERTZ / _BREAK_MEL)
    return np.where(mel < _BREAK_MEL, linear, _BREAK_HERTZ * np.exp((mel - _BREAK_MEL) * _LOG_STEP))
