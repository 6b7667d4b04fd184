"""A tagger that is trained in a tenth of a second: logistic regressions on statistics of bands."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_studies.kit.mixtures.embedding import Part
from earshot_studies.kit.mixtures.ensembles import Heads, trained
from earshot_studies.muschiol.tagging.mel_power import log_mel

PENALTY = 1.0
"""Inverse strength of the regularization, on features of unit variance."""


@dataclass(frozen=True)
class FeatureScale:
    """Scale that brings features to mean 0 and deviation 1; of public mixtures.

    Attributes:
        mean, deviation: Mean and standard deviation of each feature, float64 (2 · bands,).
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def of(cls, power: NDArray[np.float32]) -> FeatureScale:
        """Fit the scale to the mel power of some mixtures, (mixtures, frames, bands)."""
        raw = _bands(power)
        return cls(raw.mean(axis=0), np.maximum(raw.std(axis=0), 1e-6))

    def features(self, power: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return features float32 (mixtures, 2 · bands) of mel power (mixtures, frames, bands)."""
        return ((_bands(power) - self.mean) / self.deviation).astype(np.float32)


@dataclass(frozen=True)
class LinearTagger:
    """Logistic regressions, one per label; a label without examples is never named.

    Attributes:
        heads: Heads of the labels.
        scale: Scale of the features.
    """

    heads: Heads
    scale: FeatureScale

    @classmethod
    def trained(
        cls, power: NDArray[np.float32], truth: NDArray[np.integer], scale: FeatureScale
    ) -> LinearTagger:
        """Fit to mel power (mixtures, frames, bands) and its labels, (mixtures, labels)."""
        part = Part(scale.features(power), truth.astype(np.int8))
        return cls(trained(part, PENALTY), scale)

    def probabilities(self, power: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the probability of each label, float32 (mixtures, labels)."""
        return self.heads.probabilities(self.scale.features(power)).astype(np.float32)


def _bands(power: NDArray[np.float32]) -> NDArray[np.float64]:
    """Return the mean and deviation over time of each band of the log-mel."""
    logs = log_mel(power)
    return np.hstack([logs.mean(axis=1), logs.std(axis=1)]).astype(np.float64)
