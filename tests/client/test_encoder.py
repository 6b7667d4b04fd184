"""The shipped encoder, and how an encoder file is run."""

from __future__ import annotations

import builtins
import os
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score
from support.lite_models import LiteModel
from support.recordings import RATE

from earshot_client.encoder import default_encoder, encoder_path, rate_of
from earshot_client.listener import Listener
from earshot_client.lite_rt_encoder import LiteRtEncoder, MissingRuntimeError, spectrum
from earshot_client.store.memory import MemoryStore
from earshot_models.soundscapes import SCENES, synthesize
from earshot_protocol import encoder_file
from earshot_protocol.encoder_file import DIMENSIONS, DamagedEncoderError
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.spectrum import WIDE
from earshot_server.commands.phase.starting import Options


def packaged() -> bytes:
    return encoder_path().read_bytes()


@cache
def scenes(seed: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    sound = np.concatenate([synthesize(scene, each, generator, RATE) for scene in SCENES])
    return default_encoder().embed(sound), np.repeat(np.arange(len(SCENES)), each)


def test_embeddings_are_unit_rows_of_128() -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, (70, RATE))
    embeddings = default_encoder().embed(noise)
    assert embeddings.shape == (70, DIMENSIONS)
    assert embeddings.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-5)
    # Rows do not depend on the rest of the batch, nor on what was embedded before.
    alone = np.concatenate([default_encoder().embed(second[None]) for second in noise])
    np.testing.assert_array_equal(alone, embeddings)
    assert default_encoder().embed(noise[:0]).shape == (0, DIMENSIONS)
    np.testing.assert_array_equal(default_encoder().embed(noise), embeddings)


def test_loudness_does_not_matter() -> None:
    sound = synthesize("birds", 4, np.random.default_rng(2), RATE)
    loud, soft = default_encoder().embed(sound), default_encoder().embed(0.01 * sound)
    assert (np.sum(loud * soft, axis=1) > 0.999).all()


@pytest.mark.parametrize("dimensions", [8, 16, 128])
def test_a_fresh_clip_lies_nearest_to_the_mean_of_its_scene(dimensions: int) -> None:
    embeddings, truth = scenes(seed=11, each=40)
    fresh, answers = scenes(seed=12, each=40)
    encoder = default_encoder()
    known, new = encoder.project(embeddings, dimensions), encoder.project(fresh, dimensions)
    means = np.stack([known[truth == scene].mean(axis=0) for scene in range(len(SCENES))])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    assert np.mean((new @ means.T).argmax(axis=1) == answers) >= 0.95


@pytest.mark.parametrize("dimensions", [8, 16])
def test_the_scenes_are_clusters_on_the_sphere(dimensions: int) -> None:
    embeddings, truth = scenes(seed=13, each=60)
    points = default_encoder().project(embeddings, dimensions)
    # Unit rows: Euclidean k-means differs from the spherical one by the means' lengths alone.
    found = KMeans(len(SCENES), n_init=5, random_state=0).fit_predict(points)
    assert adjusted_rand_score(truth, found) >= 0.88


def test_projection_centres_scales_and_keeps_the_leading_coordinates() -> None:
    embeddings, _ = scenes(seed=11, each=40)
    card = encoder_file.read(packaged()).card
    for dimensions in (1, 8, 128):
        projected = default_encoder().project(embeddings, dimensions)
        assert projected.dtype == np.float32
        expected = (embeddings - np.array(card.mean)) * np.array(card.scale)
        expected = expected[:, :dimensions]
        expected /= np.linalg.norm(expected, axis=1, keepdims=True)
        np.testing.assert_allclose(projected, expected, atol=1e-5)


@pytest.mark.parametrize("dimensions", [0, -1, 129])
def test_projection_refuses_other_dimensions(dimensions: int) -> None:
    with pytest.raises(InvalidInputError, match="1 to 128"):
        default_encoder().project(np.ones((1, 128), np.float32), dimensions)


def test_input_of_another_shape_is_refused() -> None:
    encoder = default_encoder()
    sound = np.ones((1, RATE), np.float32)
    sound[0, 5] = np.nan
    bad = [sound, sound[0], sound[:, 1:], np.ones((1, RATE), np.int16)]
    for samples in bad:
        with pytest.raises(InvalidInputError, match="samples must be"):
            encoder.embed(samples)
    with pytest.raises(InvalidInputError, match="batch, 128"):
        encoder.project(np.ones((3, 127), np.float32), 8)


def test_it_travels_to_another_process() -> None:
    encoder = default_encoder()
    copy = pickle.loads(pickle.dumps(encoder))  # noqa: S301 - our own
    noise = np.random.default_rng(3).normal(0, 0.1, (3, RATE))
    np.testing.assert_array_equal(copy.embed(noise), encoder.embed(noise))
    assert copy.name == encoder.name


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    path = tmp_path / "encoder.tflite"
    with pytest.raises(DamagedEncoderError, match=str(path)):
        LiteRtEncoder.open(path)
    path.write_bytes(packaged())
    assert LiteRtEncoder.open(path).name == default_encoder().name
    with path.open("r+b") as file:
        file.truncate(17 * 2**20)
    with pytest.raises(DamagedEncoderError, match="at most 16 MiB, this one has 17 MiB"):
        LiteRtEncoder.open(str(path))


def test_a_model_that_lite_rt_cannot_run_is_refused() -> None:
    numbers = [1.0] * DIMENSIONS
    data = encoder_file.pack(
        b"no model", name="x", int8=True, mean=numbers, scale=numbers, trained={}, credits_=""
    )
    with pytest.raises(DamagedEncoderError, match="cannot run"):
        LiteRtEncoder(data)


def test_a_model_of_other_sizes_is_refused() -> None:
    wide, flat = LiteModel((1, 61, 128, 1)), LiteModel((1, 61, 64, 1))
    weights = wide.constant(np.zeros((128, 7808), np.float32))
    row = wide.step("FULLY_CONNECTED", [0, weights, -1], (1, 128))
    same = flat.step("ABS", [0], (1, 61, 64, 1))
    numbers = [1.0] * DIMENSIONS
    for model, output, message in (
        (wide, row, r"must take \(1, 61, 64, 1\) numbers, not \(1, 61, 128, 1\)"),
        (flat, same, r"must give \(1, 128\) numbers, not \(1, 61, 64, 1\)"),
    ):
        data = encoder_file.pack(model.packed(output), "x", False, numbers, numbers, {}, "")
        with pytest.raises(DamagedEncoderError, match=message):
            LiteRtEncoder(data)


def test_an_encoder_hears_at_the_rate_that_its_card_says() -> None:
    first = encoder_path("contrast-1").read_bytes()
    file = encoder_file.read(first)
    card = file.card
    wide = LiteRtEncoder(
        encoder_file.pack(
            file.model,
            "wide",
            int8=True,
            mean=card.mean,
            scale=card.scale,
            trained={},
            credits_="",
            spectrum=WIDE,
        )
    )
    narrow = LiteRtEncoder(first)
    assert (rate_of(wide), rate_of(narrow)) == (16_000, 8000)
    sound = np.random.default_rng(0).normal(0, 0.1, (3, 16_000))
    embedded = wide.embed(sound)
    # Its network sees what a phone computes at that rate, and not the half of it.
    expected = narrow._network(spectrum(sound, WIDE))
    np.testing.assert_allclose(embedded, expected / np.linalg.norm(expected, axis=1)[:, None])
    with pytest.raises(InvalidInputError, match=r"\(batch, 16000\), seconds at 16 kHz"):
        wide.embed(sound[:, ::2])
    with pytest.raises(InvalidInputError, match=r"\(batch, 8000\), seconds at 8 kHz"):
        narrow.embed(sound)


def test_a_phone_refuses_sound_below_the_rate_of_its_encoder() -> None:
    class Wide:
        name, dimensions, rate = "wide", 16_000, 16_000

        def embed(self, samples: np.ndarray) -> np.ndarray:
            return samples.astype(np.float32)

        def project(self, embeddings: np.ndarray, dimensions: int) -> np.ndarray:
            return embeddings[:, :dimensions]

    store = MemoryStore(np.empty((0, 16_000), dtype=np.float32))
    listener = Listener(store, Wide(), None, os.urandom)
    noise = np.random.default_rng(1).normal(0, 0.1, 16_000)
    with pytest.raises(InvalidInputError, match=r"has 8,000 .* the encoder hears 16,000"):
        listener.hear(noise, 8000)
    assert len(store.recordings()[0]) == 0
    listener.hear(noise, 16_000)
    np.testing.assert_allclose(store.recordings()[0][0], noise - noise.mean(), atol=1e-6)


def test_a_missing_runtime_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    importing: Callable[..., Any] = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.startswith("ai_edge_litert"):
            raise ModuleNotFoundError(name=name.partition(".")[0])
        return importing(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(MissingRuntimeError, match=r"pip install 'earshot-sensing\[phone\]'"):
        LiteRtEncoder(packaged())


def test_operators_start_phases_for_the_encoder_that_phones_have() -> None:
    assert Options.encoder == default_encoder().name
