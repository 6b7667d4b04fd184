"""The two ways in which environments are found."""

from __future__ import annotations

import enum


class Discovery(enum.StrEnum):
    """How environments are found."""

    SECURE_SUM = "secure-sum"
    """By secure sums over the cells of public start centroids: protects phones."""
    LOCAL = "local"
    """By what phones cluster and publish on their own: protects recordings (the thesis)."""
