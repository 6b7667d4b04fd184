"""Things of the caller's own that take part in a phase, in place of those that settings name."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_client.encoder import Encoder
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.geometry import Geometry, unit_rows
from earshot_protocol.overriding import override
from earshot_server.discovery.interface import LEFT_OUT, CentroidDiscovery, FoundCentroids
from earshot_server.discovery.optics import NothingFoundError
from earshot_simulations.adversary.attack import Attack
from earshot_simulations.own_code import OwnCodeError, class_name, own_array, own_code
from earshot_simulations.populations import Population
from earshot_simulations.populations.own import OwnPopulation, checked_points

BY_PHONES = ("population", "attack")
"""Things that phones ask, wherever they run."""
OWN = "own"
"""Entry of a result's provenance that names things of the caller's own."""


@dataclass(frozen=True, eq=False)
class Own:
    """Things of the caller's own; None for what settings name.

    Attributes:
        population: Phones, and what they hear.
        clustering: Clustering of what phones publish on the local route.
        attack: What corrupted phones do.
        encoder: Encoder of sound.
    """

    population: Population | None = None
    clustering: CentroidDiscovery | None = None
    attack: Attack | None = None
    encoder: Encoder | None = None

    def __post_init__(self) -> None:
        for name, own in self.given.items():
            if isinstance(own, type):
                raise InvalidParametersError(
                    f"{name} {own.__name__}: is the class; pass an instance, {own.__name__}()"
                )

    @property
    def given(self) -> dict[str, Any]:
        """Things that are given, by name."""
        every = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: own for name, own in every.items() if own is not None}

    def described(self) -> dict[str, dict[str, str | None]]:
        """Return the class of each thing, and its key or None, for a result.

        Raises:
            InvalidParametersError: A key is not a text.
        """
        return {
            name: {"class": class_name(own), "key": self._key(name)}
            for name, own in self.given.items()
        }

    def check_keys(self) -> None:
        """Refuse things without a key, by which a sweep knows a finished run.

        Raises:
            InvalidParametersError: One has none, or one that is not a text.
        """
        for name, own in self.given.items():
            if self._key(name) is None:
                raise InvalidParametersError(
                    f"{name} {type(own).__name__}: has no key; a sweep keeps finished runs and "
                    "knows them by all that they depend on: give it an attribute `key`, a text "
                    "that changes whenever it does"
                )

    def check_copies(self, processes: int, names: Collection[str]) -> None:
        """Refuse things that cannot be copied to other processes, if there are any.

        Args:
            processes: Number of processes.
            names: Names of the things that are copied.

        Raises:
            InvalidParametersError: One cannot be copied; the message says which, and why.
        """
        if processes < 2:
            return
        import joblib

        for name, own in self.given.items():
            if name not in names:
                continue
            try:
                # Unlike pickle, this also handles objects that only the main program defines.
                joblib.externals.loky.backend.reduction.dumps(own)
            except Exception as error:
                raise InvalidParametersError(
                    f"{name} {type(own).__name__}: cannot be copied to other processes ({error}); "
                    "leave open files, locks and generators out of its state (`__getstate__`), or "
                    "take one process"
                ) from error

    def notes(self, population: object) -> list[str]:
        """Return sentences for readers of a run."""
        said = []
        if self.given:
            named = ", ".join(
                f"{name} {each['class']}" + (f" (key {each['key']})" if each["key"] else "")
                for name, each in self.described().items()
            )
            said.append(
                f"This run had code of the caller's own: {named}. The result does not hold it, so "
                "neither --repeat nor --config makes this run again; its program does."
            )
        if isinstance(population, OwnPopulation):
            if population.is_lifted:
                said.append(
                    "Secure sums sort directions: each point p was lifted to the sphere, to the "
                    "direction of (p, 1)."
                )
            if not population.has_start and population.geometry is Geometry.SPHERICAL:
                said.append(
                    "Start centroids of secure sums are random and public, as the points come with "
                    "none."
                )
        return said

    def _key(self, name: str) -> str | None:
        own = getattr(self, name)
        with own_code(f"{name} {type(own).__name__}: key"):
            key = getattr(own, "key", None)
        if key is not None and (not isinstance(key, str) or not key):
            raise InvalidParametersError(
                f"{name} {type(own).__name__}: key={key!r}: must be a text that changes whenever "
                "it does"
            )
        return key


OF_SETTINGS = Own()
"""What settings name alone."""


class OwnClustering(CentroidDiscovery):
    """A `CentroidDiscovery` of the caller's own, whose answer is checked.

    Args:
        own: The clustering.
        most: Function that returns how many centroids this many points may give.
    """

    def __init__(self, own: CentroidDiscovery, most: Callable[[int], int]) -> None:
        self._own = own
        self._most = most
        self._is = f"clustering {type(own).__name__}"
        if not callable(getattr(own, "discover", None)):
            raise InvalidParametersError(
                f"{self._is}: has no discover(points, geometry), which returns FoundCentroids"
            )

    @override
    def discover(self, points: npt.NDArray[np.float32], geometry: Geometry) -> FoundCentroids:
        """Cluster points.

        Raises:
            NothingFoundError: There is no cluster, which ends the phase as without any by OPTICS.
            OwnCodeError: The clustering raised, or its answer cannot be used.
        """
        with own_code(f"{self._is}: discover"):
            found = self._own.discover(points.copy(), geometry)
        if not isinstance(found, FoundCentroids):
            raise OwnCodeError(
                f"{self._is} returned a {type(found).__name__}: must be FoundCentroids(centroids, "
                "clusters)"
            )
        given = own_array(f"{self._is}: centroids", found.centroids)
        if not given.size:
            raise NothingFoundError(
                f"{self._is} found no cluster in {len(points)} published centroids"
            )
        centroids = checked_points(f"{self._is}: centroids", given, points.shape[1])
        most = self._most(len(points))
        if len(centroids) > most:
            raise OwnCodeError(
                f"{self._is} found {len(centroids)} centroids in {len(points)} points: must be at "
                f"most {most}, which a vote can tell apart; ask for larger clusters, or return the "
                "largest"
            )
        if geometry is Geometry.SPHERICAL:
            if not centroids.any(axis=1).all():
                raise OwnCodeError(f"{self._is}: a centroid is zero, which is no direction")
            centroids = unit_rows(centroids.astype(np.float64)).astype(np.float32)
        return FoundCentroids(
            centroids, self._clusters(found.clusters, len(points), len(centroids))
        )

    def _clusters(self, given: Any, points: int, centroids: int) -> npt.NDArray[np.int64]:
        clusters = own_array(f"{self._is}: clusters", given)
        if clusters.shape != (points,) or clusters.dtype.kind not in "iu":
            raise OwnCodeError(
                f"{self._is}: clusters has shape {clusters.shape} of type {clusters.dtype}: must "
                f"be ({points},) whole numbers, the centroid of each point"
            )
        if clusters.min() < LEFT_OUT or clusters.max() >= centroids:
            raise OwnCodeError(
                f"{self._is}: clusters has entries from {clusters.min()} to {clusters.max()}: must "
                f"be 0 to {centroids - 1}, -1 for an outlier, or -2 for a point that was left out"
            )
        return clusters.astype(np.int64)
