from __future__ import annotations

from functools import cache
from importlib import resources
from itertools import pairwise

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from earshot_client import encoder as module
from earshot_client.encoder import (
    DIMENSIONS,
    INTERIM_SHA256,
    STATISTICS,
    DamagedEncoderError,
    LogMelEncoder,
    default_encoder,
    statistics,
)
from earshot_client.features import WINDOW, log_mel
from earshot_models.soundscapes import SCENES, synthesize
from earshot_protocol.errors import InvalidInputError


def packaged() -> bytes:
    return (resources.files("earshot_client") / "data" / "interim_encoder.npz").read_bytes()


@cache
def scenes(seed: int, each: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    sound = np.concatenate([synthesize(scene, each, generator) for scene in SCENES])
    return default_encoder().embed(sound), np.repeat(np.arange(len(SCENES)), each)


def test_embeddings_are_unit_rows_of_128() -> None:
    noise = np.random.default_rng(0).normal(0, 0.1, (70, WINDOW))
    embeddings = default_encoder().embed(noise)
    assert embeddings.shape == (70, DIMENSIONS)
    assert embeddings.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(embeddings, axis=1), 1, atol=1e-5)
    # Rows do not depend on the rest of the batch.
    np.testing.assert_allclose(default_encoder().embed(noise[67:68])[0], embeddings[67], atol=1e-4)
    assert default_encoder().embed(noise[:0]).shape == (0, DIMENSIONS)


def test_statistics_are_those_of_the_log_mel_spectrum() -> None:
    noise = np.random.default_rng(1).normal(0, 0.1, (1, WINDOW))
    mel = log_mel(noise / np.sqrt(np.mean(noise**2)))[0].astype(float)
    row = statistics(noise)[0]
    assert row.shape == (STATISTICS,)
    for band in (0, 31, 63):
        track = mel[:, band]
        mean = sum(track) / 61
        assert row[band] == pytest.approx(mean, abs=1e-3)
        deviation = (sum((value - mean) ** 2 for value in track) / 61) ** 0.5
        assert row[64 + band] == pytest.approx(deviation, abs=1e-3)
        change = sum(abs(b - a) for a, b in pairwise(track)) / 60
        assert row[128 + band] == pytest.approx(change, abs=1e-3)


def test_loudness_does_not_matter() -> None:
    sound = synthesize("birds", 4, np.random.default_rng(2))
    loud, soft = default_encoder().embed(sound), default_encoder().embed(0.01 * sound)
    np.testing.assert_allclose(loud, soft, atol=1e-4)


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


def test_projection_keeps_the_leading_coordinates() -> None:
    embeddings, _ = scenes(seed=11, each=40)
    projected = default_encoder().project(embeddings, 8)
    assert projected.shape == (len(embeddings), 8)
    assert projected.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(projected, axis=1), 1, atol=1e-5)
    ratio = embeddings[:, :8] / projected
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[:, :1], ratio.shape), rtol=1e-3)
    np.testing.assert_allclose(default_encoder().project(embeddings, 128), embeddings, atol=1e-6)


@pytest.mark.parametrize("dimensions", [0, -1, 129])
def test_projection_refuses_other_dimensions(dimensions: int) -> None:
    with pytest.raises(InvalidInputError, match="1 to 128"):
        default_encoder().project(np.ones((1, 128), np.float32), dimensions)


def test_input_of_another_shape_is_refused() -> None:
    encoder = default_encoder()
    sound = np.ones((1, WINDOW), np.float32)
    sound[0, 5] = np.nan
    bad = [sound, sound[0], sound[:, 1:], np.ones((1, WINDOW), np.int16)]
    for samples in bad:
        with pytest.raises(InvalidInputError, match="samples must be"):
            encoder.embed(samples)
    with pytest.raises(InvalidInputError, match="batch, 128"):
        encoder.project(np.ones((3, 127), np.float32), 8)
    with pytest.raises(InvalidInputError, match="192"):
        LogMelEncoder(np.zeros(3), np.zeros((3, 128)))


def test_the_packaged_encoder_is_small_and_its_digest_is_checked() -> None:
    data = packaged()
    assert len(data) <= 150_000
    assert LogMelEncoder.load(data, INTERIM_SHA256).to_bytes() == data
    damaged = bytearray(data)
    damaged[len(data) // 2] ^= 1
    with pytest.raises(DamagedEncoderError, match=INTERIM_SHA256):
        LogMelEncoder.load(bytes(damaged), INTERIM_SHA256)


def test_a_changed_package_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "INTERIM_SHA256", "0" * 64)
    default_encoder.cache_clear()
    with pytest.raises(DamagedEncoderError):
        default_encoder()
    monkeypatch.undo()
    assert default_encoder() is default_encoder()
