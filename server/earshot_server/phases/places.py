"""Places by which a statistics phase counts contacts that nobody labelled."""

from __future__ import annotations

from collections.abc import Iterable

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.phases.labelling import Labelled
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.places import UNNAMED, AgreedPlaces, together
from earshot_protocol.wire import Ending


def newest(endings: Iterable[Ending | None], hierarchy: LabelHierarchy) -> AgreedPlaces | None:
    """Return the places of the newest phase that found any, and of samples labelled since.

    Phones name scenes by them.

    Args:
        endings: Endings of published phases, newest first.
        hierarchy: Hierarchy of the phase that is to count by them.

    Returns:
        The places; None where nothing was published whose name the phase knows.
    """
    labelled: Labelled | None = None
    for ending in endings:
        if not isinstance(ending, NamedCentroids):
            continue
        if not isinstance(ending, Labelled):
            since = labelled if labelled and labelled.encoder == ending.encoder else None
            return agreed(ending, since, hierarchy)
        labelled = labelled or ending
    return None if labelled is None else agreed(None, labelled, hierarchy)


def agreed(
    result: NamedCentroids | None, labelled: Labelled | None, hierarchy: LabelHierarchy
) -> AgreedPlaces | None:
    """Return the places of a result and of labelled samples; None where the phase knows no name.

    Args:
        result: Result of a phase that found environments.
        labelled: Samples that phones labelled.
        hierarchy: Hierarchy of the phase that is to count by the places.
    """
    places, about = together(result, labelled), result or labelled
    if places is None or about is None:
        return None
    known = AgreedPlaces.of(places, about.encoder, hierarchy)
    return known if any(label != UNNAMED for label in known.labels) else None
