"""Each objective against a textbook loop."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from earshot_models.objectives import (
    Bilinear,
    Distillation,
    MomentumContrast,
    NTXent,
    follow,
)
from earshot_protocol.errors import InvalidParametersError

BATCH, WIDTH = 6, 128
RECORDINGS = np.array([3, 8, 3, 5, 9, 8])


def embeddings(seed: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(BATCH, WIDTH)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def head(layer: keras.Sequential, rows: np.ndarray) -> np.ndarray:
    """The head in training by hand: it normalizes by the statistics of `rows`."""
    dense, normalization, _, last = layer.layers
    (kernel,) = dense.get_weights()
    hidden = rows @ kernel
    hidden = (hidden - hidden.mean(0)) / np.sqrt(hidden.var(0) + normalization.epsilon)
    kernel, bias = last.get_weights()
    out = np.maximum(hidden, 0) @ kernel + bias
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def test_nt_xent_is_a_cross_entropy_over_all_other_views() -> None:
    objective = NTXent(temperature=0.2, hidden=32)
    objective.build((None, WIDTH))
    first, second = embeddings(0), embeddings(1)
    views = head(objective._head, np.concatenate([first, second])).astype(float)
    of = np.concatenate([RECORDINGS, RECORDINGS])
    losses = []
    for anchor in range(2 * BATCH):
        partner = (anchor + BATCH) % (2 * BATCH)
        # Other windows of the anchor's own recording are neither positive nor negative.
        candidates = [
            other for other in range(2 * BATCH) if other == partner or of[other] != of[anchor]
        ]
        weights = {other: np.exp(views[anchor] @ views[other] / 0.2) for other in candidates}
        losses.append(-np.log(weights[partner] / sum(weights.values())))
    found = float(objective.loss(first, second, RECORDINGS))
    assert found == pytest.approx(np.mean(losses), rel=1e-4)


def test_distillation_is_the_cosine_to_the_teacher_and_picking_its_word_out() -> None:
    objective = Distillation(temperature=0.2, contrast=0.4)
    objective.build((None, WIDTH))
    student, teacher = embeddings(4), embeddings(5)
    losses = []
    for own in range(BATCH):
        odds = [np.exp(float(student[own] @ teacher[other]) / 0.2) for other in range(BATCH)]
        distance = 1 - float(student[own] @ teacher[own])
        losses.append(2 * distance - 0.4 * np.log(odds[own] / sum(odds)))
    found = float(objective.loss(student, teacher, RECORDINGS))
    assert found == pytest.approx(np.mean(losses), rel=1e-4)
    assert float(objective.loss(teacher, teacher, RECORDINGS)) < found
    with pytest.raises(InvalidParametersError, match="contrast=-1"):
        Distillation(contrast=-1)


def test_places_are_told_apart_beside_what_the_teacher_says() -> None:
    objective = Distillation(temperature=0.2, contrast=0.4, places=0.3)
    objective.build((None, 2 * WIDTH))
    pairs, teacher = 4, embeddings(5)
    taught, first = embeddings(4), embeddings(6)
    second = embeddings(7)[:pairs]
    # Behind the lessons are other seconds of the first of them, of which the teacher has none.
    whole = np.hstack(
        [np.concatenate([taught, embeddings(8)[:pairs]]), np.concatenate([first, second])]
    )
    found = float(objective.loss(whole / 2**0.5, teacher, RECORDINGS))
    alone = Distillation(temperature=0.2, contrast=0.4)
    contrast = objective._places
    assert contrast is not None
    expected = float(alone.loss(taught, teacher, RECORDINGS))
    expected += 0.3 * float(contrast.loss(first[:pairs], second, RECORDINGS[:pairs]))
    assert found == pytest.approx(expected, rel=1e-4)
    with pytest.raises(InvalidParametersError, match="places=-1"):
        Distillation(places=-1)


def test_bilinear_is_a_cross_entropy_over_the_batch() -> None:
    objective = Bilinear(temperature=0.7)
    objective.build((None, WIDTH))
    first, second = embeddings(2), embeddings(3)
    kernel, bias = objective._dense.get_weights()
    matrix = objective._similarity.numpy().astype(float)

    def projected(rows: np.ndarray) -> np.ndarray:
        hidden = rows @ kernel + bias
        spread = np.sqrt(hidden.var(1, keepdims=True) + objective._normalize.epsilon)
        return np.tanh((hidden - hidden.mean(1, keepdims=True)) / spread)

    anchors, others = projected(first), projected(second)
    losses = []
    for i in range(BATCH):
        # Other windows of the anchor's own recording are neither positive nor negative.
        candidates = [j for j in range(BATCH) if j == i or RECORDINGS[j] != RECORDINGS[i]]
        weights = {j: np.exp(anchors[i] @ matrix @ others[j] / 0.7) for j in candidates}
        losses.append(-np.log(weights[i] / sum(weights.values())))
    found = float(objective.loss(first, second, RECORDINGS))
    assert found == pytest.approx(np.mean(losses), rel=1e-4)


def test_momentum_contrast_compares_with_a_queue_of_keys() -> None:
    objective = MomentumContrast(temperature=0.2, hidden=32, queue=2 * BATCH + 1)
    objective.build((None, WIDTH))
    queue: list[tuple[int, np.ndarray]] = []
    for step in range(4):
        first, second = embeddings(10 + step), embeddings(20 + step)
        queries = head(objective._head, first)
        keys = head(objective._key_head, second)
        queue = [*zip(RECORDINGS, keys, strict=True), *queue][: 2 * BATCH + 1]
        losses = []
        for query, key, recording in zip(queries, keys, RECORDINGS, strict=True):
            own = np.exp(query @ key / 0.2)
            others = [np.exp(query @ k / 0.2) for of, k in queue if of != recording]
            losses.append(-np.log(own / (own + sum(others))))
        found = float(objective.loss(first, second, RECORDINGS))
        assert found == pytest.approx(np.mean(losses), rel=1e-4, abs=1e-5)


def test_a_copy_follows_by_its_momentum() -> None:
    source, copy = (
        keras.Sequential([keras.layers.Input((3,)), keras.layers.Dense(2)]) for _ in range(2)
    )
    before, towards = copy.get_weights()[0], source.get_weights()[0]
    follow(source, copy, 0.75)
    np.testing.assert_allclose(copy.get_weights()[0], 0.75 * before + 0.25 * towards, rtol=1e-6)


def test_bad_settings_are_named() -> None:
    with pytest.raises(InvalidParametersError, match="temperature"):
        NTXent(temperature=0)
    with pytest.raises(InvalidParametersError, match="queue"):
        MomentumContrast(queue=1)
    with pytest.raises(InvalidParametersError, match="momentum"):
        MomentumContrast(momentum=1)
