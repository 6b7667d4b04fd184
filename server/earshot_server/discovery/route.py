"""The two ways of finding environments."""

from __future__ import annotations

import enum


class Discovery(enum.StrEnum):
    """Way of finding environments."""

    SECURE_SUM = "secure-sum"
    """Secure sums over the cells of public start centroids; protects phones."""
    LOCAL = "local"
    """Centroids that phones cluster and publish on their own; protects recordings (the thesis)."""
