"""Figures of centroids that no phase of ours has published."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import Result
from earshot_protocol.wire import Matrix
from earshot_simulations.phases.environments import score
from earshot_simulations.populations import Population, Recordings
from earshot_simulations.sweeps.phase import (
    ARI_TEST,
    ARI_TRAIN,
    CENTROID_NAMES,
    NAMES,
    centroid_accuracy,
)
from earshot_simulations.sweeps.rows import Figures


def scored(
    centroids: npt.NDArray[np.float32],
    labels: npt.NDArray[np.int64],
    population: Population,
    heard: Recordings,
    geometry: Geometry,
) -> Figures:
    """The figures that a simulated phase has, of centroids and their labels.

    Args:
        centroids: float32 (centroids, dimensions).
        labels: int64 (centroids,); label i names scene i.
        population: whose held-out recordings count.
        heard: what some of its phones heard.
        geometry: of the points.
    """
    sure = (0.0,) * len(centroids)  # nothing is tested against noise
    result = Result(
        phase=bytes(16),
        geometry=geometry,
        centroids=Matrix.of(centroids),
        labels=tuple(labels.tolist()),
        label_names=population.labels,
        centroid_votes=(),
        label_votes=(),
        name_p_values=sure,
        privacy=(),
    )
    scores = score(result, heard, population.held_out())
    return {
        ARI_TRAIN: scores.ari_train,
        ARI_TEST: scores.ari_test,
        NAMES: scores.label_accuracy,
        CENTROID_NAMES: centroid_accuracy(centroids, labels, heard.points, heard.scenes),
        "centroids": len(centroids),
    }
