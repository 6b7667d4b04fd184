"""The steps of the two kinds of phase, as stores, the API and vectors name them."""

from __future__ import annotations

import enum


class Step(enum.StrEnum):
    LOCAL_CENTROIDS = "local centroids"
    CENTROID_VOTE_ADVERTISE = "centroid vote: advertise keys"
    CENTROID_VOTE_SHARE = "centroid vote: share keys"
    CENTROID_VOTE_MASK = "centroid vote: masked input"
    CENTROID_VOTE_UNMASK = "centroid vote: unmask"
    LABEL_VOTE_ADVERTISE = "label vote: advertise keys"
    LABEL_VOTE_SHARE = "label vote: share keys"
    LABEL_VOTE_MASK = "label vote: masked input"
    LABEL_VOTE_UNMASK = "label vote: unmask"
    HISTOGRAM_ADVERTISE = "histogram: advertise keys"
    HISTOGRAM_SHARE = "histogram: share keys"
    HISTOGRAM_MASK = "histogram: masked input"
    HISTOGRAM_UNMASK = "histogram: unmask"
    PUBLISHED = "published"
    FAILED = "failed"


STEPS = tuple(Step)[:9]
STATISTICS_STEPS = tuple(Step)[9:13]
