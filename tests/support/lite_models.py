"""Small TensorFlow Lite models, written by the published schema's own code, sound or hostile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import flatbuffers  # type: ignore[import-untyped]
import numpy as np
from ai_edge_litert import schema_py_generated as schema
from numpy.typing import NDArray

Operation = tuple[str, Mapping[str, Any]]
"""Name in the schema, and options by name."""

_TYPES = {
    np.dtype(np.float32): schema.TensorType.FLOAT32,
    np.dtype(np.int32): schema.TensorType.INT32,
    np.dtype(np.int8): schema.TensorType.INT8,
    np.dtype(np.float16): schema.TensorType.FLOAT16,
}
_OPTIONS = {
    "ADD": "Add",
    "SUB": "Sub",
    "MUL": "Mul",
    "DIV": "Div",
    "CONCATENATION": "Concatenation",
    "CONV_2D": "Conv2D",
    "DEPTHWISE_CONV_2D": "DepthwiseConv2D",
    "FULLY_CONNECTED": "FullyConnected",
    "RESHAPE": "Reshape",
    "GATHER": "Gather",
    "TRANSPOSE": "Transpose",
    "MEAN": "Reducer",
    "SUM": "Reducer",
    "REDUCE_MAX": "Reducer",
    "REDUCE_PROD": "Reducer",
    "STRIDED_SLICE": "StridedSlice",
    "PACK": "Pack",
    "SHAPE": "Shape",
    "BATCH_MATMUL": "BatchMatMul",
    "MAXIMUM": "MaximumMinimum",
    "MINIMUM": "MaximumMinimum",
    "SQUARED_DIFFERENCE": "SquaredDifference",
    "SQUARE": "Square",
    "ABS": "Abs",
}
"""Names of options in the schema, for those operations that have some."""


class LiteModel:
    """A model of one input that grows by constants and steps."""

    def __init__(self, shape: Sequence[int]) -> None:
        self.model = schema.ModelT()
        self.model.version = 3
        self.model.buffers = [schema.BufferT()]
        self.model.operatorCodes = []
        self.graph = schema.SubGraphT()
        self.graph.tensors = []
        self.graph.operators = []
        self.model.subgraphs = [self.graph]
        self.graph.inputs = [self.tensor(shape)]

    def tensor(self, shape: Sequence[int], kind: int = schema.TensorType.FLOAT32) -> int:
        """Add a tensor without content, and return its number."""
        made = schema.TensorT()
        made.shape, made.type, made.buffer = list(shape), kind, 0
        self.graph.tensors.append(made)
        return len(self.graph.tensors) - 1

    def constant(
        self,
        numbers: NDArray[Any],
        scales: NDArray[np.float32] | None = None,
        along: int = 0,
        zero: int = 0,
    ) -> int:
        """Add a constant and return its number; `scales` of 8-bit integers are along an axis."""
        place = self.tensor(numbers.shape, _TYPES[numbers.dtype])
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(np.ascontiguousarray(numbers).tobytes(), np.uint8)
        self.model.buffers.append(buffer)
        self.graph.tensors[place].buffer = len(self.model.buffers) - 1
        if scales is not None:
            scaling = schema.QuantizationParametersT()
            scaling.scale = scales.astype(np.float32)
            scaling.zeroPoint = np.full(len(scales), zero, np.int64)
            scaling.quantizedDimension = along
            self.graph.tensors[place].quantization = scaling
        return place

    def step(
        self,
        name: str,
        inputs: Sequence[int],
        shape: Sequence[int] = (),
        kind: int = schema.TensorType.FLOAT32,
        **options: Any,
    ) -> int:
        """Add a step with an output of a shape, and return the output's number."""
        code = schema.OperatorCodeT()
        number = getattr(schema.BuiltinOperator, name)
        code.builtinCode, code.deprecatedBuiltinCode = number, min(number, 127)
        code.version = 1
        self.model.operatorCodes.append(code)
        made = schema.OperatorT()
        made.opcodeIndex = len(self.model.operatorCodes) - 1
        made.inputs, made.outputs = list(inputs), [self.tensor(shape, kind)]
        if name in _OPTIONS:
            kind_of = f"{_OPTIONS[name]}Options"
            made.builtinOptionsType = getattr(schema.BuiltinOptions, kind_of)
            made.builtinOptions = getattr(schema, f"{kind_of}T")()
            for option, value in options.items():
                setattr(made.builtinOptions, option, value)
        self.graph.operators.append(made)
        return int(made.outputs[0])

    def packed(self, output: int) -> bytes:
        """Return the file of the model that gives a tensor."""
        self.graph.outputs = [output]
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())
