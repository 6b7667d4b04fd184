"""Clustering of a phone's recordings into a few centroids (thesis, Algorithm 1, step 3).

Two private variants of Lloyd's k-means behind one interface. They release integers plus integer
noise only; everything after that is post-processing. Start centroids are public: they depend on the
number of centroids and of dimensions, never on data.
"""

from __future__ import annotations

import functools
import math
import os
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from earshot_protocol.checks import whole
from earshot_protocol.geometry import Geometry, finite_rows, nearest, unit_rows
from earshot_protocol.overriding import override
from earshot_protocol.privacy.local_mechanisms import GaussianLloyd, LaplaceLloyd
from earshot_protocol.privacy.noise import discrete_gaussian, discrete_laplace
from earshot_protocol.randomness import RandomBytes

GRID = 2**16
"""Integer steps per unit. Rounding moves a point by at most 2^-17 in each coordinate, far less than
the least noise (1/ε), and sums of 2^30 recordings still fit doubles."""

GROWTH = 1.5
"""Factor by which each spherical iteration spends more ρ than the one before: the first ones only
have to tell clusters apart."""
INERTIA = 0.6
"""Weight of a centroid's last place against the noise in its sum, so that a cluster that is small
beside the noise keeps its direction. Like `GROWTH` and the six iterations it was chosen on clusters
drawn on the sphere of 8 dimensions with 50 to 200 recordings and ε from 2 to 8."""

_SEED = 20160309
"""Seed of the public start centroids."""
_ATTEMPTS = 100
_BISECTIONS = 12
_CANDIDATES = 256


class LocalClustering(Protocol):
    """Clustering of a phone's points before it publishes anything."""

    def cluster(
        self, points: npt.ArrayLike, random: RandomBytes = os.urandom
    ) -> npt.NDArray[np.float32]:
        """Return differentially private centroids of a phone's points.

        Args:
            points: Points of shape (recordings, dimensions); there may be none.
            random: Source of bytes; a seeded one is for simulations only.

        Returns:
            float32 of shape (local_centroids, dimensions).

        Raises:
            InvalidInputError: The points are not a finite matrix.
        """


@dataclass(frozen=True)
class DPLloyd(LocalClustering):
    """DPLloyd-Impr (Su, Cao, Li, Bertino and Jin, CODASPY 2016), ε-DP per recording.

    Attributes:
        local_centroids: Number of centroids, k.
        mechanism: Mechanism with ε of the whole clustering, shared out by `iterations` and `split`.
            Its number of recordings N, public and nominal, sets the number of iterations; the true
            number must not.

    Raises:
        InvalidParametersError: The number k is not a whole number above 0.
    """

    local_centroids: int
    mechanism: LaplaceLloyd

    def __post_init__(self) -> None:
        whole("local_centroids", self.local_centroids)

    def iterations(self, dimensions: int) -> int:
        """Return T = clip(ε / ε_m, 2, 7), rounded down, ε_m = √(500 k³ / N² · (d + ∛(4dρ²))³)."""
        least = math.sqrt(
            500
            * self.local_centroids**3
            / self.mechanism.recordings**2
            * (dimensions + _count_weight(dimensions)) ** 3
        )
        return math.floor(min(max(self.mechanism.epsilon / least, 2), 7))

    def split(self, dimensions: int) -> tuple[float, float]:
        """Return (ε_0, ε_i) of one iteration, for the counts and for each of the d coordinate sums.

        ε_0 / ε_i = ∛(4dρ²) and d · ε_i + ε_0 = ε / T.
        """
        weight = _count_weight(dimensions)
        per_iteration = self.mechanism.epsilon / self.iterations(dimensions)
        per_coordinate = per_iteration / (dimensions + weight)
        return weight * per_coordinate, per_coordinate

    @override
    def cluster(
        self, points: npt.ArrayLike, random: RandomBytes = os.urandom
    ) -> npt.NDArray[np.float32]:
        """Cluster by Lloyd's iterations, with centroids that stay in [−1, 1].

        Discrete Laplace noise goes on counts and coordinate sums. Under add/remove of one recording
        one count changes by 1, and each coordinate sum of that cluster by at most `GRID` steps.
        Empty clusters are treated like the others.
        """
        steps = box_grid(points)
        dimensions = steps.shape[1]
        count_epsilon, sum_epsilon = self.split(dimensions)
        centroids = GRID * box_packing(self.local_centroids, dimensions)
        for _ in range(self.iterations(dimensions)):
            counts, sums = cluster_sums(steps, centroids, Geometry.EUCLIDEAN)
            counts += discrete_laplace(1 / count_epsilon, counts.shape, random)
            sums += discrete_laplace(GRID / sum_epsilon, sums.shape, random)
            means = sums / np.maximum(counts, 1)[:, None]
            centroids = np.clip(means, -GRID, GRID)
        return (centroids / GRID).astype(np.float32)


@dataclass(frozen=True)
class SphericalDPLloyd(LocalClustering):
    """Spherical k-means with noisy sums of unit vectors, (ε, δ)-DP per recording by zCDP.

    All of the budget goes to the sums: a centroid is a direction, so a count would cancel. The
    discrete Gaussian's ρ is sensitivity² / (2σ²) in L2 (Canonne, Kamath and Steinke, NeurIPS 2020,
    Theorem 14); iterations compose by adding ρ, clusters in parallel.

    Attributes:
        local_centroids: Number of centroids, k.
        mechanism: Mechanism with (ε, δ) of the whole clustering, shared out by `split`.
        iterations: Number of iterations, T.

    Raises:
        InvalidParametersError: The number k or T is not a whole number above 0.
    """

    local_centroids: int
    mechanism: GaussianLloyd
    iterations: int = 6

    def __post_init__(self) -> None:
        whole("local_centroids", self.local_centroids)
        whole("iterations", self.iterations)

    def split(self) -> npt.NDArray[np.float64]:
        """Return ρ of each iteration, shape (iterations,), adding up to the mechanism's ρ."""
        weights = GROWTH ** np.arange(self.iterations, dtype=np.float64)
        shares: npt.NDArray[np.float64] = self.mechanism.rho * weights / weights.sum()
        return shares

    @override
    def cluster(
        self, points: npt.ArrayLike, random: RandomBytes = os.urandom
    ) -> npt.NDArray[np.float32]:
        """Cluster by spherical k-means, with centroids of length one.

        Discrete Gaussian noise goes on the sums. Under add/remove of one recording one sum changes
        by at most `GRID` steps in L2. A centroid is the direction of its noisy sum plus `INERTIA`
        times the noise's length along the centroid before.
        """
        steps = sphere_grid(points)
        dimensions = steps.shape[1]
        centroids = sphere_packing(self.local_centroids, dimensions)
        for rho in self.split():
            sigma = GRID / math.sqrt(2 * rho)
            _, sums = cluster_sums(steps, centroids, Geometry.SPHERICAL)
            sums += discrete_gaussian(sigma, sums.shape, random)
            centroids = unit_rows(sums + INERTIA * sigma * math.sqrt(dimensions) * centroids)
        return centroids.astype(np.float32)


def box_grid(points: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Clip points to [−1, 1], as whole numbers of `GRID` steps per unit.

    Raises:
        InvalidInputError: The points are not a finite matrix.
    """
    steps: npt.NDArray[np.float64] = np.rint(np.clip(finite_rows("points", points), -1, 1) * GRID)
    return steps


def sphere_grid(points: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """Scale points to length one, as whole numbers of steps, of length at most `GRID`.

    Rounding to the nearest step can lengthen a vector; where it does, entries are rounded towards
    zero instead.

    Raises:
        InvalidInputError: The points are not a finite matrix.
    """
    exact = unit_rows(finite_rows("points", points)) * GRID
    steps: npt.NDArray[np.float64] = np.rint(exact)
    # Sums of squares of whole numbers below 2^53 are exact, so this comparison is too.
    long = np.square(steps).sum(axis=1) > GRID**2
    steps[long] = np.trunc(exact[long])
    return steps


def cluster_sums(
    steps: npt.NDArray[np.float64], centroids: npt.NDArray[np.float64], geometry: Geometry
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return exact counts (centroids,) and sums (centroids, dimensions), to which noise is added.

    Args:
        steps: Whole numbers, shape (recordings, dimensions), from `box_grid` or `sphere_grid`.
        centroids: Centroids of shape (centroids, dimensions), in the same unit.
        geometry: Kind of distance by which a centroid is nearest.
    """
    owner = nearest(steps, centroids, geometry)
    member = (owner == np.arange(len(centroids))[:, None]).astype(np.float64)
    return member.sum(axis=1).astype(np.int64), (member @ steps).astype(np.int64)


def _count_weight(dimensions: int) -> float:
    """Return ∛(4dρ²) with ρ = 0.225, Su et al.'s ratio of the count's budget to a coordinate's."""
    return math.cbrt(4 * dimensions * 0.225**2)


@functools.lru_cache(maxsize=64)
def box_packing(count: int, dimensions: int) -> npt.NDArray[np.float64]:
    """Return start centroids in [−1, 1]^d: a from the walls, 2a from each other, a by bisection.

    The array is read-only, as every caller shares it.
    """
    generator = np.random.default_rng(_SEED)
    packing = np.zeros((count, dimensions))
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        distance = (low + high) / 2
        apart = _packed_apart(count, dimensions, distance, generator)
        if apart is None:
            high = distance
        else:
            low, packing = distance, apart
    packing.setflags(write=False)
    return packing


def _packed_apart(
    count: int, dimensions: int, distance: float, generator: np.random.Generator
) -> npt.NDArray[np.float64] | None:
    """Place points one after the other at random; return None if one does not fit."""
    packing = np.empty((count, dimensions))
    room = 1 - distance
    for placed in range(count):
        candidates = generator.uniform(-room, room, (_ATTEMPTS, dimensions))
        inner = candidates @ packing[:placed].T
        lengths = np.square(candidates).sum(axis=1)[:, None]
        gaps = lengths - 2 * inner + np.square(packing[:placed]).sum(axis=1)
        free = np.flatnonzero((gaps >= (2 * distance) ** 2).all(axis=1))
        if len(free) == 0:
            return None
        packing[placed] = candidates[free[0]]
    return packing


@functools.lru_cache(maxsize=64)
def sphere_packing(count: int, dimensions: int) -> npt.NDArray[np.float64]:
    """Return start centroids of length one: each the farthest of many random ones from the others.

    The array is read-only, as every caller shares it.
    """
    generator = np.random.default_rng(_SEED)
    packing = unit_rows(generator.standard_normal((1, dimensions)))
    while len(packing) < count:
        candidates = unit_rows(generator.standard_normal((_CANDIDATES, dimensions)))
        farthest = np.argmin((candidates @ packing.T).max(axis=1))
        packing = np.vstack([packing, candidates[farthest]])
    packing.setflags(write=False)
    return packing
