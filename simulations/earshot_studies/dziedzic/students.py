"""Models that learn from answers: a student, and the one that it is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_studies.kit.mixtures.embedding import Part
from earshot_studies.kit.mixtures.ensembles import PENALTY, Heads, trained

_SURE = 0.95
"""Certainty from which the student learns a label of an unanswered mixture, or its absence."""
_PSEUDO_WEIGHT = 0.2
_ROUNDS = 2


def student(answered: Part, unanswered: NDArray[np.float32], penalty: float = PENALTY) -> Heads:
    """Learn from answers, then from one's own confident guesses (pseudo-labels; Lee 2013).

    The paper's student is MixMatch on the same two sets.

    Args:
        answered: Queries, with 1, 0 or `NONE` for each label.
        unanswered: Features of other public mixtures, (rows, features).
        penalty: Inverse strength of the regularization.
    """
    known = (answered.truth != NONE).astype(np.float64)
    labels = np.where(answered.truth == NONE, 0, answered.truth).astype(np.int8)
    heads = trained(Part(answered.features, labels), penalty, known)
    if not len(unanswered):
        return heads
    for _ in range(_ROUNDS):
        likely = heads.probabilities(unanswered)
        sure = np.abs(likely - 0.5) >= _SURE - 0.5
        both = Part(
            np.concatenate([answered.features, unanswered]),
            np.concatenate([labels, (likely > 0.5).astype(np.int8)]),
        )
        heads = trained(both, penalty, np.concatenate([known, _PSEUDO_WEIGHT * sure]))
    return heads


@dataclass(frozen=True)
class DpSgdTraining:
    """The settings of DP-SGD.

    Attributes:
        steps: Number of batches.
        rate: Probability with which each example is in a batch, independently.
        norm: L2 norm to which a gradient is clipped.
        speed: Learning rate, on the mean gradient.
    """

    steps: int = 300
    rate: float = 0.1
    norm: float = 1.0
    speed: float = 16.0

    def __post_init__(self) -> None:
        checks.whole("steps", self.steps)
        checks.positive("rate", self.rate, 1)
        checks.positive("norm", self.norm)
        checks.positive("speed", self.speed)


def private_heads(
    part: Part, training: DpSgdTraining, noise: float, generator: np.random.Generator
) -> Heads:
    """Fit logistic regressions by DP-SGD, each example clipped over all labels together.

    The gradient of an example is the outer product of its errors p − y and its features, the bias
    included, so its norm is the product of their norms. An example whose features have no finite
    length counts as zeros: it must not contribute more than its share of the sum.

    Args:
        part: Labelled mixtures.
        training: Settings of the training.
        noise: Standard deviation over the clipping norm; see `kit.dp_sgd`.
        generator: Generator of batches and noise; only for simulations.
    """
    rows = np.column_stack([part.features, np.ones(len(part))]).astype(np.float64)
    # Long features would all be clipped: a public constant brings them to a length of about one.
    rows /= np.sqrt(rows.shape[1])
    with np.errstate(over="ignore"):
        lengths = np.linalg.norm(rows, axis=1)
    rows[~np.isfinite(lengths)] = 0.0
    lengths[~np.isfinite(lengths)] = 0.0
    labels = part.truth.astype(np.float64)
    weights = np.zeros((rows.shape[1], labels.shape[1]))
    expected = training.rate * len(rows)
    for _ in range(training.steps):
        batch = np.flatnonzero(generator.random(len(rows)) < training.rate)
        errors = 1 / (1 + np.exp(-(rows[batch] @ weights))) - labels[batch]
        norms = lengths[batch] * np.linalg.norm(errors, axis=1)
        errors *= np.minimum(1.0, training.norm / np.maximum(norms, 1e-12))[:, None]
        total = rows[batch].T @ errors
        total += noise * training.norm * generator.normal(size=total.shape)
        weights -= training.speed * total / expected
    weights /= np.sqrt(rows.shape[1])
    return Heads(weights[:-1], weights[-1])
