"""Global clustering by OPTICS (Ankerst et al. 1999)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidInputError, RemoteError
from earshot_protocol.geometry import Geometry, unit_rows
from earshot_protocol.overriding import override
from earshot_server.discovery.interface import LEFT_OUT, CentroidDiscovery, FoundCentroids
from earshot_server.discovery.reachability import Neighbours, reachability

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int64]

LEAST = 3
"""Smallest `min_samples` that is tried."""
FEWEST_CANDIDATES = 10
"""Largest number of candidates in the smallest crowds."""


class NothingFoundError(RemoteError):
    """The points that phones published form no cluster."""


@dataclass(frozen=True)
class Optics(CentroidDiscovery):
    """OPTICS with clusters extracted by the ξ method, as fine as the vote can distinguish.

    Shared places are weak modes among very noisy points, which a larger `min_samples` (the least
    number of points in a cluster) smooths away. It is therefore only as large as needed for the
    number of candidates to stay within what a vote can distinguish; a superfluous candidate costs
    little, because the vote drops it or `merging` joins it to its neighbour (docs/decisions/0042).

    Every cluster is small, and the mean of few noisy points is noisy: a candidate is the mean of
    the published points nearest to the cluster's mean, one step of mean shift (Fukunaga and
    Hostetler 1975).

    The running time is quadratic in the number of points. Of more than `most` points, a random
    sample is used: a cluster that it misses has a small share of the points.

    Attributes:
        xi: Steepness ξ that bounds a cluster, between 0 and 1.
        candidates: Largest number of clusters, for any number of points.
        points_per_candidate: Published points per candidate in a smaller crowd.
        nearest_share: Share of the points, those nearest to a cluster, whose mean is the candidate.
        most: Largest number of points that are clustered; of more, a random sample of this size.
        seed: Seed of that sample, so that it is reproducible.
    """

    xi: float = 0.005
    candidates: int = 100
    points_per_candidate: int = 20
    nearest_share: float = 0.02
    most: int = 30_000
    seed: int = 0

    @override
    def discover(self, points: npt.NDArray[np.float32], geometry: Geometry) -> FoundCentroids:
        """Cluster the union of what phones published.

        Args:
            points: Published points, (points, dimensions), finite.
            geometry: Euclidean distance, or the angle between directions.

        Returns:
            A centroid for each cluster, on the unit sphere if the geometry is spherical.

        Raises:
            InvalidInputError: There are fewer than two points.
            NothingFoundError: No cluster has the required size.
        """
        if len(points) < 2:
            raise InvalidInputError(f"{len(points)} points: a clustering needs at least 2")
        spherical = geometry is Geometry.SPHERICAL
        looked_at = self._sample(len(points))
        rows = points[looked_at].astype(np.float64)
        # On the unit sphere Euclidean distance grows with the angle, so one index serves both.
        rows = unit_rows(rows) if spherical else rows
        neighbours = Neighbours(rows)
        labels = self._finest(rows, neighbours)
        total = int(labels.max()) + 1
        if not total:
            raise NothingFoundError(
                f"no cluster of at least {LEAST} of {len(rows)} published centroids"
            )
        centroids = np.stack([rows[labels == cluster].mean(axis=0) for cluster in range(total)])
        share = max(LEAST, round(self.nearest_share * len(rows)))
        centroids = rows[neighbours.of(centroids, min(share, len(rows)))].mean(axis=1)
        if spherical:
            centroids = unit_rows(centroids)
        clusters = np.full(len(points), LEFT_OUT, dtype=np.int64)
        clusters[looked_at] = labels
        return FoundCentroids(centroids.astype(np.float32), clusters)

    def allowed(self, points: int) -> int:
        """Return the largest number of candidates for this many published points."""
        return min(self.candidates, max(FEWEST_CANDIDATES, points // self.points_per_candidate))

    def _finest(self, rows: Floats, neighbours: Neighbours) -> Labels:
        """Return the labels at the smallest `min_samples` with at most `allowed` candidates.

        The value is doubled until there are few enough candidates, then found by bisection. The
        number of candidates decreases in it, apart from noise.
        """
        allowed = self.allowed(len(rows))
        fine, coarse = LEAST - 1, min(LEAST, len(rows))
        labels = self._labels(rows, coarse, neighbours)
        while labels.max() >= allowed and coarse < len(rows):
            fine, coarse = coarse, min(2 * coarse, len(rows))
            labels = self._labels(rows, coarse, neighbours)
        while coarse - fine > 1:
            middle = (fine + coarse) // 2
            found = self._labels(rows, middle, neighbours)
            if found.max() < allowed:
                coarse, labels = middle, found
            else:
                fine = middle
        return labels

    def _labels(self, rows: Floats, least: int, neighbours: Neighbours) -> Labels:
        """Return the cluster of each row, int64 (rows,), -1 for an outlier."""
        from sklearn.cluster import cluster_optics_xi

        plot = reachability(rows, least, neighbours=neighbours)
        # Points that coincide have reachability zero, by which the ξ method divides; the resulting
        # infinite and undefined ratios compare as they should.
        with np.errstate(divide="ignore", invalid="ignore"):
            labels, _ = cluster_optics_xi(
                reachability=plot.reach, predecessor=plot.before, ordering=plot.ordering,
                min_samples=least, min_cluster_size=least, xi=self.xi,
            )  # fmt: skip
        return np.asarray(labels, dtype=np.int64)

    def _sample(self, points: int) -> Labels:
        if points <= self.most:
            return np.arange(points)
        generator = np.random.default_rng(self.seed)
        return np.sort(generator.choice(points, self.most, replace=False))
