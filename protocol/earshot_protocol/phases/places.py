"""Places by the nearest of which sound is named: those a phone was told, or a phase agrees on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, NamedTuple, Self

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

from earshot_protocol.environments import LabelHierarchy, UnknownLabelError
from earshot_protocol.errors import InvalidParametersError, MalformedMessageError
from earshot_protocol.geometry import Geometry, nearest
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.parameters import EncoderName
from earshot_protocol.wire import LARGEST_DIMENSIONS, Matrix

MOST_PLACES = 4096
"""Of a phase; as many as a learning phase can find."""
UNNAMED = -1


class Places(NamedTuple):
    """Where the nearest names a scene.

    Attributes:
        points: float32 (places, dimensions).
        names: of each; None where it has none.
        geometry: how distances to them are taken.
    """

    points: npt.NDArray[np.float32]
    names: tuple[str | None, ...]
    geometry: Geometry

    def nearest(self, points: npt.NDArray[np.float32]) -> list[str | None]:
        """The name of the place that is nearest to each point."""
        return [self.names[place] for place in nearest(points, self.points, self.geometry)]


def together(result: NamedCentroids | None, labelled: NamedCentroids | None) -> Places | None:
    """Join what was found and the samples that were labelled since.

    A sample that got a name stands before a centroid in the same place, and so names what had
    none; one that got none hides no centroid. Where the two do not compare, the result alone
    counts.

    Args:
        result: the newest published result, or None.
        labelled: the newest samples that were labelled since, or None.

    Returns:
        The places; None where there is neither.
    """
    if result is None or labelled is None:
        only = result or labelled
        if only is None:
            return None
        return Places(only.centroids.array(), only.names, only.geometry)
    found, samples = result.centroids.array(), labelled.centroids.array()
    if (samples.shape[1], labelled.geometry) != (found.shape[1], result.geometry):
        return Places(found, result.names, result.geometry)
    named = [row for row, name in enumerate(labelled.names) if name is not None]
    return Places(
        np.concatenate([samples[named], found]),
        (*(labelled.names[row] for row in named), *result.names),
        result.geometry,
    )


class AgreedPlaces(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Places that all phones of a phase name sound by: a part of its parameters, hence of its keys.

    By what a phone was told outside of the phase it must not be: whoever tells one phone of a
    result of its own would decide in which entry of a sum that phone alone counts.

    Attributes:
        encoder: whose embeddings they are among.
        geometry: how distances to them are taken.
        centroids: of the places, float32 (places, dimensions).
        labels: of each, an index into the phase's labels; −1 where it has no name.
    """

    encoder: EncoderName
    geometry: Geometry
    centroids: Matrix
    labels: Annotated[tuple[Annotated[int, Meta(ge=UNNAMED)], ...], Meta(max_length=MOST_PLACES)]

    @classmethod
    def of(cls, places: Places, encoder: str, hierarchy: LabelHierarchy) -> Self:
        """Agree on places by the classes that their names stand for in a phase.

        Args:
            places: any.
            encoder: whose embeddings they are among.
            hierarchy: of the phase.
        """
        return cls(
            encoder=encoder,
            geometry=places.geometry,
            centroids=Matrix.of(places.points),
            labels=tuple(_label(name, hierarchy) for name in places.names),
        )

    def named(self, labels: Sequence[str]) -> Places:
        """The same places, with the phase's labels as names."""
        names = tuple(None if label == UNNAMED else labels[label] for label in self.labels)
        return Places(self.centroids.array(), names, self.geometry)

    def check(self, labels: int) -> None:
        """Refuse places by which nothing can be named.

        Args:
            labels: how many the phase has.

        Raises:
            InvalidParametersError: says what is wrong and what would be accepted.
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
