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
    "name_p_values": (0.001, 0.001, 1.0),
    "encoder": "points",
    "privacy": (),
}
_VOTES = ((9, 0), (0, 8), (0, 0))


def result(**changes: Any) -> Result:
    """End a learning phase over points."""
    own = {
        "centroid_votes": (9, 8, 7),
        "label_votes": _VOTES,
        "centroid_p_values": (0.001, 0.001, 0.001),
    }
    return Result(**_FOUND | own | changes)


def discovered(**changes: Any) -> Discovered:
    """End a discovery phase over points: prototypes of two labels and of one choice, three cells.

    The embeddings are those of `HeardPoints("points", 2)`.
    """
    own = {
        "name_p_values": (0.001, 0.001, 0.02),
        "choices": ("", "", "night bus"),
        "cells": Matrix.of(np.array([[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])),
        "moved": (True, True, False),
        "cell_lengths": (9.0, 7.5, 0.0),
        "cell_prototypes": (0, 1, 0),
        "lengths": (8.0, 6.0, 2.5),
        "refused": 0.0,
    }
    return Discovered(**_FOUND | own | changes)


def labelled(**changes: Any) -> Labelled:
    """End a labelling phase over points."""
    own = {"label_votes": _VOTES, "agreement": (9, 9, 2), "threshold": 5.0}
    return Labelled(**_FOUND | own | changes)
