"""The best of several private clusterings, by a private score (Liu and Talwar, STOC 2019)."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_client.clustering import (
    GRID,
    DPLloyd,
    LocalClustering,
    SphericalDPLloyd,
    box_grid,
    sphere_grid,
)
from earshot_protocol.geometry import Geometry, nearest
from earshot_protocol.overriding import override
from earshot_protocol.privacy.coins import geometric
from earshot_protocol.privacy.local_mechanisms import (
    BestGaussianLloyd,
    BestLaplaceLloyd,
    GaussianLloyd,
    LaplaceLloyd,
)
from earshot_protocol.randomness import RandomBytes

_SECRET_BITS = 40
"""Bits σ: the work done reveals something of the number of runs with a probability of at most
2^-σ."""


def clustering_by(
    mechanism: LaplaceLloyd | GaussianLloyd | BestLaplaceLloyd | BestGaussianLloyd,
    local_centroids: int,
) -> LocalClustering:
    """Return the clustering that a mechanism describes.

    Raises:
        InvalidParametersError: `local_centroids` is not a whole number above 0.
    """
    match mechanism:
        case LaplaceLloyd():
            return DPLloyd(local_centroids, mechanism)
        case GaussianLloyd():
            return SphericalDPLloyd(local_centroids, mechanism)
        case _:
            return BestOfRuns(clustering_by(mechanism.each, local_centroids), mechanism)


@dataclass(frozen=True)
class BestOfRuns(LocalClustering):
    """Runs of a private clustering, of which the one with the best noisy score is released.

    Attributes:
        each: Clustering of one run.
        mechanism: Mechanism with the cost of all runs, the noise on the scores, and the number of
            runs.
    """

    each: LocalClustering
    mechanism: BestLaplaceLloyd | BestGaussianLloyd

    @property
    def computed(self) -> int:
        """Least number of runs that are computed; most of them do not count.

        A phone's computing time would otherwise reveal how many runs its answer is the best of,
        which the proof requires to be secret. Runs exceed this number with probability 2^-40, and
        only then is the time longer.
        """
        return math.ceil(_SECRET_BITS * math.log(2) / -math.log1p(-1 / self.mechanism.runs))

    @override
    def cluster(
        self, points: npt.ArrayLike, random: RandomBytes = os.urandom
    ) -> npt.NDArray[np.float32]:
        """Return the centroids of the run with the largest noisy score; of equals, the first.

        A score is a whole number that one recording moves by at most `GRID`.
        """
        runs = geometric(self.mechanism.runs, random)
        best, highest = self._run(points, random)
        for number in range(1, max(runs, self.computed)):
            centroids, score = self._run(points, random)
            if number < runs and score > highest:
                best, highest = centroids, score
        return best

    def _run(
        self, points: npt.ArrayLike, random: RandomBytes
    ) -> tuple[npt.NDArray[np.float32], int]:
        centroids = self.each.cluster(points, random)
        geometry = (
            Geometry.SPHERICAL
            if isinstance(self.mechanism, BestGaussianLloyd)
            else Geometry.EUCLIDEAN
        )
        return centroids, quality(points, centroids, geometry) + self.mechanism.quality_noise(
            GRID, random
        )


def quality(points: npt.ArrayLike, centroids: npt.ArrayLike, geometry: Geometry) -> int:
    """Score how well centroids describe points: each adds from 0 (far) to `GRID` (at its centroid).

    On the sphere a point's share falls with the cosine of its angle to the nearest centroid, and is
    0 from a right angle on. In the box [−1, 1]^d it falls with the squared distance, and is 0
    beyond half the side of the cells into which k centroids would cut the box evenly.

    Args:
        points: Points of shape (recordings, dimensions); there may be none.
        centroids: Centroids of shape (centroids, dimensions), of length one where the geometry is
            spherical.
        geometry: Kind of distance.

    Raises:
        InvalidInputError: The points are not a finite matrix.
    """
    spherical = geometry is Geometry.SPHERICAL
    rows = (sphere_grid if spherical else box_grid)(points) / GRID
    places = np.asarray(centroids, dtype=np.float64)
    reach = 2.0 if spherical else len(places) ** (-2 / places.shape[1])
    owner = nearest(rows, places, geometry)
    squares = np.zeros(len(rows))
    # Element by element, so that a point's share does not depend on the other points.
    for row, place in zip(rows.T, places.T, strict=True):
        squares += (row - place[owner]) ** 2
    each = np.rint(GRID * np.clip(1 - squares / reach, 0, 1))
    return int(each.sum())
