"""Classifiers of spoken digits: ridge on moved pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import Ridge

from earshot_models.teachers import teacher
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_studies.pate_aae.digits import SILENCE, MovedRidge, moved

FRAMES, BANDS = 12, 10


def tones(count: int, seed: int, early: int = 2) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Class k is a tone in band 3k, four frames long, that begins after `early` frames."""
    generator = np.random.default_rng(seed)
    labels = np.arange(count) % 3
    pictures = np.full((count, FRAMES, BANDS), SILENCE, dtype=np.float32)
    for picture, label in zip(pictures, labels, strict=True):
        picture[early : early + 4, 3 * label] = 0.5
    pictures += generator.normal(0, 0.05, pictures.shape).astype(np.float32)
    return pictures, labels


@pytest.mark.parametrize("frames", [-3, -1, 0, 1, 3])
def test_a_moved_clip_has_silence_where_it_left(frames: int) -> None:
    pictures, _ = tones(2, 0)
    found = moved(pictures, frames)
    for picture, other in zip(pictures, found, strict=True):
        for at in range(FRAMES):
            own = at - frames
            wanted = picture[own] if 0 <= own < FRAMES else np.full(BANDS, SILENCE)
            np.testing.assert_array_equal(other[at], wanted)


def test_it_is_the_ridge_regression_of_a_textbook() -> None:
    pictures, labels = tones(9, 1)
    learner = MovedRidge(10.0, reach=1).fit(pictures, labels)
    rows, targets = [], []
    for picture, label in zip(pictures, labels, strict=True):
        for frames in (-1, 0, 1):
            rows.append(moved(picture[None], frames)[0].ravel())
            targets.append([1.0 if label == each else -1.0 for each in range(3)])
    table, wanted = np.array(rows, dtype=np.float64), np.array(targets)
    # (XᵀX + αI) w = Xᵀy of what is centred.
    middle, level = table.mean(0), wanted.mean(0)
    gram = (table - middle).T @ (table - middle) + 10.0 * np.eye(table.shape[1])
    weights = np.linalg.solve(gram, (table - middle).T @ (wanted - level))
    others, _ = tones(30, 2, early=4)
    scores = (others.reshape(30, -1) - middle) @ weights + level
    np.testing.assert_array_equal(learner.predict(others), scores.argmax(axis=1))
    reference = Ridge(10.0).fit(table, wanted)
    np.testing.assert_allclose(scores, reference.predict(others.reshape(30, -1)), atol=1e-8)


def test_moves_find_what_begins_at_another_time() -> None:
    pictures, labels = tones(9, 3)
    later, answers = tones(60, 4, early=6)
    # Not moved, the same tone four frames later has no frame in common.
    still = MovedRidge(10.0, reach=0).fit(pictures, labels).predict(later)
    found = MovedRidge(10.0, reach=3).fit(pictures, labels).predict(later)
    assert (found == answers).mean() == 1.0
    assert (still == answers).mean() < 0.8


def test_one_class_is_all_that_a_teacher_of_it_says() -> None:
    pictures, _ = tones(3, 5)
    learner = MovedRidge().fit(pictures, np.full(3, 7))
    np.testing.assert_array_equal(learner.predict(pictures), [7, 7, 7])


def test_bad_pictures_are_refused_by_name() -> None:
    pictures, labels = tones(6, 6)
    with pytest.raises(InvalidInputError, match="a label for each"):
        MovedRidge().fit(pictures, labels[:-1])
    with pytest.raises(InvalidInputError, match="at least one"):
        MovedRidge().fit(pictures[:0], labels[:0])
    with pytest.raises(InvalidInputError, match="finite"):
        MovedRidge().fit(np.full_like(pictures, np.nan), labels)
    with pytest.raises(InvalidInputError, match="more than 3 frames"):
        MovedRidge(reach=3).fit(pictures[:, :3], labels)
    with pytest.raises(InvalidInputError, match="not trained"):
        MovedRidge().predict(pictures)
    with pytest.raises(InvalidParametersError, match="strength=0"):
        MovedRidge(0.0)
    with pytest.raises(InvalidParametersError, match="reach=-1"):
        MovedRidge(reach=-1)


def test_it_is_a_teacher_that_can_be_kept(tmp_path: Path) -> None:
    pictures, labels = tones(12, 7)
    own = teacher.trained(MovedRidge(), pictures, labels, ("a", "b", "c"))
    path = tmp_path / f"teacher{teacher.suffix(own.model)}"
    teacher.save(own, path)
    again = teacher.load(path, own.classes)
    np.testing.assert_array_equal(again.predict(pictures), own.predict(pictures))
