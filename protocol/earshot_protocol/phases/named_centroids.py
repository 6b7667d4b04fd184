"""Common part of the results of phases that find environments: centroids with names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.plan import Outcome
from earshot_protocol.privacy.significance import are_clear
from earshot_protocol.wire import Matrix


class NamedCentroids(Outcome, frozen=True, kw_only=True):
    """Published centroids by which sound is named: the nearest one gives the name.

    Attributes:
        geometry: Kind of distance to the centroids.
        centroids: Matrix of the centroids, float32 (centroids, dimensions).
        labels: Index into `label_names` of each centroid; -1 where it is unnamed.
        label_names: Labels of the phase, L.
        name_p_values: P-value of each centroid's name; where it is large, the name may be noise.
        encoder: Encoder whose embeddings the centroids are among.
    """

    told_to_all = True

    if TYPE_CHECKING:  # every message declares them, in the order of its fields on the wire
        geometry: Geometry
        centroids: Matrix
        labels: tuple[int, ...]
        label_names: tuple[str, ...]
        name_p_values: tuple[float, ...]
        encoder: str

    @property
    def names(self) -> tuple[str | None, ...]:
        """Label of each centroid; None where it is unnamed or was not tested."""
        clear = are_clear(self.name_p_values, len(self.labels))
        return tuple(
            self.label_names[label] if label >= 0 and named else None
            for label, named in zip(self.labels, clear, strict=True)
        )

    @property
    def radius(self) -> float | None:
        """Largest distance at which a centroid names a sound; None for any distance."""
        return None

    @property
    def environments(self) -> tuple[int, ...]:
        """Environment to which each centroid belongs: by default, each centroid is one."""
        return tuple(range(len(self.labels)))

    @property
    def named(self) -> int:
        """Number of environments with a name clear of the noise in at least one centroid."""
        pairs = zip(self.environments, self.names, strict=True)
        return len({environment for environment, name in pairs if name is not None})
