"""A student: it learns, also from what nobody answered, and its file says the same as it does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.command import earshot

from earshot_models.votes.students import read_answers, train
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.voting.teacher_ballots import NONE


def blobs(samples: int = 400, classes: int = 3, seed: int = 0) -> tuple[Any, Any]:
    generator = np.random.default_rng(seed)
    labels = generator.integers(0, classes, samples)
    centres = 4 * np.eye(classes, 5)
    return centres[labels] + generator.normal(0, 1.0, (samples, 5)), labels


@pytest.mark.parametrize("classes", [2, 3])
def test_its_numbers_say_what_it_says(classes: int) -> None:
    samples, labels = blobs(classes=classes)
    answers = labels[:40].copy()
    answers[5:10] = NONE
    learned = train(samples, answers, 4)
    logits = (samples - learned.means) / learned.scales @ learned.coefficients.T
    logits += learned.intercepts
    chances = np.exp(logits - logits.max(axis=1, keepdims=True))
    assert learned.scores == pytest.approx(chances / chances.sum(axis=1, keepdims=True), abs=1e-9)
    assert (learned.scores.argmax(axis=1) == labels).mean() > 0.95
    assert learned.answered == 35
    assert learned.taught > 200
    assert train(samples, answers, 4, sure=1.0).taught == 0
    assert learned.scores[:, classes:].max() == 0


def test_the_command_reads_answers_and_writes_scores(tmp_path: Path) -> None:
    samples, labels = blobs()
    np.save(tmp_path / "samples.npy", samples)
    rows = [f"{query},{'' if query == 3 else labels[query]}" for query in range(30)]
    (tmp_path / "answers.csv").write_text("\n".join(["query,answer", *rows]) + "\n")
    words = ("pate", "student", tmp_path / "answers.csv", "--classes", 3)
    ran = earshot(*words, "--samples", tmp_path / "samples.npy", "--out", tmp_path / "out")
    assert ran.returncode == 0, ran.stderr
    scores = np.load(tmp_path / "out" / "scores.npy")
    assert scores.shape == (400, 3)
    assert read_answers(tmp_path / "answers.csv").tolist()[:4] == [*labels[:3], NONE]
    with np.load(tmp_path / "out" / "student.npz") as kept:
        assert set(kept) == {"coefficients", "intercepts", "means", "scales"}


@pytest.mark.parametrize(
    ("samples", "answers", "message"),
    [
        (np.zeros((3, 2)), [0, 1, 0, 1], "at most the 3 samples"),
        (np.zeros((3, 2)), [0, 3], "must be from -1 to 2"),
        (np.zeros((3, 2)), [0, NONE], "needs two at least"),
        (np.zeros(3), [0, 1], "must be numbers, a row each"),
        (np.full((3, 2), np.nan), [0, 1], "must be finite"),
    ],
)
def test_samples_and_answers_that_do_not_fit_are_refused(
    samples: Any, answers: list[int], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        train(samples, np.array(answers), 3)


def test_files_without_answers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "answers.csv"
    with pytest.raises(InvalidInputError, match="with one answer a query"):
        read_answers(path)
    path.write_text("query,label_0\n0,1\n")
    with pytest.raises(InvalidInputError, match="with one answer a query"):
        read_answers(path)
