"""Discovery is a black box to the rest: points in, global centroids out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from earshot_protocol.geometry import Geometry

OUTLIER, LEFT_OUT = -1, -2
"""Of a point: it is in no cluster; it was not looked at."""


@dataclass(frozen=True)
class Discovered:
    """What a discovery found.

    Attributes:
        centroids: float32 of shape (global centroids, dimensions).
        clusters: int64 of shape (points,): which global centroid a point belongs to, or `OUTLIER`,
            or `LEFT_OUT`.
    """

    centroids: npt.NDArray[np.float32]
    clusters: npt.NDArray[np.int64]


class Discovery(Protocol):
    """Finds global centroids in the union of what phones published (Algorithm 1, step 6)."""

    def discover(self, points: npt.NDArray[np.float32], geometry: Geometry) -> Discovered:
        """Cluster points of shape (points, dimensions)."""
