"""Distances between points, and the centroid that is nearest to a point.

Every sensitivity in this project rests on one recording counting for exactly one centroid. So the
centroid of a row must be a function of that row and the centroids alone, to the last bit. A plain
floating-point matrix product is not: it rounds differently with the number of rows, and one more
recording could move another one across a border. Here either every operation is element by element
(Euclidean), or the product is taken of integers that doubles add without rounding (spherical).
"""

from __future__ import annotations

import enum

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidInputError


class Geometry(enum.StrEnum):
    """Euclidean distance, or the angle between directions (cosine distance)."""

    EUCLIDEAN = "euclidean"
    SPHERICAL = "spherical"


_SPHERE_GRID = 2.0**24
"""Steps per unit length: finer than float32, with inner products that stay below 2^53."""
_LARGEST = 1e150
"""Largest magnitude of an entry: its square is still a double."""


def finite_rows(name: str, array: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Return the rows as float64, shape (rows, dimensions).

    Raises:
        InvalidInputError: The array is not a real, finite matrix with at least one column; the
            message calls it `name`.
    """
    rows = np.asarray(array)
    if rows.ndim != 2 or rows.shape[1] == 0:
        raise InvalidInputError(f"{name} of shape {rows.shape}: give (rows, dimensions)")
    if rows.dtype.kind not in "iuf":
        raise InvalidInputError(f"{name} of type {rows.dtype}: give real numbers")
    rows = np.ascontiguousarray(rows, dtype=np.float64)
    if not (np.abs(rows) <= _LARGEST).all():
        raise InvalidInputError(f"{name}: an entry is not finite, or beyond ±{_LARGEST:g}")
    return rows


def unit_rows(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Scale rows of shape (rows, dimensions) to length one; a row of zeros stays unchanged."""
    largest = np.abs(rows).max(axis=1, keepdims=True)
    # Dividing by the largest entry first keeps the squares from over- or underflowing.
    scaled: npt.NDArray[np.float64] = rows / np.where(largest > 0, largest, 1.0)
    norms = np.sqrt(np.square(scaled).sum(axis=1, keepdims=True))
    return scaled / np.where(norms > 0, norms, 1.0)


def nearest(
    points: npt.ArrayLike, centroids: npt.ArrayLike, geometry: Geometry
) -> npt.NDArray[np.int64]:
    """Return the nearest centroid of every point; of equally near ones, the first.

    Each entry depends on its own point and the centroids alone, whatever other points there are.

    Args:
        points: Points of shape (recordings, dimensions); there may be none.
        centroids: Centroids of shape (centroids, dimensions), at least one.
        geometry: Euclidean distance, or the cosine of the angle (lengths do not matter).

    Returns:
        Indices of centroids, int64 of shape (recordings,).

    Raises:
        InvalidInputError: Shapes do not fit, an entry is not finite, or the geometry is unknown.
    """
    points, centroids = finite_rows("points", points), finite_rows("centroids", centroids)
    if len(centroids) == 0 or points.shape[1] != centroids.shape[1]:
        raise InvalidInputError(
            f"points of shape {points.shape} and centroids of shape {centroids.shape}: "
            "give at least one centroid, and the same number of columns in both"
        )
    if geometry == Geometry.SPHERICAL:
        distances = -_sphere_grid(points) @ _sphere_grid(centroids).T
    elif geometry == Geometry.EUCLIDEAN:
        distances = _squared_distances(points, centroids)
    else:
        raise InvalidInputError(f"geometry={geometry!r}: give one of {', '.join(Geometry)}")
    indices: npt.NDArray[np.int64] = np.argmin(distances, axis=1)
    return indices


def counts(
    points: npt.ArrayLike, centroids: npt.ArrayLike, geometry: Geometry
) -> npt.NDArray[np.int64]:
    """Count the points that are nearest to each centroid (thesis, Algorithm 1, steps 4 and 7).

    One more recording raises exactly one count by exactly one.

    Args:
        points: Points of shape (recordings, dimensions); there may be none.
        centroids: Centroids of shape (centroids, dimensions), at least one.
        geometry: Kind of distance, as in `nearest`.

    Returns:
        Counts, int64 of shape (centroids,), adding up to the number of recordings.

    Raises:
        InvalidInputError: The input is one that `nearest` refuses.
    """
    indices = nearest(points, centroids, geometry)
    return np.bincount(indices, minlength=len(np.asarray(centroids))).astype(np.int64)


def _squared_distances(
    points: npt.NDArray[np.float64], centroids: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    distances = np.zeros((len(points), len(centroids)))
    for point_column, centroid_column in zip(points.T, centroids.T, strict=True):
        difference = point_column[:, None] - centroid_column
        distances += difference * difference
    return distances


def _sphere_grid(rows: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    grid: npt.NDArray[np.float64] = np.rint(unit_rows(rows) * _SPHERE_GRID)
    return grid
