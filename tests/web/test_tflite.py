"""The TensorFlow Lite reader in TypeScript: step by step as LiteRT, and bad models by name."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from ai_edge_litert import schema_py_generated as schema
from ai_edge_litert.interpreter import Interpreter
from numpy.typing import NDArray
from support.lite_models import LiteModel
from support.node import TESTS, node

from earshot_client.encoder import encoder_path
from earshot_protocol import encoder_file
from earshot_protocol.shipped_encoders import SHIPPED_ENCODERS

RELU = schema.ActivationFunctionType.RELU
SAME, VALID = schema.Padding.SAME, schema.Padding.VALID
WHOLE = schema.TensorType.INT32
MOST_MEGABYTES = 700
"""Memory that no model may make Node take, whose own is some 60 MB."""

Built = tuple[LiteModel, int]
Floats = NDArray[np.float32]


def node_runs(requests: list[tuple[bytes, Floats]]) -> list[dict[str, Any]]:
    """Return what Node says of models and inputs; they stay within memory and time."""
    given = b"".join(
        np.uint32(len(model)).tobytes()
        + model
        + np.uint32(numbers.size).tobytes()
        + numbers.tobytes()
        for model, numbers in requests
    )
    run = subprocess.run(  # noqa: S603 - Node of the wheel
        [node(), TESTS / "network_oracle.ts"],
        input=given,
        capture_output=True,
        check=True,
        timeout=240,
    )
    *answers, memory = run.stdout.decode().splitlines()
    assert float(memory) < MOST_MEGABYTES
    assert len(answers) == len(requests)
    return [json.loads(answer) for answer in answers]


def lite_rt(model: bytes, numbers: Floats) -> NDArray[Any]:
    interpreter = Interpreter(model_content=model)
    interpreter.allocate_tensors()
    (given,), (said,) = interpreter.get_input_details(), interpreter.get_output_details()
    interpreter.set_tensor(given["index"], numbers)
    interpreter.invoke()
    return np.asarray(interpreter.get_tensor(said["index"]))


def random(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(np.float32)


def whole(*numbers: int) -> NDArray[np.int32]:
    return np.array(numbers, dtype=np.int32)


def pair(
    name: str, left: tuple[int, ...], right: Floats, out: tuple[int, ...], **more: Any
) -> Built:
    model = LiteModel(left)
    return model, model.step(name, [0, model.constant(right)], out, **more)


def swapped(name: str, left: Floats, right: tuple[int, ...], out: tuple[int, ...]) -> Built:
    model = LiteModel(right)
    return model, model.step(name, [model.constant(left), 0], out)


def single(name: str) -> Built:
    """The operation of one number each, behind one that makes them positive."""
    model = LiteModel((2, 5))
    squares = model.step("SQUARE", [0], (2, 5))
    return model, model.step(name, [squares], (2, 5))


def reduced(name: str, axes: NDArray[np.int32], out: tuple[int, ...], *, keep: bool) -> Built:
    model = LiteModel((2, 3, 4, 5))
    return model, model.step(name, [0, model.constant(axes)], out, keepDims=keep)


def convolved(
    image: tuple[int, ...],
    filters: Floats,
    out: tuple[int, ...],
    strides: tuple[int, int],
    **more: Any,
) -> Built:
    model = LiteModel(image)
    depthwise = more.pop("depthwise", False)
    offsets = model.constant(random(filters.shape[3 if depthwise else 0], seed=2))
    name = "DEPTHWISE_CONV_2D" if depthwise else "CONV_2D"
    options = {"dilationHFactor": 1, "dilationWFactor": 1, **more}
    if depthwise:
        options["depthMultiplier"] = 1
    step = model.step(
        name,
        [0, model.constant(filters), offsets],
        out,
        strideH=strides[0],
        strideW=strides[1],
        **options,
    )
    return model, step


def connected(*, offsets: bool, keep: bool, inner: tuple[int, ...] = (2, 3, 6)) -> Built:
    model = LiteModel(inner)
    inputs = [0, model.constant(random(7, inner[-1], seed=1))]
    inputs.append(model.constant(random(7, seed=2)) if offsets else -1)
    out = (*inner[:-1], 7) if keep else (inner[0] * inner[1], 7)
    step = model.step(
        "FULLY_CONNECTED", inputs, out, keepNumDims=keep, fusedActivationFunction=RELU
    )
    return model, step


def sliced(
    begin: NDArray[np.int32], end: NDArray[np.int32], out: tuple[int, ...], **masks: int
) -> Built:
    model = LiteModel((4, 5, 6))
    given = [0, *map(model.constant, (begin, end, whole(1, 1, 1)))]
    return model, model.step("STRIDED_SLICE", given, out, **masks)


def joined(axis: int, out: tuple[int, ...]) -> Built:
    model = LiteModel((2, 3, 4))
    shape = [2, 3, 4]
    shape[axis] = 2
    inputs = [0, model.constant(random(*shape)), 0]
    return model, model.step("CONCATENATION", inputs, out, axis=axis)


def gathered(axis: int, places: NDArray[np.int32], out: tuple[int, ...]) -> Built:
    model = LiteModel((3, 4, 5))
    return model, model.step("GATHER", [0, model.constant(places)], out, axis=axis)


def turned(order: NDArray[np.int32], out: tuple[int, ...]) -> Built:
    model = LiteModel((2, 3, 4))
    return model, model.step("TRANSPOSE", [0, model.constant(order)], out)


def multiplied(*, left: bool, right: bool) -> Built:
    shape = (2, 5, 3) if left else (2, 3, 5)
    other = (2, 6, 5) if right else (2, 5, 6)
    model = LiteModel(shape)
    inputs = [0, model.constant(random(*other, seed=1))]
    return model, model.step("BATCH_MATMUL", inputs, (2, 3, 6), adjX=left, adjY=right)


def shaped() -> Built:
    """A shape that is computed: its sizes gathered, multiplied and packed, as Keras does it."""
    model = LiteModel((3, 4, 5))
    shape = model.step("SHAPE", [0], (3,), WHOLE, outType=WHOLE)
    two = model.step("GATHER", [shape, model.constant(whole(0, 1))], (2,), WHOLE)
    rows = model.step("REDUCE_PROD", [two, model.constant(whole(0))], (), WHOLE)
    cut = [shape, *(model.constant(whole(each)) for each in (2, 3, 1))]
    columns = model.step("STRIDED_SLICE", cut, (), WHOLE, shrinkAxisMask=1)
    packed = model.step("PACK", [rows, columns], (2,), WHOLE, valuesCount=2)
    return model, model.step("RESHAPE", [0, packed], (12, 5))


def reshaped() -> Built:
    model = LiteModel((3, 4, 5))
    return model, model.step("RESHAPE", [0, model.constant(whole(2, -1, 3))], (2, 10, 3))


CASES: dict[str, Callable[[], Built]] = {
    "add a row": lambda: pair("ADD", (2, 3, 4), random(4, seed=1), (2, 3, 4)),
    "add, rectified": lambda: pair(
        "ADD", (2, 3), random(2, 3, seed=1), (2, 3), fusedActivationFunction=RELU
    ),
    "subtract columns": lambda: pair("SUB", (2, 3, 4), random(2, 1, 4, seed=1), (2, 3, 4)),
    "subtract from more": lambda: swapped("SUB", random(2, 3, 4, seed=1), (3, 1), (2, 3, 4)),
    "multiply both ways": lambda: pair("MUL", (2, 1, 4), random(3, 1, seed=1), (2, 3, 4)),
    "divide by a number": lambda: pair("DIV", (2, 3), np.full((), 3, np.float32), (2, 3)),
    "maximum": lambda: pair("MAXIMUM", (2, 3), random(2, 1, seed=1), (2, 3)),
    "minimum": lambda: pair("MINIMUM", (2, 3), random(3, seed=1), (2, 3)),
    "squared difference": lambda: pair("SQUARED_DIFFERENCE", (2, 3), random(3, seed=1), (2, 3)),
    **{name: partial(single, name) for name in ("SQUARE", "SQRT", "RSQRT", "LOG", "ABS")},
    "mean": lambda: reduced("MEAN", whole(1, 3), (2, 4), keep=False),
    "mean, kept": lambda: reduced("MEAN", whole(1, 2, 3), (2, 1, 1, 1), keep=True),
    "sum from behind": lambda: reduced("SUM", whole(-1), (2, 3, 4), keep=False),
    "largest": lambda: reduced("REDUCE_MAX", whole(1), (2, 4, 5), keep=False),
    "product": lambda: reduced("REDUCE_PROD", whole(0, 2), (3, 5), keep=False),
    "convolution, same": lambda: convolved(
        (2, 7, 6, 3), random(5, 3, 2, 3, seed=1), (2, 4, 6, 5), (2, 1), padding=SAME
    ),
    "convolution, valid": lambda: convolved(
        (2, 7, 6, 3), random(5, 3, 2, 3, seed=1), (2, 5, 3, 5), (1, 2), padding=VALID
    ),
    "convolution, rectified": lambda: convolved(
        (1, 5, 5, 2), random(6, 1, 1, 2), (1, 5, 5, 6), (1, 1), fusedActivationFunction=RELU
    ),
    "convolution, sparse": lambda: convolved(
        (1, 5, 4, 2), random(6, 1, 1, 2), (1, 3, 2, 6), (2, 2), padding=SAME
    ),
    "convolution, wider than its image": lambda: convolved(
        (1, 2, 3, 1), random(2, 5, 7, 1), (1, 2, 3, 2), (1, 1), padding=SAME
    ),
    "by channel, same": lambda: convolved(
        (2, 7, 6, 3), random(1, 3, 3, 3), (2, 4, 3, 3), (2, 2), padding=SAME, depthwise=True
    ),
    "by channel, valid": lambda: convolved(
        (1, 7, 6, 5),
        random(1, 3, 2, 5),
        (1, 5, 5, 5),
        (1, 1),
        padding=VALID,
        depthwise=True,
        fusedActivationFunction=RELU,
    ),
    "connected": lambda: connected(offsets=True, keep=False),
    "connected, kept": lambda: connected(offsets=True, keep=True),
    "connected, without offsets": lambda: connected(offsets=False, keep=False),
    "products, plain": lambda: multiplied(left=False, right=False),
    "products, left turned": lambda: multiplied(left=True, right=False),
    "products, both turned": lambda: multiplied(left=True, right=True),
    "cut": lambda: sliced(whole(1, -3, 2), whole(3, -1, 99), (2, 2, 4)),
    "cut, open ends": lambda: sliced(
        whole(2, 2, 2), whole(0, 4, 0), (2, 4, 4), beginMask=2, endMask=5
    ),
    "cut, an axis less": lambda: sliced(whole(1, 0, -2), whole(0, 5, 0), (5,), shrinkAxisMask=5),
    "join": lambda: joined(1, (2, 8, 4)),
    "join from behind": lambda: joined(-1, (2, 3, 10)),
    "gather rows": lambda: gathered(0, whole(2, 0, 2), (3, 4, 5)),
    "gather within": lambda: gathered(1, np.array([[3, 1]], np.int32), (3, 1, 2, 5)),
    "turn": lambda: turned(whole(2, 0, 1), (4, 2, 3)),
    "shape, computed": shaped,
    "shape, open": reshaped,
}


def test_every_step_is_that_of_lite_rt() -> None:
    models = {name: build() for name, build in CASES.items()}
    requests = [
        (model.packed(output), random(*model.graph.tensors[0].shape, seed=9))
        for model, output in models.values()
    ]
    for name, request, answer in zip(models, requests, node_runs(requests), strict=True):
        expected = lite_rt(*request)
        assert answer.get("shape") == list(expected.shape), (name, answer)
        np.testing.assert_allclose(
            np.reshape(answer["data"], expected.shape), expected, rtol=2e-5, atol=2e-6, err_msg=name
        )


def test_every_operation_of_shipped_encoders_is_among_them() -> None:
    covered = {
        code.builtinCode for build in CASES.values() for code in build()[0].model.operatorCodes
    }
    for name in SHIPPED_ENCODERS:
        model = schema.Model.GetRootAs(encoder_file.read(encoder_path(name).read_bytes()).model)
        codes = {model.OperatorCodes(i).BuiltinCode() for i in range(model.OperatorCodesLength())}
        assert codes <= covered


@pytest.mark.parametrize(("axis", "count"), [(0, 4), (1, 3), (0, 1)])
def test_weights_of_8_bits_are_scaled(axis: int, count: int) -> None:
    weights = np.random.default_rng(1).integers(-127, 128, (4, 3)).astype(np.int8)
    scales = np.linspace(0.01, 0.07, count).astype(np.float32)
    model = LiteModel((2, 3))
    inputs = [0, model.constant(weights, scales, axis), -1]
    numbers = random(2, 3)
    ((answer),) = node_runs(
        [(model.packed(model.step("FULLY_CONNECTED", inputs, (2, 4))), numbers)]
    )
    scaled = weights * (scales[:, None] if axis == 0 else scales)
    np.testing.assert_allclose(np.reshape(answer["data"], (2, 4)), numbers @ scaled.T, rtol=1e-5)


def unknown() -> Built:
    model = LiteModel((2, 3))
    return model, model.step("TANH", [0], (2, 3))


def half_precision() -> Built:
    model = LiteModel((2, 3))
    return model, model.step("ADD", [0, model.constant(np.ones(3, np.float16))], (2, 3))


def claims(shape: tuple[int, ...]) -> Callable[[], Built]:
    def build() -> Built:
        model, output = pair("ADD", (2, 3), random(3), (2, 3))
        model.graph.tensors[1].shape = list(shape)
        return model, output

    return build


def input_of(shape: tuple[int, ...]) -> Callable[[], Built]:
    def build() -> Built:
        model, output = pair("ADD", (2, 3), random(3), (2, 3))
        model.graph.tensors[0].shape = list(shape)
        return model, output

    return build


def one_constant_many_times() -> Built:
    model, output = pair("ADD", (2, 3), random(2**20), (2, 3))
    shared = model.graph.tensors[1]
    for _ in range(100):
        model.graph.tensors[model.tensor(shared.shape)].buffer = shared.buffer
    return model, output


def doubled() -> Built:
    model = LiteModel((2, 3))
    place = 0
    for _ in range(24):
        place = model.step("CONCATENATION", [place, place], (2, 3), axis=0)
    return model, place


def broadcast() -> Built:
    model = LiteModel((2, 3))
    place = model.constant(random(4096, 1))
    return model, model.step("MUL", [place, model.constant(random(1, 4096))], (2, 3))


def laborious(steps: int, size: int) -> Built:
    model = LiteModel((2, 3))
    square = model.constant(random(size, size))
    place = square
    for _ in range(steps):
        place = model.step("FULLY_CONNECTED", [place, square, -1], (size, size))
    return model, place


def filtered(filters: Floats, **options: Any) -> Callable[[], Built]:
    return lambda: convolved((1, 5, 5, 2), filters, (1, 5, 5, 1), (1, 1), padding=VALID, **options)


def with_zero() -> Built:
    model = LiteModel((2, 3))
    weights = model.constant(np.ones((4, 3), np.int8), np.ones(4, np.float32), zero=3)
    return model, model.step("FULLY_CONNECTED", [0, weights, -1], (2, 4))


def with_scales(count: int, along: int) -> Callable[[], Built]:
    def build() -> Built:
        model = LiteModel((2, 3))
        weights = model.constant(np.ones((4, 3), np.int8), np.ones(count, np.float32), along)
        return model, model.step("FULLY_CONNECTED", [0, weights, -1], (2, 4))

    return build


def takes(place: int) -> Callable[[], Built]:
    def build() -> Built:
        model, output = pair("ADD", (2, 3), random(3), (2, 3))
        model.graph.operators[0].inputs = [0, place]
        return model, output

    return build


def gives(places: list[int]) -> Callable[[], Built]:
    def build() -> Built:
        model, output = pair("ADD", (2, 3), random(3), (2, 3))
        model.graph.operators[0].outputs = places
        return model, output

    return build


def of_version(version: int) -> Callable[[], Built]:
    def build() -> Built:
        model, output = pair("ADD", (2, 3), random(3), (2, 3))
        model.model.version = version
        return model, output

    return build


def many_steps() -> Built:
    model = LiteModel((2, 3))
    place = 0
    for _ in range(4097):
        place = model.step("ABS", [place], (2, 3))
    return model, place


def reshaped_to(*numbers: int) -> Callable[[], Built]:
    def build() -> Built:
        model = LiteModel((2, 3))
        return model, model.step("RESHAPE", [0, model.constant(whole(*numbers))], (2, 3))

    return build


REFUSED: dict[str, tuple[Callable[[], Built], str]] = {
    "unknown operation": (unknown, "operation 28 of TensorFlow Lite, which this phone does not"),
    "unknown type": (half_precision, "numbers of type 1; this phone reads 0,2,9"),
    "unknown version": (of_version(4), "version 4 of its format"),
    "activation": (
        lambda: pair("ADD", (2, 3), random(3), (2, 3), fusedActivationFunction=3),
        "an activation that this phone does not know",
    ),
    "gaps": (filtered(random(1, 3, 3, 2), dilationHFactor=2), "a filter with gaps"),
    "no step": (
        lambda: convolved((1, 5, 5, 2), random(1, 3, 3, 2), (1, 3, 3, 1), (0, 1)),
        "moves a filter by nothing",
    ),
    "steps backwards": (
        lambda: convolved((1, 5, 5, 2), random(1, 3, 3, 2), (1, 3, 3, 1), (1, -1)),
        "moves a filter by nothing",
    ),
    "other depth": (filtered(random(1, 3, 3, 3)), "does not fit its image"),
    "larger than its image": (filtered(random(1, 6, 3, 2)), "array of shape [1,0,3,1]"),
    "a constant that claims more": (claims((1000,)), "has 12 bytes, not 4000"),
    "a constant that claims most": (claims((2**31 - 1, 2**31 - 1)), "over 4194304 constants"),
    "a constant that claims less": (claims((2,)), "has 12 bytes, not 8"),
    "a constant of no size": (claims((3, 0)), "array of shape [3,0]"),
    "a constant below nothing": (claims((-1, -3)), "array of shape [-1,-3]"),
    "a constant of many dimensions": (claims((3, *[1] * 8)), "list of 9 entries"),
    "an input that claims most": (input_of((2**31 - 1, 3)), "the model takes 6442450941 numbers"),
    "an open input": (input_of((-1, 3)), "array of shape [-1,3]"),
    "one constant many times": (one_constant_many_times, "over 4194304 constants"),
    "doubled again and again": (doubled, "make over 8388608 numbers"),
    "broadcast": (broadcast, "make over 8388608 numbers"),
    "a product too large": (lambda: laborious(1, 1000), "over 536870912 additions"),
    "products without end": (lambda: laborious(200, 160), "over 536870912 additions"),
    "an input from nowhere": (takes(99), "takes an array that does not exist"),
    "an input not made yet": (takes(2), "lacks an input"),
    "no output": (gives([]), "must have one output of a step"),
    "an output elsewhere": (gives([99]), "must have one output of a step"),
    "two outputs": (gives([2, 2]), "list of 2 entries"),
    "another output": (gives([0]), "does not make its output"),
    "a shifted zero": (with_zero, "whose zero point is not 0"),
    "too few scales": (with_scales(3, 0), "has 3 scales"),
    "scales along nothing": (with_scales(4, 7), "has 4 scales"),
    "too many steps": (many_steps, "list of 4098 entries"),
    "shapes that do not fit": (
        lambda: pair("ADD", (2, 3), random(4), (2, 3)),
        "adds arrays of shapes that do not fit",
    ),
    "a shape of other size": (reshaped_to(7), "a shape that does not fit"),
    "a shape with two gaps": (reshaped_to(-1, -1), "array of shape [-1]"),
    "a shape of half a row": (reshaped_to(4, -1), "array of shape [4,1.5]"),
    "a shape of too many": (reshaped_to(2, 3, *[1] * 7), "shape of too many dimensions"),
    "a gather of what is not there": (
        lambda: gathered(0, whole(3), (1, 4, 5)),
        "gathers an index out of range",
    ),
    "a gather before the first": (lambda: gathered(0, whole(-1), (1, 4, 5)), "gathers an index"),
    "an axis too far": (lambda: gathered(3, whole(0), (1,)), "an axis out of range"),
    "an empty cut": (lambda: sliced(whole(3, 0, 0), whole(3, 5, 6), (0,)), "cuts nothing"),
    "a cut behind the end": (
        lambda: sliced(whole(4, 0, 0), whole(9, 5, 6), (1,), shrinkAxisMask=1),
        "cuts nothing",
    ),
    "a turn that repeats": (lambda: turned(whole(0, 0, 1), (2, 2, 3)), "an order that does not"),
}

CLAIMS_OF_INPUTS = {"an input that claims most", "an open input"}
"""Those that cannot be given what they claim to take."""


def test_bad_models_are_refused_by_what_is_wrong() -> None:
    requests = []
    for name, (build, _) in REFUSED.items():
        model, output = build()
        shape = (2, 3) if name in CLAIMS_OF_INPUTS else model.graph.tensors[0].shape
        requests.append((model.packed(output), random(*shape)))
    for (name, (_, message)), answer in zip(REFUSED.items(), node_runs(requests), strict=True):
        assert answer.get("error") in {"DamagedEncoderError", "InvalidInputError"}, (name, answer)
        assert message in answer["message"], (name, answer)


def test_a_model_that_is_cut_short_is_refused() -> None:
    model, output = shaped()
    whole_file = model.packed(output)
    numbers = random(3, 4, 5)
    cuts = [whole_file[:length] for length in range(0, len(whole_file), 3)]
    answers = node_runs([*((cut, numbers) for cut in cuts), (whole_file, numbers)])
    assert {answer.get("error") for answer in answers[:-1]} == {"DamagedEncoderError"}
    assert answers[-1]["shape"] == [12, 5]


def test_a_model_with_any_byte_changed_is_run_or_refused() -> None:
    """Nothing but our own errors comes out, within memory and time, whatever the byte."""
    generator = np.random.default_rng(4)
    requests = []
    for build in (shaped, CASES["convolution, same"], CASES["cut"], CASES["by channel, same"]):
        model, output = build()
        file = model.packed(output)
        numbers = random(*model.graph.tensors[0].shape)
        for place in range(len(file)):
            changed = bytearray(file)
            changed[place] = generator.choice([0, 1, 127, 128, 255, changed[place] ^ 1])
            requests.append((bytes(changed), numbers))
    answers = node_runs(requests)
    named = {"DamagedEncoderError", "InvalidInputError", None}
    assert {answer.get("error") for answer in answers} == named, next(
        answer for answer in answers if answer.get("error") not in named
    )
