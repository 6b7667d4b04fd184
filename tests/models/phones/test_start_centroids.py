"""Start centroids of the encoder that a phone runs, whoever made it."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from earshot_client.encoder import (
    Encoder,
    StartingEncoder,
    encoder_path,
    open_encoder,
    start_centroids,
)
from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_models.soundscapes import SCENES, synthesize
from earshot_protocol import encoder_file
from earshot_protocol.start_centroids import MissingCentroidsError


def with_centroids(*centroids: np.ndarray) -> bytes:
    """The file of contrast-1 under another name, with start centroids."""
    file = encoder_file.read(encoder_path("contrast-1").read_bytes())
    mean, scale = file.card.mean, file.card.scale
    return encoder_file.pack(
        file.model, "mine-1", True, mean, scale, {}, "us", start_centroids=centroids
    )


def test_a_phone_sorts_what_it_heard_by_the_nearest() -> None:
    generator = np.random.default_rng(1)
    sound = [synthesize(scene, 6, generator) for scene in SCENES]
    plain = open_encoder("contrast-1")
    points = np.stack([plain.project(plain.embed(each), 16) for each in sound])
    encoder = LiteRtEncoder(with_centroids(points.mean(axis=1)))
    assert isinstance(encoder, StartingEncoder)
    centroids = start_centroids(encoder, 16, len(SCENES))
    assert (centroids.dtype, centroids.shape) == (np.float32, (len(SCENES), 16))
    np.testing.assert_allclose(np.linalg.norm(centroids, axis=1), 1, atol=1e-6)
    fresh = [encoder.project(encoder.embed(synthesize(s, 6, generator)), 16) for s in SCENES]
    nearest = (np.stack(fresh) @ centroids.T).argmax(axis=2)
    assert np.mean(nearest == np.arange(len(SCENES))[:, np.newaxis]) >= 0.85
    centroids[:] = 0  # a copy
    copy = pickle.loads(pickle.dumps(encoder))  # noqa: S301 - our own
    assert copy.start_centroids(16, 10).any()
    np.testing.assert_array_equal(copy.start_centroids(16, 10), encoder.start_centroids(16, 10))


def test_an_encoder_without_them_says_so_by_name() -> None:
    class Own:
        """What an app may bring: the four members of `Encoder`."""

        name, dimensions = "own", 3

        def embed(self, samples: np.ndarray) -> np.ndarray:
            return samples

        def project(self, embeddings: np.ndarray, dimensions: int) -> np.ndarray:
            return embeddings

    own: Encoder = Own()
    some = LiteRtEncoder(with_centroids(np.eye(10, 8) + 1))
    for encoder, has in (
        (own, "none at all"),
        (open_encoder("contrast-1"), "none at all"),
        (some, "10 in 8"),
    ):
        said = f"'{encoder.name}' has no 20 start centroids in 16 dimensions; it has {has}"
        with pytest.raises(MissingCentroidsError, match=said):
            start_centroids(encoder, 16, 20)
