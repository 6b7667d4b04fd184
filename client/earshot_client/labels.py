"""Polls about recordings, and counts of labelled recordings by centroid."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.environments import (
    LabelHierarchy,
    UnknownLabelError,
    default_hierarchy,
)
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.geometry import Geometry, nearest

__all__ = [
    "UNLABELLED",
    "LabelHierarchy",
    "Poll",
    "UnknownLabelError",
    "default_hierarchy",
    "label_counts",
]

UNLABELLED = -1
"""Index of a recording without a label, or whose class is not in the phase."""


@dataclass(frozen=True)
class Poll:
    """Question of an app for its user after a recording.

    Attributes:
        question: Text above the choices.
        groups: Heading → choices, in the order to show them; the answer is one of the choices or a
            heading, and is passed to `Listener.label` unchanged.
    """

    question: str
    groups: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, hierarchy: LabelHierarchy, question: str = "Where have you been?") -> Poll:
        """Return the poll of a hierarchy: its classes are the headings."""
        return cls(question, hierarchy.groups)


def label_counts(
    points: NDArray[np.floating],
    labels: NDArray[np.integer],
    centroids: NDArray[np.floating],
    label_total: int,
    geometry: Geometry,
) -> NDArray[np.int64]:
    """Count the recordings of each label that lie closest to each centroid (Algorithm 1, step 11).

    Args:
        points: Floats (recordings, dimensions).
        labels: Integers (recordings,), from 0 to `label_total` - 1, or -1 for a recording without a
            label, which is not counted.
        centroids: Floats (centroids, dimensions), at least one.
        label_total: Number of labels.
        geometry: Kind of distance.

    Returns:
        int64 (centroids, labels).

    Raises:
        InvalidInputError: The shapes do not fit each other, or a label is out of range.
    """
    if labels.shape != points.shape[:1] or labels.dtype.kind not in "iu":
        raise InvalidInputError(
            f"labels of shape {labels.shape} and type {labels.dtype} for points of shape "
            f"{points.shape}: one integer for each point is needed"
        )
    if label_total < 1 or (labels < UNLABELLED).any() or (labels >= label_total).any():
        raise InvalidInputError(
            f"labels must lie between 0 and {label_total - 1}, or be {UNLABELLED} where there is "
            "none"
        )
    labelled = labels >= 0
    cells = nearest(points[labelled], centroids, geometry) * label_total + labels[labelled]
    counts = np.bincount(cells, minlength=len(centroids) * label_total)
    return counts.astype(np.int64).reshape(len(centroids), label_total)
