"""Statistics of a spectrum over time, after which textures such as rain are told apart.

McDermott and Simoncelli, Sound Texture Perception via Statistics of the Auditory Periphery (Neuron,
2011): people recognize such sounds by averages over time, envelope by envelope. Nothing here is
learned, so nothing can be learned by heart: beside a network that was trained on few recordings,
this is what still holds for others.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops
from numpy.typing import NDArray

from earshot_models.network import BANDS, FRAMES

MODULATIONS = 15
"""Rates of modulation, in periods per second of sound about."""

_TOGETHER = 4
"""Neighbouring bands whose modulations are averaged."""

SIZE = 4 * BANDS - 1 + MODULATIONS * BANDS // _TOGETHER


class Texture(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Log-mel spectra (batch, 61, 64, 1) → statistics (batch, 495).

    Per band: mean, mean absolute deviation, mean absolute change from frame to frame, and to the
    next band; then the logarithm of how strongly four bands together are modulated, at 15 rates.
    """

    def __init__(self, public: NDArray[np.floating] | None = None, **kwargs: Any) -> None:
        """Choose the scale.

        Args:
            public: log-mel spectra (examples, 61, 64, 1) over which each statistic gets mean 0 and
                deviation 1; None leaves them as they are.
            kwargs: of `keras.layers.Layer`.
        """
        super().__init__(**kwargs)
        self._waves = _waves()
        self._scales: list[tuple[NDArray[np.float32], NDArray[np.float32]]] | None = None
        if public is not None:
            found = [ops.convert_to_numpy(each) for each in self._statistics(public)]
            self._scales = [
                (each.mean(axis=0), np.maximum(each.std(axis=0), 1e-6)) for each in found
            ]

    def call(self, spectrum: Any) -> Any:
        """The statistics."""
        found = self._statistics(spectrum)
        if self._scales is not None:
            found = [
                (each - mean) / deviation
                for each, (mean, deviation) in zip(found, self._scales, strict=True)
            ]
        return ops.concatenate(found, axis=1)

    def _statistics(self, spectrum: Any) -> list[Any]:
        bands = ops.squeeze(spectrum, axis=-1)
        mean = ops.mean(bands, axis=1, keepdims=True)
        centred = bands - mean
        later = ops.abs(bands[:, 1:] - bands[:, :-1])
        higher = ops.abs(bands[:, :, 1:] - bands[:, :, :-1])
        return [
            ops.squeeze(mean, axis=1),
            ops.mean(ops.abs(centred), axis=1),
            ops.mean(later, axis=1),
            ops.mean(higher, axis=1),
            self._modulation(centred),
        ]

    def _modulation(self, centred: Any) -> Any:
        waves = ops.abs(ops.matmul(ops.transpose(centred, (0, 2, 1)), self._waves))
        strength = waves[:, :, :MODULATIONS] + waves[:, :, MODULATIONS:]
        grouped = ops.reshape(strength, (-1, BANDS // _TOGETHER, _TOGETHER, MODULATIONS))
        together = ops.log(1 + ops.mean(grouped, axis=2))
        return ops.reshape(together, (-1, MODULATIONS * BANDS // _TOGETHER))


def _waves() -> NDArray[np.float32]:
    """Cosines, then sines: float32 (61, 30)."""
    phase = 2 * np.pi * np.outer(np.arange(FRAMES), np.arange(1, MODULATIONS + 1)) / FRAMES
    return np.hstack([np.cos(phase), np.sin(phase)]).astype(np.float32)
