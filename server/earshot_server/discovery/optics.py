"""Global clustering by OPTICS (Ankerst et al. 1999; scikit-learn's implementation)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidInputError, RemoteError
from earshot_protocol.geometry import Geometry, unit_rows
from earshot_server.discovery.interface import Discovered


class NothingFoundError(RemoteError):
    """The points that phones published form no cluster."""


@dataclass(frozen=True)
class Optics:
    """OPTICS with clusters extracted by the ξ method.

    Attributes:
        smallest_share: a cluster holds at least this share of the points.
        xi: the steepness that bounds a cluster, between 0 and 1.
    """

    smallest_share: float = 0.01
    xi: float = 0.02

    def discover(self, points: npt.NDArray[np.float32], geometry: Geometry) -> Discovered:
        """Cluster the union of what phones published.

        Args:
            points: (points, dimensions), finite.
            geometry: Euclidean distance, or the angle between directions.

        Returns:
            A centroid per cluster: the mean of its points, on the unit sphere where the geometry
            is spherical.

        Raises:
            InvalidInputError: fewer than two points.
            NothingFoundError: no cluster of the required size.
        """
        from sklearn.cluster import OPTICS

        if len(points) < 2:
            raise InvalidInputError(f"{len(points)} points: a clustering needs at least 2")
        spherical = geometry is Geometry.SPHERICAL
        # On the unit sphere Euclidean distance grows with the angle, so one index serves both.
        rows = unit_rows(points.astype(np.float64)) if spherical else points.astype(np.float64)
        least = max(2, round(self.smallest_share * len(points)))
        clusters = (
            OPTICS(min_samples=least, xi=self.xi, min_cluster_size=least)
            .fit_predict(rows)
            .astype(np.int64)
        )
        total = int(clusters.max()) + 1
        if not total:
            raise NothingFoundError(
                f"no cluster of at least {least} of {len(points)} published centroids"
            )
        centroids = np.stack([rows[clusters == cluster].mean(axis=0) for cluster in range(total)])
        if spherical:
            centroids = unit_rows(centroids)
        return Discovered(centroids.astype(np.float32), clusters)
