"""A phone's part in a learning phase (thesis, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_client import selection
from earshot_client.clustering import DPLloyd, LocalClustering, SphericalDPLloyd
from earshot_client.labels import UNLABELLED, label_counts
from earshot_client.phases.kind import Input, PhoneKind
from earshot_client.phases.memory import Memory
from earshot_protocol.errors import RefusedError, UnexpectedMessageError
from earshot_protocol.geometry import Geometry, counts
from earshot_protocol.phases import learning
from earshot_protocol.phases.acceptance import refusals_of_encoder
from earshot_protocol.phases.learning import (
    Cluster,
    GlobalCentroids,
    LocalCentroids,
    PhaseParameters,
    Result,
    TopCentroids,
)
from earshot_protocol.voting import ballots
from earshot_protocol.wire import Matrix

_CLUSTERINGS: dict[Geometry, Callable[[int, Any], LocalClustering]] = {
    Geometry.EUCLIDEAN: DPLloyd,
    Geometry.SPHERICAL: SphericalDPLloyd,
}


def _check(memory: Memory, parameters: PhaseParameters) -> None:
    """Refuse points of another encoder, or of more dimensions than this phone's have."""
    encoder = memory.encoder
    for refused in refusals_of_encoder(parameters, encoder.name, encoder.dimensions):
        raise refused


def _local_centroids(memory: Memory, parameters: PhaseParameters, task: Cluster) -> LocalCentroids:
    """Steps 3 to 5: cluster privately, choose the top centroids privately, publish them."""
    points, _ = memory.points(parameters.dimensions)
    mechanisms: dict[str, Any] = dict(parameters.plan().mechanisms)
    clustering_of = _CLUSTERINGS[parameters.geometry]
    clustering = clustering_of(parameters.local_centroids, mechanisms[learning.CLUSTER])
    centroids = clustering.cluster(points, memory.random)
    numbers = counts(points, centroids, parameters.geometry)
    top = selection.top_centroids(numbers, mechanisms[learning.SELECT], memory.random)
    return LocalCentroids(phase=task.phase, sender=task.index, centroids=Matrix.of(centroids[top]))


def _centroid_ballot(memory: Memory, parameters: PhaseParameters, task: GlobalCentroids) -> Input:
    """Step 8: ones for the candidates that most recordings are closest to."""
    centroids = _checked_centroids(task.centroids, parameters)
    points, _ = memory.points(parameters.dimensions)
    votes = min(parameters.centroid_votes, len(centroids))
    return ballots.top_votes(counts(points, centroids, parameters.geometry), votes)


def _label_ballot(memory: Memory, parameters: PhaseParameters, task: TopCentroids) -> Input:
    """Step 12: ones for the majority labels of the centroids that this phone knows best."""
    centroids, names = _checked_centroids(task.centroids, parameters), parameters.labels
    points, choices = memory.points(parameters.dimensions)
    classes = memory.classes_of(choices)
    labels = np.array(
        [names.index(name) if name in names else UNLABELLED for name in classes], dtype=np.int16
    )
    table = label_counts(points, labels, centroids, len(names), parameters.geometry)
    return ballots.label_votes(table, min(parameters.label_votes, len(centroids)))


def _finish(memory: Memory, result: Result) -> None:
    """Keep the labelled centroids, by which the phone names scenes.

    All phones are told of a result: centroids of another encoder name nothing that this one hears.
    """
    if result.encoder not in ("", memory.encoder.name):
        return
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
    if len(result.name_p_values) not in (0, len(centroids)):
        raise UnexpectedMessageError("a result whose p-values do not fit its centroids")
    memory.keep_result(result)


def _describe(result: Result) -> dict[str, Any]:
    return {"environments": [name or "unnamed" for name in result.names]}


def _checked_centroids(matrix: Matrix, parameters: PhaseParameters) -> npt.NDArray[np.float32]:
    centroids = matrix.array()
    if not len(centroids) or centroids.shape[1] != parameters.dimensions:
        raise RefusedError(
            f"centroids of shape {centroids.shape}; this phase has {parameters.dimensions} "
            "dimensions and at least one centroid"
        )
    return centroids


LEARNING = PhoneKind(
    kind=learning.LEARNING,
    contribute={
        Cluster: _local_centroids,
        GlobalCentroids: _centroid_ballot,
        TopCentroids: _label_ballot,
    },
    describe=_describe,
    check=_check,
    finish=_finish,
)
