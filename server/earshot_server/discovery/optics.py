"""Global clustering by OPTICS (Ankerst et al. 1999)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidInputError, RemoteError
from earshot_protocol.geometry import Geometry, unit_rows
from earshot_server.discovery.interface import LEFT_OUT, Discovered
from earshot_server.discovery.reachability import reachability


class NothingFoundError(RemoteError):
    """The points that phones published form no cluster."""


@dataclass(frozen=True)
class Optics:
    """OPTICS with clusters extracted by the ξ method.

    The least number of points in a cluster grows with the square root of all points, as chance
    accumulations do. It is kept low on purpose: a cluster too many costs one candidate, which the
    vote throws out or `merging` joins to its neighbour; a cluster missed is an environment lost.

    Time grows with the square of the points, and of more than `most` a sample tells as much: a
    cluster that it misses has few of all points.

    Attributes:
        least_per_root: least points of a cluster, per square root of the number of all points.
        xi: the steepness that bounds a cluster, between 0 and 1.
        most: points that are looked at; of more, as many at random.
        seed: of that sample, which is so the same for everybody who has the points.
    """

    least_per_root: float = 0.2
    xi: float = 0.02
    most: int = 100_000
    seed: int = 0

    def discover(self, points: npt.NDArray[np.float32], geometry: Geometry) -> Discovered:
        """Cluster the union of what phones published.

        Args:
            points: (points, dimensions), finite.
            geometry: Euclidean distance, or the angle between directions.

        Returns:
            A centroid per cluster: the mean of its points that were looked at, on the unit sphere
            where the geometry is spherical.

        Raises:
            InvalidInputError: fewer than two points.
            NothingFoundError: no cluster of the required size.
        """
        from sklearn.cluster import cluster_optics_xi

        if len(points) < 2:
            raise InvalidInputError(f"{len(points)} points: a clustering needs at least 2")
        spherical = geometry is Geometry.SPHERICAL
        looked_at = self._sample(len(points))
        rows = points[looked_at].astype(np.float64)
        # On the unit sphere Euclidean distance grows with the angle, so one index serves both.
        rows = unit_rows(rows) if spherical else rows
        least = self.least(len(rows))
        plot = reachability(rows, least)
        # Points that coincide have reachability zero, by which the ξ method divides; the infinite
        # and undefined ratios that come of it compare as they should.
        with np.errstate(divide="ignore", invalid="ignore"):
            labels, _ = cluster_optics_xi(
                reachability=plot.reach, predecessor=plot.before, ordering=plot.ordering,
                min_samples=least, min_cluster_size=least, xi=self.xi,
            )  # fmt: skip
        total = int(labels.max()) + 1
        if not total:
            raise NothingFoundError(
                f"no cluster of at least {least} of {len(rows)} published centroids"
            )
        centroids = np.stack([rows[labels == cluster].mean(axis=0) for cluster in range(total)])
        if spherical:
            centroids = unit_rows(centroids)
        clusters = np.full(len(points), LEFT_OUT, dtype=np.int64)
        clusters[looked_at] = labels
        return Discovered(centroids.astype(np.float32), clusters)

    def _sample(self, points: int) -> npt.NDArray[np.int64]:
        if points <= self.most:
            return np.arange(points)
        generator = np.random.default_rng(self.seed)
        return np.sort(generator.choice(points, self.most, replace=False))

    def least(self, points: int) -> int:
        """How many of so many points a cluster has at least."""
        return min(points, max(5, round(self.least_per_root * math.sqrt(points))))
