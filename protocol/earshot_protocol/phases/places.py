"""Places that name sound by the nearest one: from published results, or agreed on for a phase."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple, Self

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from earshot_protocol.environments import LabelHierarchy, UnknownLabelError
from earshot_protocol.errors import InvalidParametersError, MalformedMessageError
from earshot_protocol.geometry import Geometry, nearest, unit_rows
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.parameters import EncoderName
from earshot_protocol.wire import LARGEST_DIMENSIONS, Matrix

MOST_PLACES = 4096
"""Most places in a phase; as many as a learning phase can find."""
UNNAMED = -1


class Places(NamedTuple):
    """Places of which the nearest names a scene, if it is near enough.

    Attributes:
        points: Points of the places, float32 (places, dimensions).
        names: Name of each place; None where it has none.
        geometry: Kind of distance to the places.
        radius: Largest distance at which a place names a scene, 1 − cosine; None for any.
    """

    points: npt.NDArray[np.float32]
    names: tuple[str | None, ...]
    geometry: Geometry
    radius: float | None = None

    @classmethod
    def of(cls, result: NamedCentroids) -> Self:
        """Return the places that a result publishes."""
        return cls(result.centroids.array(), result.names, result.geometry, result.radius)

    def within(
        self, points: npt.NDArray[np.float32], turned: npt.NDArray[np.float64] | float = 1.0
    ) -> list[int | None]:
        """Return the place that is nearest to each point; None where none is within the radius.

        Args:
            points: Points, float32 (points, dimensions).
            turned: Cosine of each point, or of all, to where it would be without noise: noise
                lowers its cosines to places by this factor.
        """
        if not len(self.points):
            return [None] * len(points)
        owners = nearest(points, self.points, self.geometry)
        near = np.ones(len(owners), dtype=np.bool_)
        if self.radius is not None:
            rows, places = (unit_rows(each.astype(np.float64)) for each in (points, self.points))
            near = 1.0 - (rows * places[owners]).sum(axis=1) / turned <= self.radius
        return [int(owner) if each else None for owner, each in zip(owners, near, strict=True)]

    def nearest(self, points: npt.NDArray[np.float32]) -> list[str | None]:
        """Return the name of the place that is nearest to each point; None where it is unknown."""
        return [None if place is None else self.names[place] for place in self.within(points)]


def together(result: NamedCentroids | None, labelled: NamedCentroids | None) -> Places | None:
    """Join the result of a phase and the samples that were labelled since.

    A sample that got a name precedes a centroid in the same place, and so names a place that had no
    name; a sample that got none hides no centroid. If the two do not compare, only the result
    counts.

    Args:
        result: Newest published result, or None.
        labelled: Newest samples that were labelled since, or None.

    Returns:
        The places; None if there is neither.
    """
    if result is None or labelled is None:
        only = result or labelled
        if only is None:
            return None
        return Places.of(only)
    found, samples = result.centroids.array(), labelled.centroids.array()
    if (samples.shape[1], labelled.geometry) != (found.shape[1], result.geometry):
        return Places.of(result)
    named = [row for row, name in enumerate(labelled.names) if name is not None]
    return Places(
        np.concatenate([samples[named], found]),
        (*(labelled.names[row] for row in named), *result.names),
        result.geometry,
        result.radius,
    )


class AgreedPlaces(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """Places by which all phones of a phase name sound: part of its parameters, hence of its keys.

    A phone must not use places from elsewhere: a server that sends one phone a result of its own
    could choose the entry of a sum in which that phone alone counts.

    Attributes:
        encoder: Encoder whose embeddings the places are among.
        geometry: Kind of distance to the places.
        centroids: Centroids of the places, float32 (places, dimensions).
        labels: Index into the phase's labels of each place; −1 where it has no name.
        radius: Largest distance at which a place names a sound, 1 − cosine; None for any.
    """

    encoder: EncoderName
    geometry: Geometry
    centroids: Matrix
    labels: Annotated[tuple[Annotated[int, Meta(ge=UNNAMED)], ...], Meta(max_length=MOST_PLACES)]
    radius: Annotated[float, Meta(ge=0, le=2)] | None = None

    @classmethod
    def of(cls, places: Places, encoder: str, hierarchy: LabelHierarchy) -> Self:
        """Return places with the phase's classes of their names.

        Args:
            places: Places to agree on.
            encoder: Encoder whose embeddings the places are among.
            hierarchy: Hierarchy of the phase's labels.
        """
        return cls(
            encoder=encoder,
            geometry=places.geometry,
            centroids=Matrix.of(places.points),
            labels=tuple(_label(name, hierarchy) for name in places.names),
            radius=places.radius,
        )

    def named(self, labels: Sequence[str]) -> Places:
        """Return the same places, with the phase's labels as names."""
        names = tuple(None if label == UNNAMED else labels[label] for label in self.labels)
        return Places(self.centroids.array(), names, self.geometry, self.radius)

    def check(self, labels: int) -> None:
        """Refuse places that are invalid in a phase.

        Args:
            labels: Number of the phase's labels.

        Raises:
            InvalidParametersError: A value is wrong; the message says which, and what would be
                accepted.
        """
        try:
            rows, columns = self.centroids.array().shape
        except MalformedMessageError as error:
            raise InvalidParametersError(f"places: {error}") from error
        if not (1 <= rows <= MOST_PLACES and columns <= LARGEST_DIMENSIONS):
            raise InvalidParametersError(
                f"places: {rows} of {columns} dimensions; 1 to {MOST_PLACES} of at most "
                f"{LARGEST_DIMENSIONS} are accepted"
            )
        if len(self.labels) != rows or max(self.labels) >= labels:
            raise InvalidParametersError(
                f"places: {len(self.labels)} labels up to number {max(self.labels, default=0)}; "
                f"one of {labels} labels is needed for each of {rows} places, or {UNNAMED}"
            )


def _label(name: str | None, hierarchy: LabelHierarchy) -> int:
    if name is None:
        return UNNAMED
    try:
        return hierarchy.classes.index(hierarchy.class_of(name))
    except UnknownLabelError:
        return UNNAMED
