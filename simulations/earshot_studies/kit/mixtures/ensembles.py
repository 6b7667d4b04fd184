"""Teachers that tag all labels in a mixture: linear heads on public features."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_studies.kit.mixtures.embedding import Part

PENALTY = 0.1
"""Inverse strength of the regularization of every head, on features of unit variance."""

_GRID = np.linspace(0.02, 0.9, 45)
"""Probabilities among which thresholds are chosen."""


class Aim(StrEnum):
    """Criterion for which thresholds of labels are chosen, on validation mixtures.

    With `F1`, teachers name about as many labels as there are, and mostly agree. With `BALANCED`
    accuracy they name rare labels even at low probabilities, and disagree.
    """

    F1 = "F1"
    BALANCED = "balanced accuracy"


@dataclass(frozen=True)
class Heads:
    """Logistic regressions, one per label.

    Attributes:
        weights: Weights, float64 (…, features, labels).
        biases: Biases, float64 (…, labels), −∞ for a label in no training row and ∞ for one in all.
    """

    weights: NDArray[np.float64]
    biases: NDArray[np.float64]

    def probabilities(self, features: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the probability of each label, float64 (…, rows, labels)."""
        from scipy.special import expit

        logits = np.asarray(features, dtype=np.float64) @ self.weights
        found: NDArray[np.float64] = expit(logits + self.biases[..., None, :])
        return found


def trained(
    part: Part, penalty: float = PENALTY, weights: NDArray[np.floating] | None = None
) -> Heads:
    """Fit one head per label.

    Args:
        part: Labelled mixtures, (rows, …).
        penalty: Inverse strength of the regularization.
        weights: Weight of each row's labels, (rows, labels), 0 for an unknown label; None for equal
            weights.
    """
    from sklearn.linear_model import LogisticRegression

    checks.positive("penalty", penalty)
    labels, dimensions = part.truth.shape[1], part.features.shape[1]
    slopes, biases = np.zeros((dimensions, labels)), np.full(labels, -np.inf)
    for label in range(labels):
        known = slice(None) if weights is None else weights[:, label] > 0
        there = part.truth[known, label]
        if there.all() or not there.any():
            biases[label] = np.inf if len(there) and there.all() else -np.inf
            continue
        own = None if weights is None else weights[known, label]
        model = LogisticRegression(C=penalty, max_iter=500)
        model.fit(part.features[known], there, sample_weight=own)
        slopes[:, label], biases[label] = model.coef_[0], model.intercept_[0]
    return Heads(slopes, biases)


def trained_teachers(teachers: Part, penalty: float = PENALTY) -> Heads:
    """Fit the heads of each teacher, on its own mixtures alone, of shape (teachers, …).

    Args:
        teachers: Mixtures, (teachers, mixtures, …).
        penalty: Inverse strength of the regularization.
    """
    each = [
        trained(Part(*own), penalty) for own in zip(teachers.features, teachers.truth, strict=True)
    ]
    return Heads(
        np.stack([heads.weights for heads in each]), np.stack([heads.biases for heads in each])
    )


def thresholds(
    probabilities: NDArray[np.float64], truth: NDArray[np.int8], aim: Aim
) -> NDArray[np.float64]:
    """Return, for each label, the probability above which teachers best name it, on validation.

    Args:
        probabilities: Probabilities, (teachers, rows, labels), or (rows, labels) of one classifier.
        truth: True labels, int8 (rows, labels).
        aim: Criterion, over all teachers together.

    Returns:
        Thresholds, float64 (labels,).

    Raises:
        InvalidParametersError: A label is in none of the rows, or in all.
    """
    there = truth.astype(bool)
    if not (there.any(axis=0) & ~there.all(axis=0)).all():
        raise InvalidParametersError("truth: each label must be in some mixtures and not in others")
    scores = []
    for level in _GRID:
        named = (probabilities > level).reshape(-1, *truth.shape)
        hits = (named & there).sum(axis=(0, 1)) / len(named)
        false = (named & ~there).sum(axis=(0, 1)) / len(named)
        if aim is Aim.F1:
            scores.append(2 * hits / (hits + false + there.sum(axis=0)))
        else:
            scores.append(hits / there.sum(axis=0) - false / (~there).sum(axis=0))
    best: NDArray[np.float64] = _GRID[np.argmax(scores, axis=0)]
    return best


def ballots(
    probabilities: NDArray[np.float64], thresholds: NDArray[np.float64]
) -> NDArray[np.int8]:
    """Return the labels above the thresholds, 0 or 1, in the shape of the probabilities."""
    return (probabilities > thresholds).astype(np.int8)
