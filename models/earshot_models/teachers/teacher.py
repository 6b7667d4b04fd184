"""A teacher, which classifies samples, and its file.

Keras models are saved as `.keras` and opened in safe mode, which runs no code from the file.
Others, such as scikit-learn's, are saved by joblib, and opening such a file can run arbitrary code:
open only ensembles that you trained yourself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError

KERAS, JOBLIB = ".keras", ".joblib"
"""Suffixes of model files."""


class Learner(Protocol):
    """A model that can become a teacher: scikit-learn's classifiers, or a compiled Keras model."""

    def fit(self, samples: Any, labels: Any) -> Any:
        """Learn from samples (samples, …) and their class numbers (samples,)."""

    def predict(self, samples: Any) -> Any:
        """Return class numbers (samples,), or a score for each class (samples, classes)."""


@dataclass(frozen=True)
class Teacher:
    """A trained model and the names of its classes.

    Attributes:
        classes: Names of the classes, at least two.
        model: Model trained on indices into `classes`.
    """

    classes: tuple[str, ...]
    model: Learner

    def predict(self, samples: NDArray[np.floating]) -> NDArray[np.int64]:
        """Return the class number of each sample, int64 (samples,); −1, no vote, as in `named`.

        Raises:
            InvalidInputError: The output has another type or shape, or another range.
        """
        said = np.asarray(_predicted(self.model, samples))
        if said.shape == (len(samples), len(self.classes)):
            return named(said)
        if said.shape != (len(samples),) or said.dtype.kind not in "iu":
            raise InvalidInputError(
                f"the model answers {said.dtype} of shape {said.shape} to {len(samples)} samples: "
                f"must be a class number each, or scores of {len(self.classes)} classes"
            )
        if len(said) and not 0 <= said.min() <= said.max() < len(self.classes):
            raise InvalidInputError(f"the model knows other classes than {', '.join(self.classes)}")
        return said.astype(np.int64)


def named(scores: NDArray[np.floating]) -> NDArray[np.int64]:
    """Return the class with the largest score; −1, no vote, where a score is not finite.

    One teacher with scores that are not finite loses its vote; it must not stop the ensemble.

    Args:
        scores: Scores, (samples, classes).

    Returns:
        int64 (samples,).
    """
    whole = np.isfinite(scores).all(axis=1)
    return np.where(whole, scores.argmax(axis=1), -1).astype(np.int64)


def trained(
    learner: Learner,
    samples: NDArray[np.floating],
    labels: NDArray[np.integer],
    classes: Sequence[str],
) -> Teacher:
    """Train a teacher on these samples; classes without samples are allowed.

    Args:
        learner: Untrained model; trained in place.
        samples: Samples, (samples, …).
        labels: Class of each sample, (samples,), as an index into `classes`.
        classes: Names of the classes, at least two.

    Raises:
        InvalidInputError: There are fewer than two classes, no sample, or a label that is not a
            class.
    """
    names, answers = tuple(classes), np.asarray(labels)
    if len(names) < 2 or len(set(names)) != len(names):
        raise InvalidInputError("classes: must be at least two different names")
    if answers.shape != samples.shape[:1] or not len(answers) or answers.dtype.kind not in "iu":
        raise InvalidInputError(
            "labels: must be a class number for each sample; at least one is needed"
        )
    if not 0 <= answers.min() <= answers.max() < len(names):
        raise InvalidInputError(f"labels: must be from 0 to {len(names) - 1}")
    learner.fit(samples, answers)
    return Teacher(names, learner)


def suffix(learner: Learner) -> str:
    """Return the suffix of this model's file."""
    return KERAS if _is_keras(learner) else JOBLIB


def save(teacher: Teacher, path: Path) -> None:
    """Write the model, at a path with the suffix that `suffix` returns."""
    if path.suffix == KERAS:
        model: Any = teacher.model
        model.save(path)
        return
    import joblib

    joblib.dump(teacher.model, path)


def load(path: Path, classes: Sequence[str]) -> Teacher:
    """Read a model; a joblib file can run arbitrary code.

    Raises:
        InvalidInputError: The model cannot be read.
    """
    reader: Callable[[Path], Learner]
    if path.suffix == KERAS:
        import keras

        reader = keras.saving.load_model  # in safe mode by default
    else:
        import joblib

        reader = joblib.load
    try:
        return Teacher(tuple(classes), reader(path))
    except Exception as error:  # a damaged file may raise anything in a reader
        raise InvalidInputError(f"{path} holds no model that can be read: {error}") from error


def _is_keras(learner: Learner) -> bool:
    # Without importing Keras, which is slow and may be missing.
    return any(kind.__module__.startswith("keras.") for kind in type(learner).__mro__)


def _predicted(model: Learner, samples: NDArray[np.floating]) -> Any:
    if _is_keras(model):
        keras_model: Any = model
        return keras_model.predict(samples, verbose=0)
    return model.predict(samples)
