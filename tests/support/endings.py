"""What phases end with: three centroids, of which the third has no significant name."""

from __future__ import annotations

from typing import Any

import numpy as np

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.phases.labelling import Labelled
from earshot_protocol.phases.learning import Result
from earshot_protocol.wire import Matrix

_FOUND: dict[str, Any] = {
    "phase": bytes(16),
    "geometry": Geometry.SPHERICAL,
    "centroids": Matrix.of(np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])),
    "labels": (0, 1, 0),
    "label_names": ("bus", "park"),
    "label_votes": ((9, 0), (0, 8), (0, 0)),
    "name_p_values": (0.001, 0.001, 1.0),
    "privacy": (),
}


def result(**changes: Any) -> Result:
    """End a learning phase over anybody's embeddings."""
    return Result(**_FOUND | {"centroid_votes": (9, 8, 7)} | changes)


def discovered(**changes: Any) -> Discovered:
    """End a discovery phase over points: prototypes of two labels and of one choice, three cells.

    The embeddings are those of `HeardPoints("points", 2)`.
    """
    own = {
        "label_votes": (),
        "name_p_values": (0.001, 0.001, 0.02),
        "choices": ("", "", "night bus"),
        "cells": Matrix.of(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])),
        "moved": (True, True, False),
        "cell_lengths": (9.0, 7.5, 0.0),
        "lengths": (8.0, 6.0, 2.5),
        "encoder": "points",
    }
    return Discovered(**_FOUND | own | changes)


def formerly_discovered(**changes: Any) -> Discovered:
    """End a discovery phase of a former release, which named cells."""
    return Discovered(**_FOUND | {"moved": (True,) * 3, "encoder": "points"} | changes)


def labelled(**changes: Any) -> Labelled:
    """End a labelling phase over points."""
    own = {"agreement": (9, 9, 2), "threshold": 5.0, "encoder": "points"}
    return Labelled(**_FOUND | own | changes)
