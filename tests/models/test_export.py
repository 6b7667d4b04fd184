"""From a network to the file that phones run, and back through the phone's own code."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import keras
import numpy as np
import pytest
from ai_edge_litert.interpreter import Interpreter

from earshot_client.encoder import encoder_path
from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_models import export, training
from earshot_models.batches import in_batches
from earshot_models.components import Components, public_components
from earshot_models.front_end import LogMel
from earshot_models.network import MOST_PARAMETERS, build
from earshot_models.patches import Patches, learn
from earshot_models.recipe import TAUGHT
from earshot_models.soundscapes import SCENES, synthesize
from earshot_models.texture import Texture
from earshot_protocol import encoder_file

ATOMS = 16
SIZE = 615
"""Statistics of texture."""
FEATURES = 128 + SIZE + 2 * ATOMS
NAME, CREDITS = "test-1", "Recorded by nobody – ©"


def sound(each: int, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return np.concatenate([synthesize(scene, each, generator) for scene in SCENES])


@pytest.fixture(scope="module")
def network() -> keras.Model:
    """As after training: its normalizations have seen sound, its bias is not zero."""
    keras.utils.set_random_seed(5)
    made = build(width=0.25)
    spectra = LogMel(mask=0.0, seed=0)(sound(10))
    for _ in range(20):
        made(spectra, training=True)
    last = made.get_layer("embedding")
    kernel, bias = last.get_weights()
    last.set_weights([kernel, np.random.default_rng(6).normal(0, 0.1, bias.shape)])
    return made


@pytest.fixture(scope="module")
def whole(network: keras.Model) -> keras.Model:
    """Everything before the last layer."""
    public = in_batches(LogMel(mask=0.0, seed=0), sound(30))
    others = [(Texture(), 1.0), (Patches(learn(public, ATOMS, seed=0)), 1.0)]
    return export.averaged(export.beside(network, others, public))


@pytest.fixture(scope="module")
def components(whole: keras.Model) -> Components:
    heard = training.embed(LogMel(mask=0.0, seed=0), whole, sound(30))
    return public_components(heard, 0.25)


@pytest.fixture(scope="module")
def written(
    whole: keras.Model, components: Components, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[bool], Path]:
    """The file with 8-bit weights or without, exported by whoever asks for it first."""
    folder = tmp_path_factory.mktemp("encoders")
    ready = export.turned(whole, components.turn)

    @cache
    def write(int8: bool) -> Path:
        path = folder / f"{int8}.tflite"
        flatbuffer = export.to_lite_rt(ready, [int8])[int8]
        export.write_encoder(path, flatbuffer, NAME, components, int8, {"steps": 20}, CREDITS)
        return path

    return write


@pytest.mark.slow
@pytest.mark.parametrize(("int8", "least"), [(False, 1 - 1e-6), (True, 0.999)])
def test_a_phone_embeds_as_the_training_does(
    written: Callable[[bool], Path],
    whole: keras.Model,
    components: Components,
    int8: bool,
    least: float,
) -> None:
    heard = sound(7, seed=3)
    trained = training.embed(LogMel(mask=0.0, seed=0), whole, heard)
    expected = components.turned(trained)
    phone = LiteRtEncoder.open(written(int8))
    embedded = phone.embed(heard)
    assert (embedded * expected).sum(axis=1).min() >= least
    if not int8:
        assert np.abs(embedded - expected).max() <= 1e-4
    # One at a time or many, in any order: a second's embedding is its own.
    alone = np.concatenate([phone.embed(second[np.newaxis]) for second in heard[::9]])
    np.testing.assert_allclose(alone, embedded[::9], atol=0.02 if int8 else 1e-5)
    whitened = components.projected(trained, 16)
    assert (phone.project(embedded, 16) * whitened).sum(axis=1).min() >= least - 0.02 * int8


def test_the_average_is_over_a_band_higher_and_lower(network: keras.Model) -> None:
    spectra = np.random.default_rng(2).normal(-6, 3, (4, 61, 64, 1)).astype(np.float32)
    edges = np.concatenate([spectra[:, :, :1], spectra, spectra[:, :, -1:]], axis=2)
    views = [keras.ops.convert_to_numpy(network(edges[:, :, at : at + 64])) for at in (0, 1, 2)]
    averaged = keras.ops.convert_to_numpy(export.averaged(network)(spectra))
    np.testing.assert_allclose(averaged, np.mean(views, axis=0), atol=1e-5)


@pytest.mark.slow
def test_each_part_has_its_weight(network: keras.Model) -> None:
    heard = sound(30)
    front_end = LogMel(mask=0.0, seed=0)
    spectra = in_batches(front_end, heard)
    others = [(Texture(), 0.3), (Patches(learn(spectra, ATOMS, seed=0)), 2.0)]
    rows = keras.ops.convert_to_numpy(export.beside(network, others, spectra)(spectra))
    assert rows.shape == (300, FEATURES)
    parts = np.split(rows, [128, 128 + SIZE], axis=1)
    for part, weight in zip(parts, (1, 0.3, 2), strict=True):
        np.testing.assert_allclose(np.linalg.norm(part, axis=1), weight, atol=1e-5)
    learned = training.embed(front_end, network, heard)
    np.testing.assert_allclose(parts[0], learned, atol=1e-5)
    # Over public sound every statistic has mean 0 and deviation 1, before the length is taken.
    found = keras.ops.convert_to_numpy(Texture()(spectra)).astype(float)
    found = (found - found.mean(axis=0)) / found.std(axis=0)
    expected = found / np.linalg.norm(found, axis=1, keepdims=True)
    np.testing.assert_allclose(parts[1], 0.3 * expected, atol=1e-4)


def test_places_are_a_part_of_their_own() -> None:
    spectra = np.random.default_rng(2).normal(-6, 3, (5, 61, 64, 1)).astype(np.float32)
    network = build(width=0.25, parts=3)
    said = keras.ops.convert_to_numpy(network(spectra))
    rows = keras.ops.convert_to_numpy(export.beside(network, [], spectra, 1.4)(spectra))
    taught = said[:, :256] / np.linalg.norm(said[:, :256], axis=1, keepdims=True)
    np.testing.assert_allclose(rows, np.hstack([taught, 1.4 * said[:, 256:]]), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "most"), [(2, 1_000_000), (4, 2_000_000), (6, 4_000_000)])
def test_a_phone_carries_1_or_2_or_4_million_numbers_at_most(width: float, most: int) -> None:
    public = in_batches(LogMel(mask=0.0, seed=0), sound(30))
    atoms = learn(public, TAUGHT.atoms, seed=0)
    network = build(width, parts=3)
    parts = export.beside(network, [(Patches(atoms), 1.0)], public, TAUGHT.places)
    largest = export.averaged(parts)
    ready = export.turned(largest, np.eye(largest.output_shape[1])[:, :128])
    constants = 2 * (SIZE + 2 * atoms.directions.shape[1]) + 2 * 30 * 61
    constants += atoms.whitening.size + atoms.directions.size + atoms.mean.size
    assert network.count_params() <= MOST_PARAMETERS
    assert ready.count_params() + constants <= most


@pytest.mark.slow
@pytest.mark.parametrize("int8", [False, True])
def test_a_file_holds_what_was_written(written: Callable[[bool], Path], int8: bool) -> None:
    path = written(int8)
    found = encoder_file.read(path.read_bytes())
    assert (found.card.name, found.credits) == (NAME, CREDITS)
    assert found.card.quantization == ("int8" if int8 else "float32")
    assert found.card.trained == {"steps": 20}
    assert path.read_bytes().startswith(found.model)
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        assert archive.testzip() is None


@pytest.mark.slow
@pytest.mark.parametrize("int8", [False, True])
def test_a_model_says_that_it_takes_one_second(written: Callable[[bool], Path], int8: bool) -> None:
    """Browsers' runtimes refuse one that takes any number; phones give it many all the same."""
    network = Interpreter(model_content=encoder_file.read(written(int8).read_bytes()).model)
    (given,), (said,) = network.get_input_details(), network.get_output_details()
    assert given["shape_signature"].tolist() == [1, 61, 64, 1]
    assert said["shape_signature"].tolist() == [1, 128]


@pytest.mark.slow
def test_weights_of_8_bits_make_a_smaller_file(written: Callable[[bool], Path]) -> None:
    assert written(True).stat().st_size < written(False).stat().st_size


def test_equal_input_makes_equal_files(tmp_path: Path) -> None:
    heard = np.random.default_rng(3).normal(size=(200, 160))
    components = public_components(heard / np.linalg.norm(heard, axis=1, keepdims=True), 0.25)
    model = encoder_file.read(encoder_path().read_bytes()).model
    for name in ("one.tflite", "other.tflite"):
        path = tmp_path / name
        export.write_encoder(path, model, NAME, components, False, {"steps": 20}, CREDITS)
    assert (tmp_path / "one.tflite").read_bytes() == path.read_bytes()
    assert len(list(tmp_path.iterdir())) == 2
