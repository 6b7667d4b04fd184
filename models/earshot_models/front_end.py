"""The front end, from a second of sound to the network's input, on any training device.

The phone computes the same numbers with numpy (`earshot_client.features.log_mel`).
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops

from earshot_protocol.checks import share, whole
from earshot_protocol.overriding import override
from earshot_protocol.spectrum import (
    BANDS,
    FRAMES,
    NARROW,
    POWER_FLOOR,
    SILENT_RMS,
    Spectrum,
)


class LogMel(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Seconds at unit level → log-mel spectra; in training, parts of them are masked.

    float32 (batch, rate) → float32 (batch, 61, 64, 1). A masked part holds the mean of its spectrum
    (SpecAugment, Park et al. 2019).
    """

    def __init__(
        self,
        mask: float = 0.0,
        bands: int = 12,
        frames: int = 14,
        seed: int = 0,
        spectrum: Spectrum = NARROW,
    ) -> None:
        """Choose the masks.

        Args:
            mask: Chance of a mask over bands, and of one over time.
            bands: Width of the widest mask, in bands, 1 to 32.
            frames: Length of the longest mask, in frames, 1 to 30.
            seed: Seed of the masks.
            spectrum: Spectrum to compute.

        Raises:
            InvalidParametersError: A parameter is out of range.
        """
        super().__init__()
        self._mask = share("mask", mask)
        longest = whole("frames", frames, 1, FRAMES // 2)
        self._widest = {1: longest, 2: whole("bands", bands, 1, BANDS // 2)}
        self._seeds = keras.random.SeedGenerator(seed)
        # Copies, because PyTorch warns about read-only arrays.
        self._window = np.array(spectrum.hann_window())
        self._filters = np.array(spectrum.mel_filters())
        self._spectrum = spectrum

    @override
    def call(self, samples: Any, training: bool = False) -> Any:
        power = ops.mean(ops.square(samples), axis=1, keepdims=True)
        sound = samples / ops.maximum(ops.sqrt(power), SILENT_RMS)
        frames = ops.extract_sequences(sound, self._spectrum.frame, self._spectrum.hop)
        real, imaginary = ops.rfft(frames * self._window)
        power = ops.square(real) + ops.square(imaginary)
        spectrum = ops.log(ops.matmul(power, self._filters) + POWER_FLOOR)
        if training and self._mask:
            mean = ops.mean(spectrum, axis=(1, 2), keepdims=True)
            for axis in (1, 2):
                spectrum = ops.where(self._masked(spectrum, axis), mean, spectrum)
        return ops.expand_dims(spectrum, -1)

    def _masked(self, spectrum: Any, axis: int) -> Any:
        """Return where the mask along an axis lies, one per example, broadcastable."""
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
