"""Patches of a spectrum, against scikit-learn and a loop."""

from __future__ import annotations

import keras
import numpy as np
import pytest
from sklearn.decomposition import PCA

from earshot_models.batches import in_batches
from earshot_models.front_end import LogMel
from earshot_models.patches import LENGTH, Atoms, Patches, learn
from earshot_models.soundscapes import SCENES, synthesize
from earshot_protocol.errors import InvalidInputError


@pytest.fixture(scope="module")
def heard() -> np.ndarray:
    generator = np.random.default_rng(0)
    sound = np.concatenate([synthesize(scene, 6, generator) for scene in SCENES])
    return in_batches(LogMel(mask=0.0, seed=0), sound)


@pytest.fixture(scope="module")
def atoms(heard: np.ndarray) -> Atoms:
    return learn(heard, 12, seed=1)


def audible(spectra: np.ndarray) -> np.ndarray:
    """Bands (seconds, 61, 64) without what is 40 dB below the loudest, and without their mean."""
    decibels = 10 / np.log(10) * spectra[..., 0].astype(float)
    heard = [np.maximum(second, second.max() - 40) * np.log(10) / 10 for second in decibels]
    return np.array([second - second.mean() for second in heard])


def textbook(spectrum: np.ndarray, atoms: Atoms) -> list[float]:
    bands = audible(spectrum[np.newaxis])[0]
    codes = []
    for start in range(0, 61 - LENGTH + 1, 2):
        patch = bands[start : start + LENGTH].ravel()
        white = (patch - atoms.mean) @ atoms.whitening
        cosines = white @ atoms.directions / np.linalg.norm(white)
        codes.append([max(cosine - 0.1, 0) for cosine in cosines])
    return [*np.mean(codes, axis=0), *np.max(codes, axis=0)]


def test_codes_are_those_of_the_textbook(heard: np.ndarray, atoms: Atoms) -> None:
    found = keras.ops.convert_to_numpy(Patches(atoms)(heard[::7]))
    assert found.shape == (len(heard[::7]), 24)
    expected = [textbook(each, atoms) for each in heard[::7]]
    np.testing.assert_allclose(found, expected, atol=2e-4)


def test_patches_are_whitened_as_scikit_learn_does(heard: np.ndarray, atoms: Atoms) -> None:
    bands = audible(heard)
    # All patches were learned from, for there are fewer than the most.
    patches = np.concatenate(
        [
            bands[:, start : start + LENGTH].reshape(len(bands), -1)
            for start in range(0, 61 - LENGTH + 1, 2)
        ]
    )
    oracle = PCA(64, whiten=True, svd_solver="full").fit(patches)
    ours = (patches - atoms.mean) @ atoms.whitening
    np.testing.assert_allclose(np.cov(ours.T), np.eye(64), atol=1e-2)
    # The leading components are determined up to their sign.
    likeness = np.abs(np.corrcoef(oracle.transform(patches)[:, :5].T, ours[:, :5].T)[:5, 5:])
    np.testing.assert_allclose(np.diag(likeness), 1, atol=1e-3)


def test_atoms_are_apart_and_each_is_used(heard: np.ndarray, atoms: Atoms) -> None:
    np.testing.assert_allclose(np.linalg.norm(atoms.directions, axis=0), 1, atol=1e-5)
    likeness = atoms.directions.T @ atoms.directions
    assert (likeness - np.eye(12)).max() < 0.95
    loudest = keras.ops.convert_to_numpy(Patches(atoms)(heard))[:, 12:]
    assert (loudest.max(axis=0) > 0.1).all()


def test_level_does_not_matter(heard: np.ndarray, atoms: Atoms) -> None:
    before, after = (
        keras.ops.convert_to_numpy(Patches(atoms)(each)) for each in (heard, heard + 3)
    )
    np.testing.assert_allclose(before, after, atol=1e-4)


def test_what_is_40_decibels_below_the_loudest_does_not_matter(atoms: Atoms) -> None:
    generator = np.random.default_rng(3)
    loud = generator.normal(-6, 1, (5, 61, 64, 1)).astype(np.float32)
    quiet, quieter = loud.copy(), loud.copy()
    quiet[:, :, 40:] -= np.float32(44 * np.log(10) / 10 + 6)
    quieter[:, :, 40:] = -18.4
    before, after, whole = (
        keras.ops.convert_to_numpy(Patches(atoms)(each)) for each in (quiet, quieter, loud)
    )
    np.testing.assert_allclose(before, after, atol=1e-5)
    assert np.abs(before - whole).max() > 0.05


def test_learning_can_be_repeated(heard: np.ndarray, atoms: Atoms) -> None:
    again = learn(heard, 12, seed=1)
    np.testing.assert_allclose(again.directions, atoms.directions, atol=1e-5)


def test_too_little_sound_is_refused(heard: np.ndarray) -> None:
    with pytest.raises(InvalidInputError, match="50 patches are too few"):
        learn(heard[:2], 12, seed=1)


def test_silence_has_codes_too(atoms: Atoms) -> None:
    flat = np.full((1, 61, 64, 1), -18.4, dtype=np.float32)
    assert np.isfinite(keras.ops.convert_to_numpy(Patches(atoms)(flat))).all()
