"""Common part of the results of phases that find environments: centroids with names."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

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
        label_votes: Noisy sum of the votes, per centroid and label.
        name_p_values: P-value of each centroid's name; where it is large, the name may be noise.
        encoder: Encoder whose embeddings the centroids are among; empty where a former release did
            not say.
    """

    told_to_all = True

    named_in: ClassVar[str]
    """Part of the plan whose sum has the votes for labels."""

    if TYPE_CHECKING:  # every message declares them where they stand on the wire
        geometry: Geometry
        centroids: Matrix
        labels: tuple[int, ...]
        label_names: tuple[str, ...]
        label_votes: tuple[tuple[float, ...], ...]
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
    def vote(self) -> float:
        """Value of one vote in the noisy sum from which `label_votes` come."""
        return 1.0

    @property
    def environments(self) -> tuple[int, ...]:
        """Environment to which each centroid belongs: by default, one of its own."""
        return tuple(range(len(self.labels)))

    @property
    def named(self) -> int:
        """Number of environments with a name clear of the noise in at least one centroid."""
        pairs = zip(self.environments, self.names, strict=True)
        return len({environment for environment, name in pairs if name is not None})

    @property
    def leading(self) -> tuple[int | None, ...]:
        """Label with the most votes of each centroid, be it noise; None if there are no labels."""
        return tuple(
            max(range(len(votes)), key=votes.__getitem__, default=None)
            for votes in self.label_votes
        )
