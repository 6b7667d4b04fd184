"""The statistics of a texture, against a loop."""

from __future__ import annotations

import itertools

import keras
import numpy as np
import pytest

from earshot_models.texture import MODULATIONS, Texture


def spectra(seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(-6, 3, (3, 61, 64, 1)).astype(np.float32)


def textbook(spectrum: np.ndarray) -> list[float]:
    bands = spectrum[:, :, 0].T.astype(float)
    means = [band.mean() for band in bands]
    deviations = [np.abs(band - band.mean()).mean() for band in bands]
    changes = [np.mean([abs(b - a) for a, b in itertools.pairwise(band)]) for band in bands]
    steps = [np.abs(bands[f + 1] - bands[f]).mean() for f in range(63)]
    strengths = []
    for first in range(0, 64, 8):
        for rate in range(1, MODULATIONS + 1):
            wave = np.exp(2j * np.pi * rate * np.arange(61) / 61)
            each = [((band - band.mean()) * wave).sum() for band in bands[first : first + 8]]
            strengths.append(np.log1p(np.mean([abs(z.real) + abs(z.imag) for z in each])))
    groups = [np.mean(bands[first : first + 4], axis=0) for first in range(0, 64, 4)]
    moves = [(group - group.mean()) / (group.std() + 0.1) for group in groups]
    together = [np.mean(one * other) for one, other in itertools.combinations(moves, 2)]
    return [*means, *deviations, *changes, *steps, *strengths, *together]


def test_statistics_are_those_of_the_textbook() -> None:
    found = keras.ops.convert_to_numpy(Texture()(spectra()))
    assert found.shape == (3, 615)
    np.testing.assert_allclose(found, [textbook(each) for each in spectra()], rtol=2e-4, atol=2e-4)


def test_order_in_time_matters_to_modulation_and_change_only() -> None:
    one = spectra()
    shuffled = one[:, np.random.default_rng(1).permutation(61)]
    before, after = (keras.ops.convert_to_numpy(Texture()(each)) for each in (one, shuffled))
    np.testing.assert_allclose(before[:, :128], after[:, :128], atol=1e-4)
    assert np.abs(before[:, 128:192] - after[:, 128:192]).max() > 0.1
    assert np.abs(before[:, 255:495] - after[:, 255:495]).max() > 0.1
    np.testing.assert_allclose(before[:, 495:], after[:, 495:], atol=1e-4)


def test_silence_has_a_texture_too() -> None:
    flat = np.full((1, 61, 64, 1), -18.4, dtype=np.float32)
    found = keras.ops.convert_to_numpy(Texture()(flat))[0]
    assert found[:64] == pytest.approx(-18.4)
    np.testing.assert_allclose(found[64:], 0, atol=1e-2)
