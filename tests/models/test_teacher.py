"""Files that hold a teacher: what is read of them, and what is refused."""

from __future__ import annotations

from pathlib import Path

import keras
import numpy as np
import pytest
from support.teachers import DIMENSIONS, MAP, RATE, WINDOW, keras_file, lite_rt_file, model, saved

from earshot_models.distillation.teacher import TeacherError, open_teacher
from earshot_protocol.errors import InvalidParametersError


@pytest.fixture(scope="module")
def made() -> keras.Model:
    return model()


@pytest.fixture(scope="module")
def files(made: keras.Model, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("teachers")
    return {"keras": saved(made, folder / "teacher.keras"), "lite_rt": lite_rt_file(folder, made)}


@pytest.mark.parametrize("kind", ["keras", "lite_rt"])
def test_a_teacher_says_what_its_embedding_layer_says(
    kind: str, files: dict[str, Path], made: keras.Model
) -> None:
    # LiteRT's tensors are named by what computes them: this one by the layer's activation.
    tensor = None if kind == "keras" else _named(files[kind], "embedding")
    teacher = open_teacher(files[kind], tensors=[tensor] if tensor else ())
    assert (teacher.rate, teacher.window, teacher.lengths) == (RATE, WINDOW, (DIMENSIONS,))
    assert teacher.name == "teacher"
    samples = np.random.default_rng(0).normal(0, 0.1, (5, WINDOW)).astype(np.float32)
    inside = keras.Model(made.inputs[0], made.get_layer("embedding").output)
    expected = keras.ops.convert_to_numpy(inside(samples))
    said = teacher.embed(samples)
    assert said.dtype == np.float32
    np.testing.assert_allclose(said, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", ["keras", "lite_rt"])
def test_of_a_map_the_largest_over_time_is_read(
    kind: str, files: dict[str, Path], made: keras.Model
) -> None:
    tensors = ["deeper", "embedding"]
    if kind == "lite_rt":
        tensors = [_named(files[kind], "deeper", MAP), _named(files[kind], "embedding")]
    teacher = open_teacher(files[kind], tensors=tensors)
    assert teacher.lengths == (MAP[1] * MAP[2], DIMENSIONS)
    samples = np.random.default_rng(0).normal(0, 0.1, (4, WINDOW)).astype(np.float32)
    inside = [made.get_layer(name).output for name in ("deeper", "embedding")]
    maps, embeddings = map(keras.ops.convert_to_numpy, keras.Model(made.inputs[0], inside)(samples))
    said = teacher.embed(samples)
    # A textbook's loops: what was heard at which pitch, whenever it was.
    for window in range(4):
        for pitch in range(MAP[1]):
            for channel in range(0, MAP[2], 7):
                largest = max(maps[window, time, pitch, channel] for time in range(MAP[0]))
                found = said[window, pitch * MAP[2] + channel]
                assert found == pytest.approx(largest, rel=1e-3, abs=1e-3)
    np.testing.assert_allclose(said[:, MAP[1] * MAP[2] :], embeddings, rtol=1e-3, atol=1e-3)
    other = open_teacher(files[kind], tensors=tensors[::-1])
    assert other.identity != teacher.identity


def _named(path: Path, part: str, shape: tuple[int, ...] = (DIMENSIONS,)) -> str:
    """The index of the last tensor of that name and shape."""
    from ai_edge_litert.interpreter import Interpreter

    details = Interpreter(str(path)).get_tensor_details()
    found = [
        each["index"]
        for each in details
        if part in each["name"] and tuple(each["shape"]) == (1, *shape)
    ]
    return str(found[-1])


def test_two_teachers_have_two_identities(files: dict[str, Path], tmp_path: Path) -> None:
    own = open_teacher(files["keras"])
    identities = {
        own.identity,
        open_teacher(files["keras"], rate=WINDOW).identity,
        open_teacher(keras_file(tmp_path, dimensions=150)).identity,
        open_teacher(files["lite_rt"], tensors=[_named(files["lite_rt"], "embedding")]).identity,
    }
    assert len(identities) == 4
    assert open_teacher(files["keras"]).identity == own.identity


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("teacher.onnx", b"", r"a LiteRT file \(\.tflite\) or a Keras file \(\.keras\), not teach"),
        ("teacher.tflite", None, "cannot be read: No such file"),
        ("teacher.tflite", b"no model", "is not a model that LiteRT runs"),
        ("teacher.keras", b"no model", "is not a model that Keras opens"),
    ],
)
def test_a_file_that_is_no_teacher(
    name: str, content: bytes | None, problem: str, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(TeacherError, match=problem):
        open_teacher(tmp_path / name)


@pytest.mark.parametrize("kind", ["keras", "lite_rt"])
def test_a_rate_that_the_window_does_not_fit(kind: str, files: dict[str, Path]) -> None:
    with pytest.raises(TeacherError, match="at its 44100 samples per second are 22050 to 44100"):
        open_teacher(files[kind], rate=44_100)
    with pytest.raises(TeacherError, match="half a second to a second"):
        open_teacher(files[kind], rate=8000)
    with pytest.raises(InvalidParametersError, match="the teacher's rate=4000"):
        open_teacher(files[kind], rate=4000)


def test_a_tensor_that_is_not_there_or_too_short(files: dict[str, Path], tmp_path: Path) -> None:
    for kind, wanted in (("keras", "scores"), ("keras", "nobody"), ("lite_rt", "99999")):
        with pytest.raises(TeacherError, match=f"no embedding '{wanted}' of 128 numbers or more"):
            open_teacher(files[kind], tensors=[wanted])
    short = keras_file(tmp_path, dimensions=64)
    with pytest.raises(TeacherError, match=r"the last ones are .*deeper \(150\)$"):
        open_teacher(short)
    unnamed = keras_file(tmp_path, named="hidden")
    with pytest.raises(TeacherError, match=r"name the tensor .*hidden \(160\)"):
        open_teacher(unnamed)
    assert open_teacher(unnamed, tensors=["hidden"]).lengths == (DIMENSIONS,)


def test_a_model_of_another_shape(tmp_path: Path) -> None:
    two = keras.Model(
        pair := [keras.layers.Input((WINDOW,)), keras.layers.Input((WINDOW,))],
        keras.layers.Dense(128, name="embedding")(keras.layers.Add()(pair)),
    )
    with pytest.raises(TeacherError, match="must take one tensor"):
        open_teacher(saved(two, tmp_path / "two.keras"))
    spectra = layer = keras.layers.Input((96, 64))
    layer = keras.layers.Dense(128, name="embedding")(keras.layers.Flatten()(layer))
    with pytest.raises(TeacherError, match="must take one tensor"):
        open_teacher(saved(keras.Model(spectra, layer), tmp_path / "spectra.keras"))
