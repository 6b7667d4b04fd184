"""Parts of a phone's work common to all phases that publish named centroids."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_client.labels import UNLABELLED, label_counts
from earshot_client.phases.memory import Memory
from earshot_protocol.errors import RefusedError, UnexpectedMessageError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.acceptance import refusals_of_encoder
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.wire import Matrix

UNNAMED = "unnamed"
"""Name, in plain types, of an environment whose label may be noise."""


def check_encoder(memory: Memory, parameters: Parameters) -> None:
    """Refuse embeddings of another encoder, or of more dimensions than this phone's have."""
    encoder = memory.encoder
    for refused in refusals_of_encoder(parameters, encoder.name, encoder.dimensions):
        raise refused


def checked(matrix: Matrix, dimensions: int, most: int | None = None) -> npt.NDArray[np.float32]:
    """Return a task's centroids, at least one and at most `most`, in these dimensions."""
    centroids = matrix.array()
    too_many = most is not None and len(centroids) > most
    if len(centroids) == 0 or too_many or centroids.shape[1] != dimensions:
        limit = "" if most is None else f", and at most {most}"
        raise RefusedError(
            f"centroids of shape {centroids.shape}; this phase has {dimensions} dimensions and at "
            f"least one centroid{limit}"
        )
    return centroids


def label_table(
    memory: Memory, names: tuple[str, ...], centroids: npt.NDArray[np.float32], geometry: Geometry
) -> npt.NDArray[np.int64]:
    """Count the phone's recordings of each label that lie closest to each centroid."""
    points, choices = memory.points(centroids.shape[1])
    number: dict[str | None, int] = {name: label for label, name in enumerate(names)}
    labels = np.array(
        [number.get(name, UNLABELLED) for name in memory.classes_of(choices)], dtype=np.int16
    )
    return label_counts(points, labels, centroids, len(names), geometry)


def keep(memory: Memory, result: NamedCentroids) -> None:
    """Keep the named centroids, by which the phone names scenes."""
    if compares(memory, result):
        memory.keep_result(result)


def compares(memory: Memory, result: NamedCentroids) -> bool:
    """Return whether named centroids are of this phone's encoder.

    Results are sent to all phones; centroids of another encoder are of no use to this one.

    Raises:
        UnexpectedMessageError: They are, but the result is inconsistent.
    """
    if result.encoder != memory.encoder.name:
        return False
    centroids = result.centroids.array()
    if not len(centroids) or centroids.shape[1] > memory.encoder.dimensions:
        raise UnexpectedMessageError(
            f"a result with centroids of shape {centroids.shape}; an embedding has "
            f"{memory.encoder.dimensions} dimensions"
        )
    if len(result.labels) != len(centroids) or any(
        label >= len(result.label_names) for label in result.labels
    ):
        raise UnexpectedMessageError("a result whose labels do not fit its centroids")
    if len(result.name_p_values) != len(centroids):
        raise UnexpectedMessageError("a result whose p-values do not fit its centroids")
    return True


def describe(result: NamedCentroids) -> dict[str, Any]:
    """Return the environments in plain types."""
    return {"environments": [name or UNNAMED for name in result.names]}
