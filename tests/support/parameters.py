"""Parameters of small phases: a test says only what matters to it."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.labelling import LabellingParameters
from earshot_protocol.phases.learning import Budget, PhaseParameters
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.wire import Matrix

_LEARNING = PhaseParameters(
    phones=100,
    recordings=5,
    dimensions=2,
    geometry=Geometry.EUCLIDEAN,
    encoder="points",
    labels=("bus", "park"),
    local_centroids=3,
    top_local_centroids=2,
    top_global_centroids=3,
    centroid_votes=2,
    label_votes=2,
    dropout=0.1,
    corrupted=0.05,
    budget=Budget(clustering=1.0, selection=0.25, centroid_vote=0.5, label_vote=0.5),
)
_STATISTICS = StatisticsParameters(
    phones=100, labels=("bus", "park"), contacts=5, noise=5.5, dropout=0.1, corrupted=0.05
)

_DISCOVERY = DiscoveryParameters(
    phones=100,
    labels=("bus", "park"),
    encoder="points",
    start=CentroidSet.of(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])),
    most_cells=3,
    sums=1,
    cells_noise=8.0,
    labels_noise=8.0,
    rows=2,
    dropout=0.1,
    corrupted=0.05,
)

_LABELLING = LabellingParameters(
    phones=100,
    labels=("bus", "park"),
    encoder="points",
    samples=Matrix.of(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])),
    votes_noise=20.0,
    check_noise=20.0,
    threshold=50.0,
    dropout=0.1,
    corrupted=0.05,
)


def learning_parameters(**changes: Any) -> PhaseParameters:
    """Of a phase over points in the plane, as `HeardPoints("points", 2)` hears them.

    A phone that protects recordings accepts it (`Policy.per_recording`). What a test counts on, it
    names, also where it is the value above.
    """
    return msgspec.structs.replace(_LEARNING, **changes)


def statistics_parameters(**changes: Any) -> StatisticsParameters:
    """Of a phase that a phone's default policy accepts; what a test counts on, it names."""
    return msgspec.structs.replace(_STATISTICS, **changes)


def discovery_parameters(**changes: Any) -> DiscoveryParameters:
    """Of a phase over points in the plane: three cells, two labels.

    A phone's default policy accepts it; what a test counts on, it names. Other start centroids
    stay as many as they are, unless it says to how many they may grow. A sum of labels has a row
    for each of them.
    """
    if "start" in changes:
        changes = {"most_cells": changes["start"].count, **changes}
    if "labels" in changes:
        changes = {"rows": len(changes["labels"]), **changes}
    return msgspec.structs.replace(_DISCOVERY, **changes)


def labelling_parameters(**changes: Any) -> LabellingParameters:
    """Of a phase over three samples in the plane, of two labels.

    A phone's default policy accepts it; what a test counts on, it names.
    """
    return msgspec.structs.replace(_LABELLING, **changes)
