"""Start centroids, found in public sound."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from earshot_client.encoder import open_encoder
from earshot_models import start_centroids
from earshot_models.components import public_components
from earshot_models.pools import Pool
from earshot_models.soundscapes import SCENES, synthesize
from earshot_models.start_centroids import cluster, learn, wider
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.start_centroids import USUAL_COUNTS, USUAL_DIMENSIONS


def sound(each: int, seed: int, scenes: tuple[str, ...] = SCENES) -> np.ndarray:
    generator = np.random.default_rng(seed)
    heard = np.concatenate([synthesize(scene, each, generator) for scene in scenes])
    return open_encoder("contrast-1").embed(heard)


def around(directions: np.ndarray, counts: list[int], spread: float, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    middles = np.repeat(directions, counts, axis=0)
    rows = middles + spread * generator.normal(size=middles.shape)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def near(points: np.ndarray, centroids: np.ndarray) -> np.ndarray:
    return (points @ centroids.T).max(axis=1)


def test_every_usual_set_is_found_and_the_same_again() -> None:
    embeddings = sound(20, seed=1)
    components = public_components(embeddings, 0.25)
    found = learn(components, embeddings, 7)
    pairs = list(itertools.product(USUAL_COUNTS, USUAL_DIMENSIONS))
    assert sorted(each.shape for each in found) == sorted(pairs)
    fresh = sound(6, seed=2)
    for centroids in found:
        assert centroids.dtype == np.float32
        np.testing.assert_allclose(np.linalg.norm(centroids, axis=1), 1, atol=1e-6)
        count, dimensions = centroids.shape
        points = components.projected(fresh, dimensions)
        others = np.random.default_rng(3).permutation(components.projected(embeddings, dimensions))
        # Nearer to sound that they have not met than as many seconds of what they have met are.
        assert near(points, centroids).mean() > near(points, others[:count]).mean()
        assert set((components.projected(embeddings, dimensions) @ centroids.T).argmax(1)) == set(
            range(count)
        )
    again = learn(components, embeddings, 7)
    assert all(map(np.array_equal, found, again))
    assert not all(map(np.array_equal, found, learn(components, embeddings, 8)))


def tones(hertz: float, count: int, seconds: int, rate: int) -> Pool:
    """Recordings of one tone, which tell what was done to them."""
    time = np.arange(seconds * rate) / rate
    tone = np.sin(2 * np.pi * hertz * time).astype(np.float32)
    return Pool([tone] * count, np.arange(count), 1.0, "tones", rate)


def test_wider_sound_is_public_sound_at_other_speeds_and_mixed() -> None:
    pools, rate = [tones(1000.0, 3, 4, 16_000)], 8_000
    heard = wider(pools, 200, 3, rate)
    assert (heard.dtype, heard.shape) == (np.float32, (200, rate))
    spectra = np.abs(np.fft.rfft(heard * np.hanning(rate), axis=1))
    peaks = spectra.argmax(axis=1)  # of one second: in hertz
    # Half an octave at most up or down, in about three of four; none is anything else.
    assert 1000 / 2**0.52 < peaks.min() < 900
    assert 1100 < peaks.max() < 1000 * 2**0.52
    assert 0.6 < np.mean(np.abs(peaks - 1000) > 3) < 0.9
    # A second tone stands beside the first in about half, unless it is the same one.
    beside = spectra.copy()
    for row, peak in zip(beside, peaks, strict=True):
        row[max(0, peak - 20) : peak + 20] = 0
    mixed = beside.max(axis=1) > 0.1 * spectra.max(axis=1)
    assert 0.25 < mixed.mean() < 0.65
    np.testing.assert_array_equal(heard, wider(pools, 200, 3, rate))
    assert not np.array_equal(heard, wider(pools, 200, 4, rate))


def test_the_middles_of_clusters_are_found_on_the_sphere() -> None:
    directions = np.linalg.qr(np.random.default_rng(4).normal(size=(16, 16)))[0]
    points = around(directions, [60] * 16, 0.05, seed=5)
    centroids = cluster(points, 16, seed=0)
    assert near(directions, centroids).min() > 0.99


@pytest.mark.parametrize("seed", range(3))
def test_rare_sound_has_centroids_of_its_own(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where plain k-means spends them on what there is most of."""
    directions = np.eye(12)
    common = around(directions[:1], [3000], 0.1, seed)
    points = np.concatenate([common, around(directions[1:], [15] * 11, 0.2, seed + 50)])

    def hit() -> int:
        return int(np.sum(near(directions, cluster(points, 12, seed)) > 0.9))

    weighted = hit()
    monkeypatch.setattr(start_centroids, "rarity", lambda points: np.ones(len(points)))
    assert weighted >= 10
    assert hit() <= weighted - 2


def test_copies_of_one_sound_count_once_or_are_refused() -> None:
    few = np.repeat(around(np.eye(8), [5] * 8, 0.3, seed=7), 30, axis=0)
    assert cluster(few, 20, seed=0).shape == (20, 8)
    with pytest.raises(InvalidInputError, match=r"8 different seconds .* 20 start centroids"):
        cluster(np.repeat(np.eye(8, dtype=np.float32), 30, axis=0), 20, seed=0)
    with pytest.raises(InvalidInputError, match="10 start centroids: at least 11 are needed"):
        cluster(around(np.eye(10), [1] * 10, 0.1, seed=8), 10, seed=0)


def test_seconds_that_are_all_but_the_same_need_no_centroid_each() -> None:
    places = np.eye(12, 16)
    points = around(places, [5] * 12, 0.0, seed=0)
    points[0, 15], points[5, 15] = 1e-8, 1e-8
    found = cluster(points, 14, 0)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1, atol=1e-6)
    assert near(points, found).min() > 1 - 1e-6
