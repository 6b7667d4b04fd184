"""Start centroids: public points by which phones sort what they heard, each to the nearest.

They come with an encoder, in the card of its file, for some numbers of dimensions and of centroids.
They lie in that encoder's public projection, so those of two encoders do not compare. 15 bits of
each coordinate are kept.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError, LocalError

USUAL_DIMENSIONS, USUAL_COUNTS = (8, 16, 32, 64), (10, 20, 40)
"""Dimensions and counts of start centroids, every pair of which is in the card of an encoder that
`earshot train` makes."""
WITH_ALL = "contrast-3"
"""Shipped encoder whose card has every such pair."""

MOST = 1024
"""Most start centroids in one set."""

_STEPS = 2**15 - 1
"""Steps of a coordinate between 0 and 1."""
_WIRE = np.dtype("<i2")


class MissingCentroidsError(LocalError):
    """An encoder without the requested start centroids; the message lists those that it has."""


class CentroidSet(msgspec.Struct, frozen=True, kw_only=True):
    """Start centroids of one number of dimensions.

    Attributes:
        dimensions: Dimensions of the projection, d.
        count: Number of centroids, k.
        rows: Coordinates of the centroids, k rows of d, int16 little-endian, of which 32,767 is 1.
            In JSON: base64.
    """

    dimensions: int
    count: int
    rows: bytes

    @classmethod
    def of(cls, centroids: NDArray[np.floating]) -> CentroidSet:
        """Pack centroids into a set.

        Args:
            centroids: Array (count, dimensions), rows of any length; their directions are kept.

        Raises:
            InvalidInputError: The array has another shape or more than `MOST` rows, or a row has no
                direction.
        """
        if centroids.ndim != 2 or not all(centroids.shape) or len(centroids) > MOST:
            raise InvalidInputError(
                f"start centroids must have shape (1 to {MOST}, dimensions), not {centroids.shape}"
            )
        largest = np.abs(centroids).max(axis=1, keepdims=True)
        if not (np.isfinite(largest) & (largest > 0)).all():
            raise InvalidInputError("every start centroid must be finite and none may be zero")
        rows = centroids.astype(np.float64) / largest  # so that no square overflows
        unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        steps = np.rint(unit * _STEPS).astype(_WIRE)
        count, dimensions = centroids.shape
        return cls(dimensions=dimensions, count=count, rows=steps.tobytes())

    def centroids(self) -> NDArray[np.float32]:
        """Return the centroids, float32 (count, dimensions), unit rows; a new copy at each call."""
        rows = self._rows()
        return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), dtype=np.float32)

    def flaw(self, most_dimensions: int) -> str | None:
        """Return what is wrong with the set, or None; embeddings have at most `most_dimensions`."""
        named = f"start centroids ({self.count} in {self.dimensions} dimensions)"
        if not (1 <= self.dimensions <= most_dimensions and 1 <= self.count <= MOST):
            return f"{named} must be 1 to {MOST} in 1 to {most_dimensions} dimensions"
        expected = self.count * self.dimensions * _WIRE.itemsize
        if len(self.rows) != expected:
            return f"{named} must have {expected} bytes, not {len(self.rows)}"
        # Rounding moves a coordinate by half a step at most, and a row by √d times that.
        off = np.abs(np.linalg.norm(self._rows(), axis=1) - 1).max()
        if off > math.sqrt(self.dimensions) / _STEPS:
            return f"{named} must have rows of length 1; one is off by {off:.2g}"
        return None

    def _rows(self) -> NDArray[np.float64]:
        steps = np.frombuffer(self.rows, dtype=_WIRE).reshape(self.count, self.dimensions)
        return steps / _STEPS


def flaw(sets: Sequence[CentroidSet], most_dimensions: int) -> str | None:
    """Return what is wrong with the sets that a file holds; None if nothing is.

    Args:
        sets: Sets as they were read.
        most_dimensions: Length of an embedding.
    """
    if len({(each.dimensions, each.count) for each in sets}) < len(sets):
        return "each pair of a number of start centroids and of dimensions must occur only once"
    return next(filter(None, (each.flaw(most_dimensions) for each in sets)), None)


def chosen(
    sets: Sequence[CentroidSet], encoder: str, dimensions: int, count: int
) -> NDArray[np.float32]:
    """Return the start centroids of an encoder for a number of dimensions and of centroids.

    Args:
        sets: All sets that the encoder has.
        encoder: Name of the encoder.
        dimensions: Dimensions of the projection, d.
        count: Number of centroids, k.

    Returns:
        float32 (count, dimensions), unit rows; a new copy.

    Raises:
        MissingCentroidsError: The encoder has no such set.
    """
    for each in sets:
        if (each.dimensions, each.count) == (dimensions, count):
            return each.centroids()
    has = ", ".join(f"{each.count} in {each.dimensions}" for each in sets) or "none at all"
    either = "choose from what this one has, or take" if sets else "take"
    raise MissingCentroidsError(
        f"encoder '{encoder}' has no {count} start centroids in {dimensions} dimensions; it has "
        f"{has}. The shipped {WITH_ALL} and encoders that `earshot train` makes have "
        f"{_listed(USUAL_COUNTS)} in each of {_listed(USUAL_DIMENSIONS)} dimensions: {either} "
        "one of those; a learning phase (--discovery local) needs none"
    )


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"
