"""Fréchet distance of two sets of embeddings, as a measure of generated against real sound.

Each set is modelled as normal, and the distance is that of Dowson and Landau (Journal of
Multivariate Analysis, 1982), squared, as Heusel et al. (NeurIPS 2017) use it for images. It
measures how similar two sets are, not how good a clip is. Covariances are estimated, so the
distance of two sets of one distribution is above zero, and larger for smaller sets: compare it with
the distance of real sound from real sound, with sets of the same size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidInputError
from earshot_simulations.sweeps.estimate import Estimate, estimate
from earshot_studies.pate_aae.public_embedding import NOTE

SAMPLES_PER_DIMENSION = 10
"""Least samples per dimension; with fewer, an estimated covariance is mostly noise."""


class TooFewSamplesError(InvalidInputError):
    """There are fewer than ten samples for each dimension of an embedding."""


@dataclass(frozen=True)
class Fidelity:
    """Distances of generated sound from real sound, and of real sound from itself.

    Attributes:
        generated: Distance of generated sound from one half of the real clips, over random halves.
        real: Distance of the two halves, over the same random halves.
        size: Clips and samples in each set.
        dimensions: Dimensions of the embedding.
        note: Remark that must accompany the figures.
    """

    generated: Estimate
    real: Estimate
    size: int
    dimensions: int
    note: str = NOTE


def distance(some: Numbers, others: Numbers) -> float:
    """Return the squared Fréchet distance of normal distributions fitted to two sets.

    Args:
        some: First set, (n, dimensions).
        others: Second set, (m, dimensions).

    Raises:
        TooFewSamplesError: A set has fewer than ten samples per dimension.
        InvalidInputError: The shapes differ in other ways, or numbers are not finite.
    """
    one, other = _checked("some", some), _checked("others", others)
    if one.shape[1] != other.shape[1]:
        raise InvalidInputError(
            f"embeddings of {one.shape[1]} and of {other.shape[1]} dimensions: must be the same"
        )
    return of_laws(
        one.mean(axis=0),
        np.cov(one, rowvar=False, ddof=1),
        other.mean(axis=0),
        np.cov(other, rowvar=False, ddof=1),
    )


def of_laws(
    mean: Numbers,
    covariance: Numbers,
    other_mean: Numbers,
    other: Numbers,
) -> float:
    """Return ‖μ₁ − μ₂‖² + tr Σ₁ + tr Σ₂ − 2 tr (Σ₁^½ Σ₂ Σ₁^½)^½ of two normal distributions.

    Args:
        mean: Mean μ₁, (dimensions,).
        covariance: Covariance Σ₁, (dimensions, dimensions).
        other_mean: Mean μ₂, (dimensions,).
        other: Covariance Σ₂, (dimensions, dimensions).
    """
    first, second = np.atleast_2d(covariance), np.atleast_2d(other)
    # All three are symmetric and have no negative eigenvalues, except by rounding.
    values, vectors = np.linalg.eigh(first)
    root = (vectors * np.sqrt(values.clip(0))) @ vectors.T
    inner = np.linalg.eigvalsh(root @ second @ root).clip(0)
    apart = float(np.sum(np.square(np.asarray(mean) - other_mean)))
    spread = float(np.trace(first) + np.trace(second) - 2 * np.sqrt(inner).sum())
    return apart + max(0.0, spread)


def fidelity(real: Numbers, generated: Numbers, splits: int = 10, seed: int = 0) -> Fidelity:
    """Return distances over random halves of the real clips, with sets of one size.

    Each split shuffles the real clips and the samples, and compares one half of the clips with the
    other half and with as many samples. Splits share clips, so the intervals reflect the halving
    only, not the variation between trainings.

    Args:
        real: Embeddings of real clips, (n, dimensions).
        generated: Embeddings of samples, (m, dimensions).
        splits: Number of random halvings.
        seed: Seed of the halvings.

    Raises:
        TooFewSamplesError: Half of the clips, or the samples, are fewer than ten per dimension.
        InvalidInputError: The shapes do not fit, or numbers are not finite.
        InvalidParametersError: There are no splits.
    """
    checks.whole("splits", splits)
    samples = _checked("generated", generated)
    clips = _checked("real", real, halves=True)
    if clips.shape[1] != samples.shape[1]:
        raise InvalidInputError(
            f"embeddings of {clips.shape[1]} and of {samples.shape[1]} dimensions: must be the same"
        )
    generator = np.random.default_rng(seed)
    size = min(len(clips) // 2, len(samples))
    far, near = [], []
    for _ in range(splits):
        order = generator.permutation(len(clips))
        half = clips[order[:size]]
        drawn = samples[generator.permutation(len(samples))[:size]]
        far.append(distance(drawn, half))
        near.append(distance(clips[order[size : 2 * size]], half))
    return Fidelity(estimate(far), estimate(near), size, clips.shape[1])


def _checked(name: str, embeddings: Numbers, halves: bool = False) -> Numbers:
    table = np.asarray(embeddings)
    if table.ndim != 2 or not table.shape[1] or table.dtype.kind != "f":
        raise InvalidInputError(
            f"{name}: {table.dtype} of shape {table.shape}; must be floating-point numbers, one "
            "embedding per row"
        )
    if not np.isfinite(table).all():
        raise InvalidInputError(f"{name}: must be finite numbers")
    needed = SAMPLES_PER_DIMENSION * table.shape[1]
    if len(table) // (2 if halves else 1) < needed:
        whole = f"{2 * needed}, in two halves" if halves else str(needed)
        raise TooFewSamplesError(
            f"{name}: {len(table)} samples of {table.shape[1]} dimensions; a Fréchet distance "
            f"needs {SAMPLES_PER_DIMENSION} per dimension, {whole}"
        )
    return table.astype(np.float64)
