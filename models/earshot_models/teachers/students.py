"""Students that learn from the answers of an ensemble and from unanswered samples.

Answers are already published, so training on them has no further privacy cost.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from earshot_models.teachers.teacher import Learner, Teacher, trained
from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError

NONE = -1
"""Value of a sample that the ensemble did not answer."""


def supervised(
    learner: Learner,
    samples: NDArray[np.floating],
    answers: NDArray[np.integer],
    classes: Sequence[str],
) -> Teacher:
    """Train a student on answered samples alone.

    Args:
        learner: Untrained model.
        samples: Samples, (samples, …).
        answers: Class numbers, (samples,), `NONE` where there is no answer.
        classes: Names of the classes.

    Raises:
        InvalidInputError: Nothing was answered, or answers are not classes.
    """
    there = _answered(samples, answers)
    return trained(learner, samples[there], np.asarray(answers)[there], classes)


def pseudo_labelled(
    learner: Learner,
    samples: NDArray[np.floating],
    answers: NDArray[np.integer],
    classes: Sequence[str],
    confidence: float = 0.75,
) -> Teacher:
    """Train a student that also learns from its own confident answers (Yarowsky 1995).

    Args:
        learner: Untrained classifier of scikit-learn that gives probabilities.
        samples: Samples, (samples, …).
        answers: Class numbers, (samples,), `NONE` where there is no answer.
        classes: Names of the classes.
        confidence: Probability from which the student's own answer becomes a label, below 1.

    Raises:
        InvalidInputError: Nothing was answered, answers are not classes, or the learner gives no
            probabilities.
        InvalidParametersError: The confidence is out of range.
    """
    from sklearn.semi_supervised import SelfTrainingClassifier

    checks.fraction("confidence", confidence)
    there = _answered(samples, answers)
    given = np.asarray(answers)
    if given.max() >= len(classes):
        raise InvalidInputError(f"answers: must be from 0 to {len(classes) - 1}, or -1 for none")
    if not hasattr(learner, "predict_proba"):
        raise InvalidInputError("learner: must give probabilities (predict_proba)")
    if there.all():
        return trained(learner, samples, given, classes)
    student = SelfTrainingClassifier(learner, threshold=confidence)
    student.fit(samples, given)
    return Teacher(tuple(classes), student)


def _answered(samples: NDArray[np.floating], answers: NDArray[np.integer]) -> NDArray[np.bool_]:
    given = np.asarray(answers)
    if given.shape != samples.shape[:1] or given.dtype.kind not in "iu":
        raise InvalidInputError("answers: must be a class number for each sample, or -1")
    if len(given) and given.min() < NONE:
        raise InvalidInputError("answers: must be class numbers, or -1 for none")
    there: NDArray[np.bool_] = given != NONE
    if not there.any():
        raise InvalidInputError("answers: nothing was answered, so there is nothing to learn from")
    return there
