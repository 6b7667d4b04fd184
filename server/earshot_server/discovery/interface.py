"""Interface of discovery on the local route: points in, global centroids out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import Geometry

OUTLIER, LEFT_OUT = -1, -2
"""Labels of an outlier, and of a point that was not clustered."""


@dataclass(frozen=True, repr=False)
class FoundCentroids:
    """Result of a discovery.

    Attributes:
        centroids: Global centroids, float32 (global centroids, dimensions).
        clusters: Index of each point's global centroid, -1 for an outlier, or -2 for a point that
            was not clustered, int64 (points,).
    """

    centroids: npt.NDArray[np.float32]
    clusters: npt.NDArray[np.int64]

    def __repr__(self) -> str:
        return (
            f"FoundCentroids(centroids of shape {np.shape(self.centroids)}, "
            f"clusters of shape {np.shape(self.clusters)})"
        )


class CentroidDiscovery(Protocol):
    """Method that finds global centroids in the union of published points (Algorithm 1, step 6)."""

    def discover(self, points: npt.NDArray[np.float32], geometry: Geometry) -> FoundCentroids:
        """Cluster the union of what phones published.

        Args:
            points: Published points, float32 (points, dimensions).
            geometry: `"euclidean"` for coordinates, or `"spherical"` for directions, whose points
                have length 1.

        Returns:
            A centroid for each cluster, and the cluster of each point.
        """
