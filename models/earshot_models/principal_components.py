"""Principal components with damped whitening: the fit of an encoder without a network."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError, InvalidParametersError


@dataclass(frozen=True)
class PrincipalComponents:
    """The map (x - mean) @ weights.

    Attributes:
        mean: float64 (features,).
        weights: float64 (features, dimensions); the columns' order is by descending variance.
    """

    mean: NDArray[np.float64]
    weights: NDArray[np.float64]


def fit(
    features: NDArray[np.floating], dimensions: int, whitening: float = 0.5
) -> PrincipalComponents:
    """Principal components of standardised features.

    Args:
        features: finite floats (examples, features).
        dimensions: components to keep, from 1 to the number of features.
        whitening: 0 keeps each component's variance λ, 0.5 makes it one; between, the component
            is divided by λ**whitening, which leaves a damped part of its variance.

    Returns:
        The map. The largest weight of each component is positive, so that the sign is fixed.

    Raises:
        InvalidInputError: if `features` has another shape or type, fewer than two examples, an
            entry that is not finite or a feature that never varies.
        InvalidParametersError: if `dimensions` or `whitening` is out of range, or more components
            are asked for than the examples span.
    """
    examples = _checked(features)
    if not 1 <= dimensions <= examples.shape[1]:
        raise InvalidParametersError(
            f"dimensions must be 1 to the {examples.shape[1]} features, not {dimensions}"
        )
    if not 0 <= whitening <= 0.5:
        raise InvalidParametersError(f"whitening must be 0 to 0.5, not {whitening}")
    mean, deviation = examples.mean(axis=0), examples.std(axis=0)
    if not (deviation > 1e-12 * np.abs(mean)).all():
        raise InvalidInputError("every feature must vary over the examples")
    standard = (examples - mean) / deviation
    variances, directions = np.linalg.eigh(standard.T @ standard / len(standard))
    variances, directions = variances[::-1][:dimensions], directions[:, ::-1][:, :dimensions]
    if variances[-1] <= 1e-9 * variances[0]:
        raise InvalidParametersError(
            f"the examples span fewer than {dimensions} dimensions; ask for fewer, or give more"
        )
    largest = np.abs(directions).argmax(axis=0)
    signs = np.sign(directions[largest, np.arange(dimensions)])
    weights = directions * (signs * variances**-whitening) / deviation[:, np.newaxis]
    return PrincipalComponents(mean, weights)


def _checked(features: NDArray[np.floating]) -> NDArray[np.float64]:
    if features.ndim != 2 or len(features) < 2 or features.dtype.kind != "f":
        raise InvalidInputError(
            "features must be floats of shape (examples, features) with at least 2 examples, not "
            f"{features.dtype} of shape {features.shape}"
        )
    if not np.isfinite(features).all():
        raise InvalidInputError("features must be finite")
    return features.astype(np.float64)
