"""A statistics phase that a test plays: twelve phones, and places where their sounds lie."""

from __future__ import annotations

from datetime import date

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


def places(labels: tuple[int, ...], encoder: str = "points") -> AgreedPlaces:
    """Return places at the two centres, with labels by which contacts near them are counted."""
    return AgreedPlaces(
        encoder=encoder,
        geometry=Geometry.EUCLIDEAN,
        centroids=Matrix.of(CENTRES),
        labels=labels,
    )
