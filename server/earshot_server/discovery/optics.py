"""Global clustering by OPTICS (Ankerst et al. 1999)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidInputError, RemoteError
from earshot_protocol.geometry import Geometry, unit_rows
from earshot_server.discovery.interface import Discovered
from earshot_server.discovery.reachability import reachability


class NothingFoundError(RemoteError):
    """The points that phones published form no cluster."""


@dataclass(frozen=True)
class Optics:
    """OPTICS with clusters extracted by the ξ method.

    The least number of points in a cluster grows with the square root of all points, as chance
    accumulations do. It is kept low on purpose: a cluster too many costs one candidate, which the
    vote throws out or `merging` joins to its neighbour; a cluster missed is an environment lost.

    Attributes:
        least_per_root: least points of a cluster, per square root of the number of all points.
        xi: the steepness that bounds a cluster, between 0 and 1.
    """

    least_per_root: float = 0.2
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
        from sklearn.cluster import cluster_optics_xi

        if len(points) < 2:
            raise InvalidInputError(f"{len(points)} points: a clustering needs at least 2")
        spherical = geometry is Geometry.SPHERICAL
        # On the unit sphere Euclidean distance grows with the angle, so one index serves both.
        rows = unit_rows(points.astype(np.float64)) if spherical else points.astype(np.float64)
        least = min(len(points), max(5, round(self.least_per_root * math.sqrt(len(points)))))
        # Points that coincide have reachability zero, by which the ξ method divides; the infinite
        # and undefined ratios that come of it compare as they should.
        plot = reachability(rows, least)
        with np.errstate(divide="ignore", invalid="ignore"):
            labels, _ = cluster_optics_xi(
                reachability=plot.reach, predecessor=plot.before, ordering=plot.ordering,
                min_samples=least, min_cluster_size=least, xi=self.xi,
            )  # fmt: skip
        clusters = labels.astype(np.int64)
        total = int(clusters.max()) + 1
        if not total:
            raise NothingFoundError(
                f"no cluster of at least {least} of {len(points)} published centroids"
            )
        centroids = np.stack([rows[clusters == cluster].mean(axis=0) for cluster in range(total)])
        if spherical:
            centroids = unit_rows(centroids)
        return Discovered(centroids.astype(np.float32), clusters)
