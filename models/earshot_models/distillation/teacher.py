"""Large public encoders that a phone's encoder learns from, and the files that hold them."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.checks import whole
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.overriding import override
from earshot_protocol.spectrum import RATES, SAMPLE_RATE

RATE = 16_000
"""Samples per second that most public encoders hear; model files do not give the rate."""

_LEAST_DIMENSIONS = 128
"""Dimensions of the student."""

_LITE_RT, _KERAS = ".tflite", ".keras"

_EMBEDDING = ("embedding", "global_average_pooling", "global_max_pooling")
"""Parts of the names of layers whose output is an embedding."""

_MOST_LISTED = 6

_Tensor = TypeVar("_Tensor")


class TeacherError(InvalidInputError):
    """A file cannot be a teacher, by its format, rate or shape; the message says what can."""


class TeacherEncoder(Protocol):
    """An encoder to learn from.

    Attributes:
        rate: Samples per second that the encoder hears.
        window: Samples of one input, half a second to a second.
        lengths: Lengths of the parts that are read from the encoder, one or more, each at least
            128.
        identity: Digest that identifies the encoder's output.
        name: Name of the encoder's file, without the suffix.
    """

    rate: int
    window: int
    lengths: tuple[int, ...]
    identity: str
    name: str

    def embed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        """Embed float32 (batch, window) in [-1, 1]: float32 (batch, all lengths), part by part."""


def open_teacher(path: Path, rate: int = RATE, tensors: Sequence[str] = ()) -> TeacherEncoder:
    """Open a LiteRT (`.tflite`) or Keras (`.keras`) file.

    A tensor of shape (1, numbers) is read unchanged. One of an earlier layer, of shape (1, time,
    frequency, channels), is read as its maximum over time: targets depend on the sound and its
    pitch, but not on when it was heard.

    Args:
        path: File of a model that takes one window of samples, (window,) or (batch, window).
        rate: Samples per second that the model hears.
        tensors: Tensors to learn from: a LiteRT tensor's index or name, or a Keras layer's name. By
            default the tensor whose name marks it as the embedding, if there is only one.

    Raises:
        TeacherError: There is no such file, it has another format, or its model has another shape.
        InvalidParametersError: The rate is below that of phones, or too high.
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
        return LiteRtTeacher(path, data, rate, tensors)
    return KerasTeacher(path, data, rate, tensors)


@dataclass(frozen=True)
class _Readable(Generic[_Tensor]):
    """A tensor that can be learned: an embedding, or a map (time, frequency, channels)."""

    tensor: _Tensor
    length: int
    map: bool

    @classmethod
    def of(cls, tensor: _Tensor, shape: Sequence[int | None]) -> _Readable[_Tensor] | None:
        """Return the readable form of a tensor without its batch; None for one of another shape."""
        if None in shape or len(shape) not in (1, 3):
            return None
        return cls(tensor, int(np.prod([size or 0 for size in shape[-2:]])), len(shape) == 3)


class LiteRtTeacher(TeacherEncoder):
    """A LiteRT model from which any tensor can be read, one window at a time."""

    def __init__(self, path: Path, data: bytes, rate: int, tensors: Sequence[str]) -> None:
        from ai_edge_litert.interpreter import Interpreter, OpResolverType

        try:
            with warnings.catch_warnings():
                # LiteRT warns about the memory for all tensors, which is little for a teacher.
                warnings.simplefilter("ignore", UserWarning)
                # Delegates are faster, but leave garbage in their intermediate tensors.
                self._interpreter: Any = Interpreter(
                    model_content=data,
                    num_threads=1,
                    experimental_preserve_all_tensors=True,
                    experimental_op_resolver_type=OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES,
                )
            self._interpreter.allocate_tensors()
        except (ValueError, RuntimeError) as error:
            raise TeacherError(f"{path} is not a model that LiteRT runs: {error}") from error
        inputs = self._interpreter.get_input_details()
        shape = tuple(map(int, inputs[0]["shape"]))
        if len(inputs) != 1 or inputs[0]["dtype"] is not np.float32:
            raise TeacherError(f"{path} must take one tensor of float32 samples")
        self._input, self._shape = inputs[0]["index"], shape
        self.window = _window(path, shape, rate)
        self._read = _chosen(path, self._readable(), tensors)
        self.lengths = tuple(each.length for each in self._read)
        self.rate = rate
        self.identity = _identity(data, rate, [str(each.tensor) for each in self._read])
        self.name = path.stem
        try:
            self.embed(np.zeros((1, self.window), dtype=np.float32))
        except (ValueError, RuntimeError) as error:
            raise TeacherError(f"LiteRT cannot run {path}: {error}") from error

    @override
    def embed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        rows = np.empty((len(samples), sum(self.lengths)), dtype=np.float32)
        for row, window in zip(rows, samples, strict=True):
            self._interpreter.set_tensor(self._input, window.reshape(self._shape))
            self._interpreter.invoke()
            said = [self._interpreter.get_tensor(each.tensor)[0] for each in self._read]
            np.concatenate(
                [
                    (values.max(axis=0) if each.map else values).reshape(-1)
                    for each, values in zip(self._read, said, strict=True)
                ],
                out=row,
            )
        return rows

    def _readable(self) -> dict[str, _Readable[int]]:
        """Return every tensor that can be learned, by index and name."""
        found = {}
        for tensor in self._interpreter.get_tensor_details():
            index, shape = tensor["index"], [int(size) for size in tensor["shape"]]
            readable = _Readable.of(index, shape[1:])
            single = shape[:1] == [1] and tensor["dtype"] is np.float32
            if readable and single and index != self._input:
                found[f"{index} {tensor['name']}"] = readable
        return found


class KerasTeacher(TeacherEncoder):
    """A Keras model from which any layer's output can be read."""

    def __init__(self, path: Path, data: bytes, rate: int, tensors: Sequence[str]) -> None:
        import keras

        try:
            model = keras.models.load_model(path, compile=False, safe_mode=True)
        except (ValueError, OSError, TypeError, KeyError) as error:
            raise TeacherError(f"{path} is not a model that Keras opens: {error}") from error
        if len(model.inputs) != 1 or len(model.input_shape) != 2:
            raise TeacherError(f"{path} must take one tensor (batch, samples)")
        self.window = _window(path, model.input_shape, rate)
        layers = {
            f"{place} {layer.name}": readable
            for place, layer in enumerate(model.layers[1:], start=1)
            if (readable := _Readable.of(layer, layer.output.shape[1:]))
        }
        read = _chosen(path, layers, tensors)
        outputs = [
            keras.ops.reshape(
                keras.ops.max(each.tensor.output, axis=1) if each.map else each.tensor.output,
                (-1, each.length),
            )
            for each in read
        ]
        self._model = keras.Model(model.inputs[0], keras.ops.concatenate(outputs, axis=1))
        self.lengths = tuple(each.length for each in read)
        self.rate = rate
        self.identity = _identity(data, rate, [each.tensor.name for each in read])
        self.name = path.stem

    @override
    def embed(self, samples: NDArray[np.float32]) -> NDArray[np.float32]:
        from earshot_models.batches import in_batches

        return in_batches(lambda rows: self._model(rows, training=False), samples)


def _window(path: Path, shape: tuple[int | None, ...], rate: int) -> int:
    """Return the samples of a window, from the shape of a model's input."""
    samples = [size for size in shape if size not in (1, None)]
    if len(samples) != 1 or not rate // 2 <= (samples[0] or 0) <= rate:
        raise TeacherError(
            f"{path} takes a tensor of shape {shape}: a teacher takes one window of samples, half "
            f"a second to a second, which at its {rate} samples per second are {rate // 2} to "
            f"{rate} samples"
        )
    return int(samples[0] or 0)


def _chosen(
    path: Path, tensors: Mapping[str, _Readable[_Tensor]], wanted: Sequence[str]
) -> list[_Readable[_Tensor]]:
    """Return the wanted tensors, by index or name; the embedding if none is named."""
    listed = {name: each for name, each in tensors.items() if each.length >= _LEAST_DIMENSIONS}
    if wanted:
        return [_named(path, listed, name) for name in wanted]
    found = [
        each
        for name, each in listed.items()
        if not each.map and any(part in name for part in _EMBEDDING)
    ]
    if len(found) != 1:
        raise TeacherError(
            f"{path}: name the tensor that holds its embedding, {_LEAST_DIMENSIONS} numbers or "
            f"more; {_last(listed)}"
        )
    return found


def _named(path: Path, listed: Mapping[str, _Readable[_Tensor]], wanted: str) -> _Readable[_Tensor]:
    found = [each for name, each in listed.items() if wanted in name.split(" ", 1)]
    if len(found) != 1:
        raise TeacherError(
            f"{path} has no embedding {wanted!r} of {_LEAST_DIMENSIONS} numbers or more; "
            f"{_last(listed)}"
        )
    return found[0]


def _last(listed: Mapping[str, _Readable[_Tensor]]) -> str:
    names = [f"{name} ({each.length})" for name, each in listed.items()]
    return f"the last ones are {', '.join(names[-_MOST_LISTED:]) or 'none'}"


def _identity(data: bytes, rate: int, tensors: Sequence[str]) -> str:
    read = f"{rate} {' '.join(tensors)}".encode()
    return hashlib.sha256(hashlib.sha256(data).digest() + read).hexdigest()
