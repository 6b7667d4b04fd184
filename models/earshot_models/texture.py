"""Temporal statistics of a spectrum, which discriminate sound textures such as rain.

McDermott and Simoncelli, Sound Texture Perception via Statistics of the Auditory Periphery (Neuron,
2011): people recognize such sounds by averages over time, envelope by envelope. Nothing here is
learned, so these features do not overfit, unlike a network that was trained on few recordings.
"""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from keras import ops

from earshot_protocol.overriding import override
from earshot_protocol.spectrum import BANDS, FRAMES

MODULATIONS = 30
"""Number of modulation rates, about 1 to 30 Hz: all that 61 frames resolve."""

_MODULATED = 8
"""Neighbouring bands whose modulations are averaged."""

GROUPS = 16
"""Groups of neighbouring bands whose correlations are computed."""

_LEAST_DEVIATION = 0.1
"""Amount added to a deviation before division, so that nearly constant bands have correlations near
0."""


class Texture(keras.layers.Layer):  # type: ignore[misc]  # Keras has no types
    """Log-mel spectra (batch, 61, 64, 1) → statistics (batch, 615).

    Per band: mean, mean absolute deviation, mean absolute change from frame to frame, and to the
    next band; then the logarithm of how strongly eight bands together are modulated, at 30 rates;
    then the correlations over time between each two of 16 groups of bands.
    """

    def __init__(self) -> None:
        super().__init__()
        phase = 2 * np.pi * np.outer(np.arange(FRAMES), np.arange(1, MODULATIONS + 1)) / FRAMES
        self._waves = np.hstack([np.cos(phase), np.sin(phase)]).astype(np.float32)
        rows, columns = np.triu_indices(GROUPS, 1)
        self._pairs = (rows * GROUPS + columns).astype(np.int32)

    @override
    def call(self, spectrum: Any) -> Any:
        bands = ops.squeeze(spectrum, axis=-1)
        mean = ops.mean(bands, axis=1, keepdims=True)
        centred = bands - mean
        later = ops.abs(bands[:, 1:] - bands[:, :-1])
        higher = ops.abs(bands[:, :, 1:] - bands[:, :, :-1])
        statistics = [
            ops.squeeze(mean, axis=1),
            ops.mean(ops.abs(centred), axis=1),
            ops.mean(later, axis=1),
            ops.mean(higher, axis=1),
            self._modulation(centred),
            self._correlations(centred),
        ]
        return ops.concatenate(statistics, axis=1)

    def _modulation(self, centred: Any) -> Any:
        waves = ops.abs(ops.matmul(ops.transpose(centred, (0, 2, 1)), self._waves))
        strength = waves[:, :, :MODULATIONS] + waves[:, :, MODULATIONS:]
        grouped = ops.reshape(strength, (-1, BANDS // _MODULATED, _MODULATED, MODULATIONS))
        together = ops.log(1 + ops.mean(grouped, axis=2))
        return ops.reshape(together, (-1, MODULATIONS * BANDS // _MODULATED))

    def _correlations(self, centred: Any) -> Any:
        groups = ops.mean(ops.reshape(centred, (-1, FRAMES, GROUPS, BANDS // GROUPS)), axis=3)
        deviation = ops.sqrt(ops.mean(ops.square(groups), axis=1, keepdims=True))
        groups = groups / (deviation + _LEAST_DEVIATION)
        together = ops.matmul(ops.transpose(groups, (0, 2, 1)), groups) / FRAMES
        return ops.take(ops.reshape(together, (-1, GROUPS**2)), self._pairs, axis=1)
