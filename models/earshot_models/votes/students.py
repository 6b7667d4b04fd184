"""Self-training: a student of the teachers' answers and of unanswered samples."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_models.votes.electorate import load
from earshot_protocol import checks
from earshot_protocol.arrays import Whole
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.voting.teacher_ballots import NONE

_ITERATIONS = 1000


@dataclass(frozen=True)
class Student:
    """A trained student: post-processing of answers, so it costs nothing more.

    Attributes:
        coefficients: Coefficients of standardized features, float64 (classes, features).
        intercepts: Intercepts, float64 (classes,).
        means: Means of the features.
        scales: Standard deviations of the features.
        scores: Probability of each class, float64 (samples, classes).
        answered: Number of samples with an answer.
        taught: Number of samples that self-training labelled.
    """

    coefficients: npt.NDArray[np.float64]
    intercepts: npt.NDArray[np.float64]
    means: npt.NDArray[np.float64]
    scales: npt.NDArray[np.float64]
    scores: npt.NDArray[np.float64]
    answered: int
    taught: int


def train(
    samples: npt.NDArray[np.floating], answers: Whole, classes: int, sure: float = 0.95
) -> Student:
    """Train a logistic regression by self-training on its confident answers (Yarowsky, ACL 1995).

    Args:
        samples: Samples, (samples, …): first those of `answers`, in order.
        answers: Classes, `NONE` without an answer, int64 (asked,).
        classes: Number of classes (m).
        sure: Probability from which a predicted class becomes a label; 1 for never.

    Raises:
        InvalidInputError: Samples or answers do not fit, or answers are of fewer than two classes.
        InvalidParametersError: A number is out of range.
    """
    from sklearn.linear_model import LogisticRegression

    from earshot_models.teachers.students import pseudo_labelled, supervised

    checks.whole("classes", classes, 2)
    checks.share("sure", sure)
    table = _features(samples)
    if answers.ndim != 1 or not 0 < len(answers) <= len(table):
        raise InvalidInputError(
            f"answers of shape {answers.shape}: must be one class each, for at most the "
            f"{len(table)} samples there are"
        )
    if answers.min() < NONE or answers.max() >= classes:
        raise InvalidInputError(
            f"answers from {answers.min()} to {answers.max()}: must be from {NONE} to {classes - 1}"
        )
    known = np.unique(answers[answers != NONE])
    if len(known) < 2:
        raise InvalidInputError(f"answers of {len(known)} classes: a student needs two at least")
    means, scales = table.mean(axis=0), table.std(axis=0)
    scales[scales == 0] = 1.0
    ready = (table - means) / scales
    targets = np.full(len(ready), NONE)
    targets[: len(answers)] = answers
    learner, names = (
        LogisticRegression(max_iter=_ITERATIONS),
        [str(each) for each in range(classes)],
    )
    # Self-training needs unanswered samples.
    if sure < 1 and (targets == NONE).any():
        model: Any = pseudo_labelled(learner, ready, targets, names, sure).model
        fitted, made_up = model.estimator_, int((model.labeled_iter_ > 0).sum())
    else:
        fitted, made_up = supervised(learner, ready, targets, names).model, 0
    binary = len(known) == 2
    coefficients, intercepts = np.zeros((classes, ready.shape[1])), np.full(classes, -np.inf)
    signs = np.array([-0.5, 0.5]) if binary else np.ones(len(known))
    coefficients[known] = signs[:, None] * fitted.coef_
    intercepts[known] = signs * fitted.intercept_
    scores = np.zeros((len(ready), classes))
    scores[:, known] = fitted.predict_proba(ready)
    answered = int((answers != NONE).sum())
    return Student(coefficients, intercepts, means, scales, scores, answered, made_up)


def read_answers(path: str | os.PathLike[str]) -> Whole:
    """Return answers as `label` wrote them, or from a `.npy` file.

    Raises:
        InvalidInputError: There is no such file, or it has other content.
    """
    path = Path(path)
    if path.suffix == ".npy":
        return np.asarray(load(path), dtype=np.int64)
    try:
        with path.open(encoding="utf-8-sig") as file:
            rows = list(csv.reader(file))
        if rows[0] != ["query", "answer"]:
            raise ValueError
        return np.array([int(row[1]) if row[1] else NONE for row in rows[1:]], dtype=np.int64)
    except (OSError, ValueError, IndexError, csv.Error) as error:
        raise InvalidInputError(
            f"{path}: no answers.csv with one answer a query, as `earshot pate label` writes it"
        ) from error


def _features(samples: npt.NDArray[np.floating]) -> npt.NDArray[np.float64]:
    if samples.ndim < 2 or 0 in samples.shape or not np.issubdtype(samples.dtype, np.number):
        raise InvalidInputError(
            f"samples of {samples.dtype} and shape {samples.shape}: must be numbers, a row each"
        )
    table = samples.reshape(len(samples), -1).astype(np.float64)
    if not np.isfinite(table).all():
        raise InvalidInputError("samples: must be finite numbers")
    return table
