"""Encoders from encoder files: log-mel spectra by numpy, the network by LiteRT."""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from earshot_client.features import check_seconds, log_mel
from earshot_protocol import encoder_file, start_centroids
from earshot_protocol.distribution import unusable
from earshot_protocol.encoder_file import DIMENSIONS, DamagedEncoderError
from earshot_protocol.errors import InvalidInputError, LocalError
from earshot_protocol.shipped_encoders import SHIPPED_ENCODERS
from earshot_protocol.spectrum import BANDS, FRAMES, NARROW, SILENT_RMS, Spectrum

_BATCH = 32
"""Seconds at a time: their spectra stay in the cache, and memory does not grow with the input."""


class MissingRuntimeError(LocalError):
    """Missing LiteRT, which encoder files need; the extra [phone] installs it."""


class LiteRtEncoder:
    """Encoder with the model of an encoder file, one thread at a time.

    Args:
        data: Content of an encoder file.

    Raises:
        DamagedEncoderError: The file is damaged, or not a model from spectra to embeddings.
        MissingRuntimeError: LiteRT is not installed.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        file = encoder_file.read(data)
        self.name = file.card.name
        self.dimensions = DIMENSIONS
        self._spectrum = file.spectrum
        self._mean, self._scale = file.mean(), file.scale()
        self._start = file.card.start_centroids
        self._network = _Network(file.model)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> LiteRtEncoder:
        """Read an encoder file.

        Raises:
            DamagedEncoderError: The file cannot be read, or is damaged.
            MissingRuntimeError: LiteRT is not installed.
        """
        try:
            encoder_file.check_size(Path(path).stat().st_size)
            return cls(Path(path).read_bytes())
        except OSError as error:
            raise DamagedEncoderError(
                f"the encoder file {path} cannot be read ({error.strerror}); name an encoder file, "
                f"or a shipped encoder: {', '.join(SHIPPED_ENCODERS)}"
            ) from error
        except DamagedEncoderError as error:
            raise DamagedEncoderError(f"{path}: {error}") from error

    def embed(self, samples: NDArray[np.floating]) -> NDArray[np.float32]:
        """Embed seconds of sound; louder or softer copies get the same embedding.

        Raises:
            InvalidInputError: `samples` has another shape or type, or is not finite.
        """
        check_seconds(samples, self.rate)
        if not np.isfinite(samples).all():
            raise InvalidInputError("samples must be finite")
        rows = np.empty((len(samples), DIMENSIONS), dtype=np.float32)
        for start in range(0, len(samples), _BATCH):
            spectra = spectrum(samples[start : start + _BATCH], self._spectrum)
            rows[start : start + _BATCH] = self._network(spectra)
        return _unit_rows(rows)

    @property
    def rate(self) -> int:
        """Samples per second that the encoder hears."""
        return self._spectrum.rate

    def project(self, embeddings: NDArray[np.floating], dimensions: int) -> NDArray[np.float32]:
        """Project embeddings on the leading principal coordinates of public sound, whitened.

        Raises:
            InvalidInputError: The shape is another one, or `dimensions` is not from 1 to 128.
        """
        if embeddings.ndim != 2 or embeddings.shape[1] != DIMENSIONS:
            raise InvalidInputError(
                f"embeddings must have shape (batch, {DIMENSIONS}), not {embeddings.shape}"
            )
        if not 1 <= dimensions <= DIMENSIONS:
            raise InvalidInputError(f"dimensions must be 1 to {DIMENSIONS}, not {dimensions}")
        centred = embeddings[:, :dimensions] - self._mean[:dimensions]
        return _unit_rows(centred * self._scale[:dimensions])

    def start_centroids(self, dimensions: int, count: int) -> NDArray[np.float32]:
        """Return the start centroids of the file's card."""
        return start_centroids.chosen(self._start, self.name, dimensions, count)

    def __reduce__(self) -> tuple[type[LiteRtEncoder], tuple[bytes]]:
        # A loaded model cannot be pickled; the file can.
        return type(self), (self._data,)


def spectrum(samples: NDArray[np.floating], of: Spectrum = NARROW) -> NDArray[np.float32]:
    """Return the network's input: `log_mel` of seconds of finite floats, scaled to unit level."""
    sound = samples.astype(np.float32)
    level = np.sqrt(np.mean(sound * sound, axis=1, keepdims=True))
    return log_mel(sound / np.maximum(level, SILENT_RMS), of)


class _Network:
    """LiteRT's interpreter, resized when the batch size changes."""

    def __init__(self, model: bytes) -> None:
        try:
            from ai_edge_litert.interpreter import Interpreter
        except ImportError as error:
            raise MissingRuntimeError(
                unusable("encoder files", "ai-edge-litert", "ai_edge_litert", "phone", error)
            ) from error
        self._lock = threading.Lock()
        try:
            with _no_chatter():
                self._interpreter: Any = Interpreter(model_content=model, num_threads=1)
                _check_shape("take", self._interpreter.get_input_details(), (1, FRAMES, BANDS, 1))
                self._resize(1)
        except (ValueError, RuntimeError) as error:
            raise DamagedEncoderError(f"LiteRT cannot run this encoder: {error}") from error
        _check_shape("give", self._interpreter.get_output_details(), (1, DIMENSIONS))

    def __call__(self, spectra: NDArray[np.float32]) -> NDArray[np.float32]:
        """Map float32 spectra (batch, 61, 64) → (batch, 128); threads wait for each other."""
        with self._lock:
            if len(spectra) != self._batch:
                self._resize(len(spectra))
            self._interpreter.set_tensor(self._input, spectra[..., np.newaxis])
            self._interpreter.invoke()
            return np.asarray(self._interpreter.get_tensor(self._output), dtype=np.float32)

    def _resize(self, batch: int) -> None:
        self._input = self._interpreter.get_input_details()[0]["index"]
        self._output = self._interpreter.get_output_details()[0]["index"]
        # Not `strict`: a model may declare a batch of one, and compute sizes from its input.
        self._interpreter.resize_tensor_input(self._input, (batch, FRAMES, BANDS, 1))
        self._interpreter.allocate_tensors()
        self._batch = batch


def _check_shape(verb: str, details: Any, wanted: tuple[int, ...]) -> None:
    shape = tuple(details[0]["shape"].tolist())
    if shape != wanted:
        raise DamagedEncoderError(f"the encoder's model must {verb} {wanted} numbers, not {shape}")


@contextlib.contextmanager
def _no_chatter() -> Iterator[None]:
    """Suppress what LiteRT writes to standard error, from C++ and past Python's logging.

    Errors are still raised.
    """
    sys.stderr.flush()
    standard_error = os.dup(2)
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(standard_error, 2)
        os.close(standard_error)


def _unit_rows(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, np.finfo(np.float32).tiny), dtype=np.float32)
