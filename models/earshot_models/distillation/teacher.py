"""Large public encoders that a phone's encoder learns from, and the files that hold them."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.checks import whole
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.spectrum import RATES, SAMPLE_RATE

RATE = 16_000
"""Samples per second that most public encoders hear; no model file says which."""

_LEAST_DIMENSIONS = 128
"""The student has so many."""

_LITE_RT, _KERAS = ".tflite", ".keras"

_EMBEDDING = ("embedding", "global_average_pooling", "global_max_pooling")
"""Parts of the names of layers that give an embedding."""

_MOST_LISTED = 6

_Tensor = TypeVar("_Tensor")


class TeacherError(InvalidInputError):
    """A file that cannot teach: of another format, rate or shape; says what would be accepted."""


class Teacher(Protocol):
    """An encoder to learn from.

    Attributes:
        rate: samples per second that it hears.
        window: samples that it hears at once, half a second to a second.
        dimensions: length of its embeddings, at least 128.
        identity: tells its embeddings from those of any other.
        name: of its file.
    """

    rate: int
    window: int
    dimensions: int
    identity: str
    name: str

    def embed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Float32 (batch, window) in [-1, 1] → float32 (batch, dimensions)."""


def open_teacher(path: Path, rate: int = RATE, tensor: str | None = None) -> Teacher:
    """Open a LiteRT (`.tflite`) or Keras (`.keras`) file.

    Args:
        path: of a model that takes one window of samples, (window,) or (batch, window).
        rate: samples per second that it hears.
        tensor: which of its tensors is the embedding: a LiteRT tensor's index or name, a Keras
            layer's name. By default the one whose name says so, if there is but one.

    Raises:
        TeacherError: no such file, another format, or a model of another shape.
        InvalidParametersError: a rate below the phones', or beyond any sound's.
    """
    whole("the teacher's rate", rate, SAMPLE_RATE, RATES[1])
    if path.suffix not in (_LITE_RT, _KERAS):
        raise TeacherError(
            f"a teacher is a LiteRT file ({_LITE_RT}) or a Keras file ({_KERAS}), not {path.name}"
        )
    try:
        data = path.read_bytes()
    except OSError as error:
        raise TeacherError(f"the teacher {path} cannot be read: {error.strerror}") from error
    if path.suffix == _LITE_RT:
        return LiteRtTeacher(path, data, rate, tensor)
    return KerasTeacher(path, data, rate, tensor)


class LiteRtTeacher:
    """A LiteRT model of which any tensor can be read, one window at a time."""

    def __init__(self, path: Path, data: bytes, rate: int, tensor: str | None) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        try:
            with warnings.catch_warnings():
                # It warns of the memory that all tensors need: for a teacher that is little.
                warnings.simplefilter("ignore", UserWarning)
                # Delegates are faster, and leave garbage in tensors that only they need.
                self._interpreter: Any = Interpreter(
                    model_content=data,
                    num_threads=1,
                    experimental_preserve_all_tensors=True,
                    experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
                )
            self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise TeacherError(f"{path} is no model that LiteRT runs: {error}") from error
        inputs = self._interpreter.get_input_details()
        shape = tuple(map(int, inputs[0]["shape"]))
        if len(inputs) != 1 or inputs[0]["dtype"] is not np.float32:
            raise TeacherError(f"{path} must take one tensor of float32 samples")
        self._input, self._shape = inputs[0]["index"], shape
        self.window = _window(path, shape, rate)
        chosen = _chosen(path, self._embeddings(), tensor)
        self._output, self.dimensions = chosen
        self.rate = rate
        self.identity = _identity(data, rate, str(self._output))
        self.name = path.stem
        try:
            self.embed(np.zeros((1, self.window), dtype=np.float32))
        except (ValueError, RuntimeError) as error:
            raise TeacherError(f"LiteRT cannot run {path}: {error}") from error

    def embed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """See `Teacher.embed`."""
        rows = np.empty((len(samples), self.dimensions), dtype=np.float32)
        for row, window in zip(rows, samples, strict=True):
            self._interpreter.set_tensor(self._input, window.reshape(self._shape))
            self._interpreter.invoke()
            row[:] = self._interpreter.get_tensor(self._output).reshape(-1)
        return rows

    def _embeddings(self) -> dict[str, tuple[int, int]]:
        """Index and length of every tensor that might be an embedding, by name and by index."""
        found = {}
        for tensor in self._interpreter.get_tensor_details():
            shape = tensor["shape"]
            vector = len(shape) == 2 and shape[0] == 1 and tensor["dtype"] is np.float32
            if vector and tensor["index"] != self._input:
                found[f"{tensor['index']} {tensor['name']}"] = (tensor["index"], int(shape[1]))
        return found


class KerasTeacher:
    """A Keras model of which any layer's output can be read."""

    def __init__(self, path: Path, data: bytes, rate: int, tensor: str | None) -> None:
        import keras

        try:
            model = keras.models.load_model(path, compile=False, safe_mode=True)
        except (ValueError, OSError, TypeError, KeyError) as error:
            raise TeacherError(f"{path} is no model that Keras opens: {error}") from error
        if len(model.inputs) != 1 or len(model.input_shape) != 2:
            raise TeacherError(f"{path} must take one tensor (batch, samples)")
        self.window = _window(path, model.input_shape, rate)
        layers = {
            f"{place} {layer.name}": (layer, int(layer.output.shape[-1]))
            for place, layer in enumerate(model.layers[1:], start=1)
            if len(layer.output.shape) == 2 and layer.output.shape[-1] is not None
        }
        layer, self.dimensions = _chosen(path, layers, tensor)
        self._model = keras.Model(model.inputs[0], layer.output)
        self.rate = rate
        self.identity = _identity(data, rate, layer.name)
        self.name = path.stem

    def embed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """See `Teacher.embed`."""
        from earshot_models.batches import in_batches

        return in_batches(lambda rows: self._model(rows, training=False), samples)


def _window(path: Path, shape: tuple[int | None, ...], rate: int) -> int:
    """The samples of a window, from the shape of a model's input."""
    samples = [size for size in shape if size not in (1, None)]
    if len(samples) != 1 or not rate // 2 <= (samples[0] or 0) <= rate:
        raise TeacherError(
            f"{path} takes a tensor of shape {shape}: a teacher takes one window of samples, half "
            f"a second to a second, which at its {rate} samples per second are {rate // 2} to "
            f"{rate}"
        )
    return int(samples[0] or 0)


def _chosen(
    path: Path, tensors: Mapping[str, tuple[_Tensor, int]], wanted: str | None
) -> tuple[_Tensor, int]:
    """The tensor that is wanted, and its length; by its index or its name."""
    listed = {name: each for name, each in tensors.items() if each[1] >= _LEAST_DIMENSIONS}
    if wanted is None:
        found = [each for name, each in listed.items() if any(part in name for part in _EMBEDDING)]
    else:
        found = [each for name, each in listed.items() if wanted in name.split(" ", 1)]
    if len(found) == 1:
        return found[0]
    names = [f"{name} ({length})" for name, (_, length) in listed.items()]
    few = ", ".join(names[-_MOST_LISTED:]) or "none"
    raise TeacherError(
        f"{path}: name the tensor that is its embedding, of {_LEAST_DIMENSIONS} numbers or more; "
        f"the last ones are {few}"
        if wanted is None
        else f"{path} has no embedding {wanted!r} of {_LEAST_DIMENSIONS} numbers or more; the last "
        f"tensors are {few}"
    )


def _identity(data: bytes, rate: int, tensor: str) -> str:
    return hashlib.sha256(hashlib.sha256(data).digest() + f"{rate} {tensor}".encode()).hexdigest()
