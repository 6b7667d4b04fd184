"""Encoders: one second of sound → 128 numbers on the unit sphere.

The rest of the system sees an `Encoder` as a black box (thesis, chapter 5). `LogMelEncoder` is the
interim one: statistics of the log-mel spectrum, and a linear map fitted on public, synthetic
sound by `earshot_simulations.interim_encoder`.
"""

from __future__ import annotations

import hashlib
import io
from functools import cache
from importlib import resources
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from earshot_client.features import MELS, SILENT_RMS, WINDOW, log_mel
from earshot_protocol.errors import InvalidInputError, LocalError

DIMENSIONS = 128
"""Length of every embedding."""

STATISTICS = 3 * MELS
"""Length of `statistics`' rows."""

INTERIM_SHA256 = "4b991d48a6f92d39ba77709bb6379547f96540a4b5d882a74736eff5edc7ee64"
"""Digest of data/interim_encoder.npz: the encoder must be the one that all phones share."""

_BATCH = 64


class DamagedEncoderError(LocalError):
    """The packaged encoder is not the one that this version was built with; reinstall it."""


class Encoder(Protocol):
    """Turns sound into embeddings. It is public, and the same on every phone."""

    @property
    def name(self) -> str:
        """Identifies the encoder and its version: embeddings of two encoders do not compare."""

    @property
    def dimensions(self) -> int:
        """Length of an embedding."""

    def embed(self, samples: NDArray[np.floating]) -> NDArray[np.float32]:
        """Floats (batch, 8000) at 8 kHz in [-1, 1] → float32 (batch, 128), unit rows."""

    def project(self, embeddings: NDArray[np.floating], dimensions: int) -> NDArray[np.float32]:
        """Embeddings (batch, 128) → float32 (batch, dimensions), unit rows.

        The private steps add noise to every coordinate, so they want few of them.
        """


class LogMelEncoder:
    """Statistics of the log-mel spectrum under a linear map whose leading columns say most."""

    def __init__(self, mean: NDArray[np.floating], weights: NDArray[np.floating]) -> None:
        """Take the map (statistics - mean) @ weights.

        Args:
            mean: floats (192,).
            weights: floats (192, 128), the columns by descending importance.

        Raises:
            InvalidInputError: if a shape is another one.
        """
        if mean.shape != (STATISTICS,) or weights.shape != (STATISTICS, DIMENSIONS):
            raise InvalidInputError(
                f"mean and weights must have shapes ({STATISTICS},) and "
                f"({STATISTICS}, {DIMENSIONS}), not {mean.shape} and {weights.shape}"
            )
        self._mean = mean.astype(np.float32)
        self._weights = weights.astype(np.float32)

    @classmethod
    def load(cls, data: bytes, sha256: str) -> LogMelEncoder:
        """Read an encoder that `to_bytes` wrote.

        Args:
            data: the content of the file.
            sha256: hexadecimal digest that it must have.

        Raises:
            DamagedEncoderError: if the digest is another one.
        """
        if hashlib.sha256(data).hexdigest() != sha256:
            raise DamagedEncoderError(
                f"the packaged encoder does not have the digest {sha256}; reinstall earshot"
            )
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            return cls(arrays["mean"], arrays["weights"])

    def to_bytes(self) -> bytes:
        """The file: numpy's .npz with `mean` (float32) and `weights` (rounded to float16)."""
        file = io.BytesIO()
        np.savez(file, mean=self._mean, weights=self._weights.astype(np.float16))
        return file.getvalue()

    @property
    def name(self) -> str:
        """Identifies the encoder."""
        return "log-mel-1"

    @property
    def dimensions(self) -> int:
        """Length of an embedding: 128."""
        return DIMENSIONS

    def embed(self, samples: NDArray[np.floating]) -> NDArray[np.float32]:
        """Embed seconds of sound; louder or softer copies get the same embedding.

        Args:
            samples: finite floats (batch, 8000) at 8 kHz in [-1, 1].

        Returns:
            float32 (batch, 128), unit rows.

        Raises:
            InvalidInputError: if `samples` is not such an array.
        """
        return _unit_rows((statistics(samples) - self._mean) @ self._weights)

    def project(self, embeddings: NDArray[np.floating], dimensions: int) -> NDArray[np.float32]:
        """The leading principal coordinates, on the unit sphere again.

        Args:
            embeddings: floats (batch, 128).
            dimensions: coordinates to keep, 1 to 128.

        Returns:
            float32 (batch, dimensions), unit rows.

        Raises:
            InvalidInputError: if the shape or `dimensions` is another one.
        """
        if embeddings.ndim != 2 or embeddings.shape[1] != DIMENSIONS:
            raise InvalidInputError(
                f"embeddings must have shape (batch, {DIMENSIONS}), not {embeddings.shape}"
            )
        if not 1 <= dimensions <= DIMENSIONS:
            raise InvalidInputError(f"dimensions must be 1 to {DIMENSIONS}, not {dimensions}")
        return _unit_rows(embeddings[:, :dimensions].astype(np.float32))


@cache
def default_encoder() -> Encoder:
    """The encoder that all phones share, read once.

    Raises:
        DamagedEncoderError: if the packaged file has been changed.
    """
    file = resources.files("earshot_client") / "data" / "interim_encoder.npz"
    return LogMelEncoder.load(file.read_bytes(), INTERIM_SHA256)


def statistics(samples: NDArray[np.floating]) -> NDArray[np.float32]:
    """Per mel band: the mean over time, the deviation, and the mean change between frames.

    Every second is brought to unit root mean square first, so loudness does not matter.

    Args:
        samples: finite floats (batch, 8000) at 8 kHz.

    Returns:
        float32 (batch, 192).

    Raises:
        InvalidInputError: if `samples` is not such an array.
    """
    if samples.ndim != 2 or samples.shape[1] != WINDOW or samples.dtype.kind != "f":
        raise InvalidInputError(
            f"samples must be floats of shape (batch, {WINDOW}), not {samples.dtype} of shape "
            f"{samples.shape}"
        )
    if not np.isfinite(samples).all():
        raise InvalidInputError("samples must be finite")
    rows = np.empty((len(samples), STATISTICS), dtype=np.float32)
    # In small batches the spectra stay in the cache, and memory does not grow with the batch.
    for start in range(0, len(samples), _BATCH):
        sound = samples[start : start + _BATCH].astype(np.float32)
        level = np.sqrt(np.mean(sound * sound, axis=1, keepdims=True))
        mel = log_mel(sound / np.maximum(level, SILENT_RMS))
        change = np.abs(np.diff(mel, axis=1)).mean(axis=1)
        rows[start : start + _BATCH] = np.hstack([mel.mean(axis=1), mel.std(axis=1), change])
    return rows


def _unit_rows(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.finfo(np.float32).tiny), dtype=np.float32)
