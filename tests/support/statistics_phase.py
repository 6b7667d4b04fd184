"""A statistics phase that a test plays: twelve phones, and places where their sounds lie."""

from __future__ import annotations

from datetime import date
from typing import Any

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.wire import Matrix
from support.parameters import statistics_parameters
from support.played_phase import CENTRES, CLASSES, PHONES

PARAMETERS = statistics_parameters(
    phones=PHONES,
    labels=CLASSES,
    contacts=12,
    noise=1e-6,  # so little noise that the count is exact, but for rounding
    dropout=0.25,
    step_seconds=100.0,
)
FIRST = date(2026, 1, 1)


def counts(result: Statistics) -> tuple[int, ...]:
    """Return labelled, named and unknown contacts, to the nearest whole one."""
    return tuple(map(round, (*result.labelled, *result.named, result.unknown)))


def published(labels: tuple[str, ...], **changes: Any) -> Statistics:
    """Return what a statistics phase published, by default no contact that stands clear."""
    nothing, noise = (0.0,) * len(labels), (1.0,) * len(labels)
    usual: dict[str, Any] = {
        "phase": bytes(16),
        "label_names": labels,
        "labelled": nothing,
        "named": nothing,
        "unknown": 0.0,
        "labelled_p_values": noise,
        "named_p_values": noise,
        "unknown_p_value": 1.0,
        "deviation": 1.5,
        "contacts": 5,
        "phones": 9,
        "privacy": (),
    }
    return Statistics(**usual | changes)


def places(labels: tuple[int, ...], encoder: str = "points") -> AgreedPlaces:
    """Return places at the two centres, with labels by which contacts near them are counted."""
    return AgreedPlaces(
        encoder=encoder,
        geometry=Geometry.EUCLIDEAN,
        centroids=Matrix.of(CENTRES),
        labels=labels,
    )
