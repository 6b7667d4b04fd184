"""The phone in TypeScript hears what Python's phone hears: seconds, spectra, embeddings, cells."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
from numpy.typing import NDArray
from support.node import TESTS, node

from earshot_client.encoder import StartingEncoder, encoder_path, open_encoder, rate_of
from earshot_client.features import one_second
from earshot_client.lite_rt_encoder import spectrum
from earshot_models.soundscapes import SCENES, synthesize
from earshot_protocol.geometry import Geometry, nearest
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, SHIPPED_ENCODERS
from earshot_protocol.spectrum import BANDS, FRAMES, Spectrum

RATES = (16_000, 22_050, 44_100, 48_000, 96_000, 17_011)
"""Rates of browsers, and a prime number."""
DIMENSIONS = (8, 32, 128)
PARTS = {"spectrum": FRAMES * BANDS, "embedding": 128} | {str(each): each for each in DIMENSIONS}

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Heard:
    """What both phones make of the same sound, row by row."""

    rates: tuple[int, ...]
    ours: Floats
    theirs: dict[str, Floats]


@cache
def heard(name: str) -> Heard:
    encoder = open_encoder(name)
    sounds = [(sound, rate) for sound, rate in clips() if rate >= rate_of(encoder)]
    if name != DEFAULT_ENCODER:  # the same program, with other weights
        sounds = sounds[::3]
    run = subprocess.run(  # noqa: S603 - Node of the wheel
        [node(), TESTS / "embedding_oracle.ts", encoder_path(name), name],
        input=b"".join(np.uint32(rate).tobytes() + sound.tobytes() for sound, rate in sounds),
        capture_output=True,
        check=True,
        timeout=300,
    )
    ends = np.cumsum([rate_of(encoder), *PARTS.values()])
    said = np.frombuffer(run.stdout, dtype="<f4").reshape(len(sounds), ends[-1])
    theirs = dict(zip(("second", *PARTS), np.split(said, ends[:-1], axis=1), strict=True))
    ours = np.stack([one_second(sound, rate, rate_of(encoder)) for sound, rate in sounds])
    return Heard(tuple(rate for _, rate in sounds), ours, theirs)


@cache
def clips() -> tuple[tuple[Floats, int], ...]:
    """Every scene at every other rate (between multiples of 8 kHz, the next one's plays slower)."""
    made = []
    for number, scene in enumerate(SCENES):
        for rate in RATES[number % 2 :: 2]:
            above = -(-rate // 8000) * 8000
            sound = synthesize(scene, 1, np.random.default_rng(rate), above)[0]
            made.append((sound[:rate].astype("<f4"), rate))
    tone = 0.3 * np.sin(2 * np.pi * 1000 * np.arange(44_100) / 44_100)
    click = np.zeros(48_000)
    click[1000:1200] = 0.5
    noise = np.random.default_rng(0).normal(0, 3e-4, 16_000)
    silent_half = np.where(np.arange(16_000) < 8000, 0, 100 * noise)
    extremes = ((tone, 44_100), (click, 48_000), (noise, 16_000), (silent_half, 16_000))
    return tuple(made) + tuple((sound.astype("<f4"), rate) for sound, rate in extremes)


def cosines(ours: Floats, theirs: Floats) -> NDArray[np.float64]:
    first, second = ours.astype(np.float64), theirs.astype(np.float64)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
    return np.asarray((first * second).sum(axis=1) / lengths)


def test_seconds_are_those_of_python() -> None:
    """Bit by bit, but for roundings that fall the other way and for numbers next to nothing."""
    both = heard("contrast-3")
    assert set(both.rates) == set(RATES)
    equal = both.theirs["second"] == both.ours
    assert equal.mean() > 0.995  # the click is nearly nothing all around
    np.testing.assert_allclose(both.theirs["second"], both.ours, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", SHIPPED_ENCODERS)
def test_spectra_are_those_of_python(name: str) -> None:
    both = heard(name)
    rate = rate_of(open_encoder(name))
    expected = spectrum(both.ours, Spectrum(rate)).reshape(len(both.ours), -1)
    # In power, not in its logarithm: near the floor float32 has few digits of it.
    np.testing.assert_allclose(
        np.exp(both.theirs["spectrum"], dtype=np.float64),
        np.exp(expected, dtype=np.float64),
        rtol=1e-4,
        atol=1e-8,
    )


@pytest.mark.parametrize("name", SHIPPED_ENCODERS)
def test_embeddings_and_projections_are_those_of_python(name: str) -> None:
    encoder, both = open_encoder(name), heard(name)
    expected = encoder.embed(both.ours)
    assert cosines(expected, both.theirs["embedding"]).min() >= 0.9995
    for part in ("embedding", *map(str, DIMENSIONS)):
        lengths = np.linalg.norm(both.theirs[part].astype(np.float64), axis=1)
        np.testing.assert_allclose(lengths, 1, atol=1e-6)
    for dimensions in DIMENSIONS:
        # Of the same embedding, so that nothing but the projection differs.
        projected = encoder.project(both.theirs["embedding"], dimensions)
        np.testing.assert_allclose(both.theirs[str(dimensions)], projected, atol=1e-6)


def test_cells_are_those_of_python() -> None:
    encoder, both = open_encoder("contrast-3"), heard("contrast-3")
    assert isinstance(encoder, StartingEncoder)
    embeddings = encoder.embed(both.ours)
    equal = []
    for dimensions, count in ((8, 10), (8, 40), (32, 20), (32, 40)):
        cells = encoder.start_centroids(dimensions, count)
        ours = nearest(encoder.project(embeddings, dimensions), cells, Geometry.SPHERICAL)
        theirs = nearest(both.theirs[str(dimensions)], cells, Geometry.SPHERICAL)
        equal.append((ours == theirs).mean())
    assert np.mean(equal) >= 0.99
