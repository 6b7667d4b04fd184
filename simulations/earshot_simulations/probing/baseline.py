"""A baseline without an encoder: statistics of the log-mel spectrum."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from earshot_client.lite_rt_encoder import spectrum
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.spectrum import BANDS

_BATCH = 64


class LogMelStatistics:
    """Mean over time, deviation, and mean change between frames of each band; 192 numbers.

    They are centred and scaled to unit variance by the statistics of the first embedded sound, so
    that later sound is on the same scale; and then scaled to unit length, as embeddings are.

    They describe sound at 8 kHz, regardless of other encoders' rates.
    """

    name = "log-mel statistics"
    dimensions = 3 * BANDS

    def __init__(self) -> None:
        self._scale: tuple[NDArray[np.float32], NDArray[np.float32]] | None = None

    def embed(self, samples: NDArray[np.floating]) -> NDArray[np.float32]:
        """Embed floats (batch, 8000) as float32 (batch, 192), unit rows."""
        rows = np.empty((len(samples), self.dimensions), dtype=np.float32)
        for start in range(0, len(samples), _BATCH):
            mel = spectrum(samples[start : start + _BATCH])
            change = np.abs(np.diff(mel, axis=1)).mean(axis=1)
            rows[start : start + _BATCH] = np.hstack([mel.mean(axis=1), mel.std(axis=1), change])
        if self._scale is None:
            self._scale = rows.mean(axis=0), np.maximum(rows.std(axis=0), 1e-6)
        rows = (rows - self._scale[0]) / self._scale[1]
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return np.asarray(rows / np.maximum(lengths, 1e-6), dtype=np.float32)

    def project(self, embeddings: NDArray[np.floating], dimensions: int) -> NDArray[np.float32]:
        """Raise an error, since these statistics have no projection.

        Raises:
            InvalidInputError: Always.
        """
        raise InvalidInputError("log-mel statistics have no projection")
