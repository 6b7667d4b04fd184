"""What phases that find environments have in common: centroids with names."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.plan import Outcome
from earshot_protocol.privacy.significance import are_clear
from earshot_protocol.wire import Matrix


class NamedCentroids(Outcome, frozen=True, kw_only=True):
    """Published centroids, by the nearest of which sound is named.

    Attributes:
        geometry: how distances to the centroids are taken.
        centroids: float32 (centroids, dimensions).
        labels: per centroid, an index into `label_names`; -1 where it is unnamed.
        label_names: L, of the phase.
        label_votes: per centroid and label, the noisy sum of the votes.
        name_p_values: per centroid, whether its name may be noise.
        encoder: whose embeddings the centroids are among; empty where a former release did not say.
    """

    told_to_all = True

    named_in: ClassVar[str]
    """The part of the plan whose sum has the votes for labels."""

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
        """The label of each centroid; None where it is unnamed, or was not tested."""
        clear = are_clear(self.name_p_values, len(self.labels))
        return tuple(
            self.label_names[label] if label >= 0 and named else None
            for label, named in zip(self.labels, clear, strict=True)
        )

    @property
    def vote(self) -> float:
        """What one vote is in the noisy sum from which `label_votes` come."""
        return 1.0

    @property
    def environments(self) -> tuple[int, ...]:
        """Which environment each centroid belongs to: by default, one of its own."""
        return tuple(range(len(self.labels)))

    @property
    def named(self) -> int:
        """How many environments have a name that is clear of the noise, in one centroid or more."""
        pairs = zip(self.environments, self.names, strict=True)
        return len({environment for environment, name in pairs if name is not None})

    @property
    def leading(self) -> tuple[int | None, ...]:
        """The label with the most votes of each centroid, be it noise; None without any label."""
        return tuple(
            max(range(len(votes)), key=votes.__getitem__, default=None)
            for votes in self.label_votes
        )
