"""A phone's part in a learning phase (thesis, Algorithm 1)."""

from __future__ import annotations

from typing import Any

from earshot_client import selection
from earshot_client.phases import centroids as shared
from earshot_client.phases.kind import Input, PhoneKind
from earshot_client.phases.memory import Memory
from earshot_client.private_runs import clustering_by
from earshot_protocol.geometry import counts
from earshot_protocol.phases import learning
from earshot_protocol.phases.learning import (
    Cluster,
    GlobalCentroids,
    LocalCentroids,
    PhaseParameters,
    TopCentroids,
)
from earshot_protocol.voting import ballots
from earshot_protocol.wire import Matrix


def _local_centroids(memory: Memory, parameters: PhaseParameters, task: Cluster) -> LocalCentroids:
    """Cluster privately, choose the top centroids privately, publish them (steps 3 to 5)."""
    points, _ = memory.points(parameters.dimensions)
    mechanisms: dict[str, Any] = dict(parameters.plan().mechanisms)
    clustering = clustering_by(mechanisms[learning.CLUSTER], parameters.local_centroids)
    centroids = clustering.cluster(points, memory.random)
    numbers = counts(points, centroids, parameters.geometry)
    top = selection.top_centroids(numbers, mechanisms[learning.SELECT], memory.random)
    return LocalCentroids(phase=task.phase, sender=task.index, centroids=Matrix.of(centroids[top]))


def _centroid_ballot(memory: Memory, parameters: PhaseParameters, task: GlobalCentroids) -> Input:
    """Return a ballot for the candidates nearest to the most recordings (step 8)."""
    centroids = shared.checked(task.centroids, parameters.dimensions)
    points, _ = memory.points(parameters.dimensions)
    votes = min(parameters.centroid_votes, len(centroids))
    return ballots.top_votes(counts(points, centroids, parameters.geometry), votes)


def _label_ballot(memory: Memory, parameters: PhaseParameters, task: TopCentroids) -> Input:
    """Return a ballot with the majority labels of this phone's best-known centroids (step 12)."""
    centroids = shared.checked(task.centroids, parameters.dimensions)
    table = shared.label_table(memory, parameters.labels, centroids, parameters.geometry)
    return ballots.label_votes(table, min(parameters.label_votes, len(centroids)))


LEARNING = PhoneKind(
    kind=learning.LEARNING,
    contribute={
        Cluster: _local_centroids,
        GlobalCentroids: _centroid_ballot,
        TopCentroids: _label_ballot,
    },
    describe=shared.describe,
    check=shared.check_encoder,
    finish=shared.keep,
)
