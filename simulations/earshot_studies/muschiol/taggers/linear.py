"""A tagger that is trained in a tenth of a second: logistic regressions on what bands do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_models.tagging.mel_power import log_mel
from earshot_studies.kit.mixtures.embedding import Part
from earshot_studies.kit.mixtures.ensembles import Heads, trained

PENALTY = 1.0
"""Inverse strength of regularization, on features of unit variance."""


@dataclass(frozen=True)
class Scale:
    """What brings features to mean 0 and deviation 1; of public mixtures.

    Attributes:
        mean, deviation: of each feature, float64 (2 · bands,).
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def of(cls, power: NDArray[np.float32]) -> Scale:
        """From the mel power of some mixtures, (mixtures, frames, bands)."""
        raw = _bands(power)
        return cls(raw.mean(axis=0), np.maximum(raw.std(axis=0), 1e-6))

    def features(self, power: NDArray[np.float32]) -> NDArray[np.float32]:
        """Of mel power (mixtures, frames, bands), float32 (mixtures, 2 · bands)."""
        return ((_bands(power) - self.mean) / self.deviation).astype(np.float32)


@dataclass(frozen=True)
class LinearTagger:
    """One logistic regression a label; a label that was never met is never named.

    Attributes:
        heads: of the labels.
        scale: of features.
    """

    heads: Heads
    scale: Scale

    @classmethod
    def trained(
        cls, power: NDArray[np.float32], truth: NDArray[np.integer], scale: Scale
    ) -> LinearTagger:
        """Fitted to mel power (mixtures, frames, bands) and what is in it, (mixtures, labels)."""
        part = Part(scale.features(power), truth.astype(np.int8))
        return cls(trained(part, PENALTY), scale)

    def probabilities(self, power: NDArray[np.float32]) -> NDArray[np.float32]:
        """How likely each label is, float32 (mixtures, labels)."""
        return self.heads.probabilities(self.scale.features(power)).astype(np.float32)


def _bands(power: NDArray[np.float32]) -> NDArray[np.float64]:
    """Mean and deviation over time of each band of the log-mel."""
    logs = log_mel(power)
    return np.hstack([logs.mean(axis=1), logs.std(axis=1)]).astype(np.float64)
