"""Projection of a network's output on 128 components that discriminate recordings.

Directions in which seconds of one recording vary, or a second and its copy heard in a pocket, are
scaled down: they carry no information about the place. Then the components in which rare sounds
vary come first, because public sound is not distributed as what phones hear: it has thousands of
spoken digits and few cafés.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.checks import between
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

NEIGHBOURS = 10
"""Neighbours by which `rarity` goes."""

_LEAST_DISTANCE = 0.01
"""Least distance to the neighbours, so that copies of one sound keep some weight."""


@dataclass(frozen=True)
class Components:
    """Principal components of embeddings of public sound, with a degree of whitening.

    Attributes:
        turn: Matrix that turns embeddings into their components, float64 (features, 128).
        mean: Mean of the turned rows, brought to unit length again, float32 (128,).
        scale: Factors of the centred coordinates, float32 (128,), applied before `project` keeps
            the leading ones and brings them to unit length.
    """

    turn: NDArray[np.float64]
    mean: NDArray[np.float32]
    scale: NDArray[np.float32]

    def projected(self, embeddings: NDArray[np.floating], dimensions: int) -> NDArray[np.float32]:
        """Project embeddings as `Encoder.project` does: float32 (batch, dimensions), unit rows.

        Args:
            embeddings: Unit rows before `turn`, (batch, features).
            dimensions: Dimensions to keep, 1 to 128.
        """
        return _unit(((self.turned(embeddings) - self.mean) * self.scale)[:, :dimensions])

    def turned(self, embeddings: NDArray[np.floating]) -> NDArray[np.float32]:
        """Turn embeddings as `Encoder.embed` does: float32 (batch, 128), unit rows."""
        return _unit(embeddings @ self.turn)


def public_components(
    embeddings: NDArray[np.floating],
    whitening: float,
    normalization: NDArray[np.float64] | None = None,
) -> Components:
    """Compute the principal components of embeddings (thesis, section 10.1: their scale).

    The 128 components span the directions of largest variance. Among them, those come first in
    which embeddings weighted by their `rarity` vary most: a projection keeps few, and they would
    otherwise be those of the most frequent sounds.

    Args:
        embeddings: Embeddings of public sound, unit rows (examples, features): at least 128
            features, and more than 128 examples.
        whitening: Exponent of the whitening: a coordinate of variance λ is divided by λ**whitening,
            so 0 keeps the variances and 0.5 equalizes them.
        normalization: Matrix that rows are multiplied by first, (features, features); None for the
            identity.

    Raises:
        InvalidInputError: There are too few examples or features, or an embedding is not finite.
        InvalidParametersError: The exponent `whitening` is not 0 to 0.5.
    """
    if embeddings.ndim != 2 or min(embeddings.shape[1], len(embeddings) - 1) < DIMENSIONS:
        raise InvalidInputError(
            f"embeddings must have shape (more than {DIMENSIONS}, {DIMENSIONS} or more), not "
            f"{embeddings.shape}"
        )
    if not np.isfinite(embeddings).all():
        raise InvalidInputError("embeddings must be finite")
    between("whitening", whitening, 0, 0.5)
    turn = np.eye(embeddings.shape[1]) if normalization is None else normalization
    rows = embeddings.astype(np.float64) @ turn
    kept = _principal(rows, None)[:, :DIMENSIONS]
    rotation = kept @ _principal(rows @ kept, rarity(_unit(rows)))
    largest = np.abs(rotation).argmax(axis=0)
    rotation = rotation * np.sign(rotation[largest, np.arange(DIMENSIONS)])
    turned = _unit(rows @ rotation)
    variances = np.maximum(turned.var(axis=0), 1e-9)
    scale = variances**-whitening
    scale /= np.sqrt(np.mean(variances * scale**2))
    return Components(turn @ rotation, turned.mean(axis=0), scale.astype(np.float32))


def _principal(
    rows: NDArray[np.float64], weights: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """Return the directions of rows by descending variance, in columns."""
    covariance = np.cov(rows, rowvar=False, aweights=weights)
    return np.asarray(np.linalg.eigh(covariance)[1][:, ::-1])


def rarity(points: NDArray[np.floating]) -> NDArray[np.float64]:
    """Return the squared mean distance of each point to its ten nearest others.

    Public collections hold most of what is easy to record; as weights, these let every kind of
    sound count (docs/decisions/0084).

    Args:
        points: Rows, more than 10, (examples, dimensions).

    Returns:
        float64 (examples,), at least 10⁻⁴.
    """
    from sklearn.neighbors import NearestNeighbors

    neighbours = NearestNeighbors(n_neighbors=NEIGHBOURS + 1).fit(points)
    distances = neighbours.kneighbors(points)[0][:, 1:].mean(axis=1)
    return np.asarray(np.maximum(distances, _LEAST_DISTANCE) ** 2, dtype=np.float64)


def within_class_normalization(
    embeddings: NDArray[np.floating],
    recordings: NDArray[np.integer],
    heard_again: Sequence[NDArray[np.floating]],
    share: float,
    weight: float,
) -> NDArray[np.float64]:
    """Normalize by within-class covariance (Hatch, Kajarekar and Stolcke 2006), a class per place.

    The covariance is that of seconds of one recording around their mean, plus `weight` times that
    of one second heard in several ways, each at a mean variance of 1: pockets change an embedding
    more than seconds do, and would hide how these differ. Neither needs a label. With few
    recordings the covariance is shrunk towards the identity (Ledoit and Wolf 2004).

    Args:
        embeddings: Embeddings of public sound, unit rows (seconds, features).
        recordings: Recording that each second was cut from, integers (seconds,).
        heard_again: Embeddings of the same seconds heard in other ways, unit rows
            (seconds, features) each.
        share: Share of the covariance that is kept as measured, 0 to less than 1; the rest is its
            mean variance in every direction.
        weight: Weight of `heard_again` beside the recordings, at least 0.

    Returns:
        The symmetric inverse square root (features, features), in units in which the mean variance
        is 1.

    Raises:
        InvalidInputError: Nothing differs, or the shapes do not match.
        InvalidParametersError: The `share` or the `weight` is out of range.
    """
    if not 0 <= share < 1:
        raise InvalidParametersError(f"share={share}: must be at least 0 and less than 1")
    between("weight", weight, 0)
    shapes = {embeddings.shape, *(each.shape for each in heard_again)}
    if len(shapes) != 1 or recordings.shape != embeddings.shape[:1]:
        raise InvalidInputError(
            f"embeddings and views must have one shape, and a recording for each row; not {shapes} "
            f"and {recordings.shape}"
        )
    rows = embeddings.astype(np.float64)
    changed = np.zeros((rows.shape[1],) * 2)
    for each in heard_again:
        changed += (rows - each).T @ (rows - each)
    covariance = _scaled(_around_recordings(rows, recordings)) + weight * _scaled(changed)
    if not np.trace(covariance) > 0:
        raise InvalidInputError("no recording has two seconds that differ, and no view differs")
    shrunk = share * _scaled(covariance) + (1 - share) * np.eye(len(covariance))
    variances, directions = np.linalg.eigh(shrunk)
    return np.asarray(directions * variances**-0.5 @ directions.T)


def _scaled(covariance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Scale a covariance to a mean variance of 1; one of zeros stays."""
    mean = np.trace(covariance) / len(covariance)
    return covariance / mean if mean > 0 else covariance


def _around_recordings(
    rows: NDArray[np.float64], recordings: NDArray[np.integer]
) -> NDArray[np.float64]:
    """Return the scatter of rows around their recording's mean; zeros if none has two rows."""
    _, which, counts = np.unique(recordings, return_inverse=True, return_counts=True)
    sums = np.zeros((len(counts), rows.shape[1]))
    np.add.at(sums, which, rows)
    around = rows - (sums / counts[:, np.newaxis])[which]
    return np.asarray(around.T @ around)


def _unit(rows: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)
