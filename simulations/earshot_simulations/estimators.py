"""Earshot's clusterings as estimators of scikit-learn.

`DPLloyd` and `SphericalDPLloyd` are what phones run on their own recordings; `Optics` is what a
server runs on what phones published. docs/estimators.md says what ε protects, and what it does not.

Every `fit` of a private estimator is a release: fits on the same recordings add up, those of a
search over parameters included. Nothing that sets the noise is learned from data.
"""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from earshot_client import clustering
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers, Whole
from earshot_protocol.errors import LocalError
from earshot_protocol.geometry import Geometry, nearest
from earshot_protocol.overriding import override
from earshot_protocol.privacy.events import Pure, ZeroConcentrated
from earshot_protocol.privacy.local_mechanisms import GaussianLloyd, LaplaceLloyd
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.randomness import RandomBytes
from earshot_server.discovery import optics
from earshot_server.discovery.interface import OUTLIER

__all__ = ["DPLloyd", "Optics", "PredictableNoiseWarning", "SphericalDPLloyd"]


class PredictableNoiseWarning(UserWarning):
    """The noise follows from `random_state`, so nothing is private from whoever knows it."""


# scikit-learn has no types.
class _PrivateLloyd(ClusterMixin, BaseEstimator, ABC):  # type: ignore[misc]
    """A phone's private clustering with the interface of scikit-learn's `KMeans`."""

    _geometry: Geometry
    n_clusters: int
    random_state: int | np.random.RandomState | None
    cluster_centers_: Numbers
    labels_: Whole
    noise_: float

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Release centers of the clusters of X: every call costs `event` again.

        Args:
            X: Recordings of shape (recordings, features).
            y: Ignored, as by every clustering of scikit-learn.

        Raises:
            ValueError: A parameter is out of range, or X is not a finite matrix of real numbers.
        """
        with _values_refused():
            points = validate_data(self, X, dtype=np.float64)
            random = _bytes(self.random_state)
            centroids = self._clustering().cluster(self._scaled(points), random)
            self.noise_ = self._noise()
            self.cluster_centers_ = self._unscaled(centroids.astype(np.float64))
            self.labels_ = self._nearest(points)
        return self

    def predict(self, X: npt.ArrayLike) -> Whole:
        """Return the center that is nearest to each recording, int64 (recordings,).

        Args:
            X: Recordings of shape (recordings, features).

        Raises:
            NotFittedError: Nothing has been fitted.
            ValueError: X is not a finite matrix of real numbers with as many features as in `fit`.
        """
        check_is_fitted(self)
        with _values_refused():
            return self._nearest(validate_data(self, X, dtype=np.float64, reset=False))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out `labels_`, which no noise protects: a pickle holds what was released."""
        state = super().__getstate__()
        return {name: value for name, value in state.items() if name != "labels_"}

    def _nearest(self, points: Numbers) -> Whole:
        centers = self._scaled(self.cluster_centers_)
        return nearest(self._scaled(points), centers, self._geometry)

    def _scaled(self, points: Numbers) -> Numbers:
        """Return points (points, features) in the unit of a phone's clustering."""
        return points

    def _unscaled(self, centroids: Numbers) -> Numbers:
        """Return centroids (n_clusters, features) in the unit of the recordings."""
        return centroids

    @abstractmethod
    def _clustering(self) -> clustering.LocalClustering:
        """Return the clustering as a phone runs it."""

    @abstractmethod
    def _noise(self) -> float:
        """Return `noise_`, for as many features as were fitted."""


class DPLloyd(_PrivateLloyd):
    """Private k-means, ε-DP: DPLloyd-Impr (Su et al., CODASPY 2016) as phones run it.

    Neighbouring data sets differ in one recording, which is present or not; replacing one costs 2ε.
    Features are clipped to `bounds`, scaled so that these become −1 and 1, and rounded to 2^-16, in
    `fit` and `predict` alike: distances are Euclidean in that unit. The noise is discrete Laplace.

    Attributes:
        n_clusters: Number of clusters, k.
        epsilon: Value of ε of one `fit`.
        bounds: Least and largest value of a recording, (lower, upper): numbers, or one for each
            feature. They must be public: never take them from the recordings.
        recordings: Public guess of the number of recordings, N. It sets the number of iterations;
            the true number is private, and does not.
        random_state: Source of the noise. None is the operating system's secure generator. Any
            other one makes the noise predictable, so it belongs in experiments on public data, and
            `fit` warns.
        cluster_centers_: Released centers, (n_clusters, features).
        labels_: Nearest center of each recording, int64 (recordings,). They are not private, so
            they are for the owner of the recordings alone, and a pickle does not hold them.
        noise_: Standard deviation of the noise in a feature of a cluster's last sum, in half-widths
            of the bounds. A center of m recordings is about `noise_` / m away from their mean:
            where no cluster has many more recordings than `noise_`, the centers are noise.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, where X had names.
    """

    _geometry = Geometry.EUCLIDEAN

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float,
        bounds: tuple[npt.ArrayLike, npt.ArrayLike],
        recordings: int,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.bounds = bounds
        self.recordings = recordings
        self.random_state = random_state

    def event(self) -> Pure:
        """Return the event of one `fit`, by the parameters alone, for `composed_epsilon`.

        Raises:
            ValueError: A parameter is out of range.
        """
        with _values_refused():
            return LaplaceLloyd(self.epsilon, self.recordings).event(Unit.RECORDING)

    @override
    def _clustering(self) -> clustering.DPLloyd:
        count = checks.whole("n_clusters", self.n_clusters)
        return clustering.DPLloyd(count, LaplaceLloyd(self.epsilon, self.recordings))

    @override
    def _noise(self) -> float:
        _, per_coordinate = self._clustering().split(self.n_features_in_)
        return math.sqrt(2) / per_coordinate

    @override
    def _scaled(self, points: Numbers) -> Numbers:
        lower, upper = self._box()
        scaled: Numbers = 2 * ((np.clip(points, lower, upper) - lower) / (upper - lower)) - 1
        return scaled

    @override
    def _unscaled(self, centroids: Numbers) -> Numbers:
        lower, upper = self._box()
        unscaled: Numbers = lower + (centroids + 1) / 2 * (upper - lower)
        return unscaled

    def _box(self) -> tuple[Numbers, Numbers]:
        """Return the lower and the upper bound of each feature, (features,) each."""
        try:
            sides = np.asarray([np.broadcast_to(side, self.n_features_in_) for side in self.bounds])
            lower, upper = sides.astype(np.float64)
        except (TypeError, ValueError):
            lower = upper = np.zeros(1)
        with np.errstate(over="ignore", invalid="ignore"):
            usable = (lower < upper) & np.isfinite(upper - lower)
        if not usable.all():
            raise ValueError(
                f"bounds={self.bounds!r}: give (lower, upper), each a finite number or "
                f"{self.n_features_in_} of them, one for each feature, lower below upper; both "
                "must be public, not taken from X"
            )
        return lower, upper


class SphericalDPLloyd(_PrivateLloyd):
    """Private spherical k-means, (ε, δ)-DP, as phones run it: recordings count by direction alone.

    Neighbouring data sets differ in one recording, which is present or not. A row of zeros has no
    direction, and moves no center. There are no bounds, as a direction has length one, and no
    number of recordings, as the noise does not depend on it. The noise is discrete Gaussian.

    Attributes:
        n_clusters: Number of clusters, k.
        epsilon: Value of ε of one `fit`, at `delta`.
        delta: Value of δ, well below one over the number of recordings.
        iterations: Number of iterations, over which the budget is split.
        random_state: Source of the noise, as in `DPLloyd`.
        cluster_centers_: Released centers, (n_clusters, features), of length one.
        labels_: Center of each recording by cosine, int64 (recordings,). They are not private, so
            they are for the owner of the recordings alone, and a pickle does not hold them.
        noise_: Standard deviation of the noise in a feature of a cluster's last sum, which adds up
            directions: where no cluster has many more recordings than `noise_` times the root of
            the number of features, the centers are noise.
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, where X had names.
    """

    _geometry = Geometry.SPHERICAL

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        epsilon: float,
        delta: float,
        iterations: int = 6,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.epsilon = epsilon
        self.delta = delta
        self.iterations = iterations
        self.random_state = random_state

    def event(self) -> ZeroConcentrated:
        """Return the event of one `fit`, by the parameters alone, for `composed_epsilon`.

        Raises:
            ValueError: A parameter is out of range.
        """
        with _values_refused():
            return self._mechanism().event(Unit.RECORDING)

    def _mechanism(self) -> GaussianLloyd:
        # The number of recordings counts for the cost of a whole phone alone.
        return GaussianLloyd(self.epsilon, self.delta, recordings=1)

    @override
    def _clustering(self) -> clustering.SphericalDPLloyd:
        count = checks.whole("n_clusters", self.n_clusters)
        return clustering.SphericalDPLloyd(count, self._mechanism(), self.iterations)

    @override
    def _noise(self) -> float:
        return 1 / math.sqrt(2 * float(self._clustering().split()[-1]))


class Optics(ClusterMixin, BaseEstimator):  # type: ignore[misc]
    """OPTICS as a server runs it on what phones published.

    It adds no noise: give it points that are public already, such as centers that private
    clusterings released. Where there is no cluster, every label is −1 and there is no center.

    Attributes:
        geometry: Euclidean distance, or the angle between directions (spherical).
        xi: Steepness ξ that bounds a cluster, between 0 and 1.
        candidates: Most clusters that are found, however many points there are.
        points_per_candidate: Points for each cluster among fewer points.
        nearest_share: Share of the points, those nearest to a cluster, whose mean is the center.
        most: Most points that are looked at; of more, a random sample of this size, which is the
            same in every call.
        cluster_centers_: Centers, (clusters, features), of length one where spherical.
        labels_: Cluster of each point, −1 for an outlier and −2 for a point outside the sample,
            int64 (points,).
        n_features_in_: Number of features.
        feature_names_in_: Names of the features, where X had names.
    """

    def __init__(
        self,
        *,
        geometry: str = "euclidean",
        xi: float = 0.005,
        candidates: int = 100,
        points_per_candidate: int = 20,
        nearest_share: float = 0.02,
        most: int = 30_000,
    ) -> None:
        self.geometry = geometry
        self.xi = xi
        self.candidates = candidates
        self.points_per_candidate = points_per_candidate
        self.nearest_share = nearest_share
        self.most = most

    def fit(self, X: npt.ArrayLike, y: object = None) -> Self:
        """Cluster points.

        Args:
            X: Points of shape (points, features), at least two.
            y: Ignored, as by every clustering of scikit-learn.

        Raises:
            ValueError: A parameter is out of range, or X is not such a matrix, finite and real.
        """
        points = validate_data(self, X, dtype=np.float32, ensure_min_samples=2)
        with _values_refused():
            method = self._discovery()
            try:
                found = method.discover(points, self._metric())
            except optics.NothingFoundError:
                self.cluster_centers_ = np.empty((0, self.n_features_in_), dtype=np.float32)
                self.labels_ = np.full(len(points), OUTLIER, dtype=np.int64)
            else:
                self.cluster_centers_, self.labels_ = found.centroids, found.clusters
        return self

    def _metric(self) -> Geometry:
        if self.geometry not in Geometry.__members__.values():
            raise ValueError(f"geometry={self.geometry!r}: give one of {', '.join(Geometry)}")
        return Geometry(self.geometry)

    def _discovery(self) -> optics.Optics:
        return optics.Optics(
            xi=checks.between("xi", self.xi, 0, 1),
            candidates=checks.whole("candidates", self.candidates),
            points_per_candidate=checks.whole("points_per_candidate", self.points_per_candidate),
            nearest_share=checks.share("nearest_share", self.nearest_share),
            most=checks.whole("most", self.most, 2),
        )


@contextlib.contextmanager
def _values_refused() -> Iterator[None]:
    """Raise errors of the caller as scikit-learn does."""
    try:
        yield
    except LocalError as error:
        raise ValueError(str(error)) from error


def _bytes(random_state: int | np.random.RandomState | None) -> RandomBytes:
    """Return the source of random bytes that `random_state` stands for."""
    if random_state is None:
        return os.urandom
    warnings.warn(
        f"random_state={random_state!r}: the noise is not secret, so nothing is private; give None "
        "for anything but an experiment on public data",
        PredictableNoiseWarning,
        stacklevel=3,
    )
    generator: np.random.RandomState = check_random_state(random_state)
    return generator.bytes
