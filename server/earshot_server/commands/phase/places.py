"""The places of a statistics phase: what other phases have found and named."""

from __future__ import annotations

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases.labelling import Labelled
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.places import UNNAMED, AgreedPlaces, together
from earshot_protocol.wire import Ending
from earshot_server.operator_client import OperatorClient

NOTHING = "none"
"""Word that stands for no phase: labels alone count."""
_PUBLISHED = "published"


def of_phase(phase: str, ending: Ending | None, hierarchy: LabelHierarchy) -> AgreedPlaces:
    """Return the places of one phase.

    Args:
        phase: Phase, as people call it.
        ending: Ending of that phase.
        hierarchy: Hierarchy of the phase that is to count by them.

    Raises:
        InvalidInputError: The phase has published no places, or none whose name the new phase
            knows.
    """
    if not isinstance(ending, NamedCentroids):
        raise InvalidInputError(f"--places-of {phase}: this phase has published no environments")
    places = _agreed(ending, None, hierarchy)
    if places is None:
        raise InvalidInputError(
            f"--places-of {phase}: none of its environments has the name of one of the labels "
            f"{', '.join(hierarchy.classes)}"
        )
    return places


def newest(operator: OperatorClient, hierarchy: LabelHierarchy) -> AgreedPlaces | None:
    """Return the places of the newest phase that found any, and of samples labelled since.

    Phones name scenes by them.

    Args:
        operator: Operator of the server that knows the phases.
        hierarchy: Hierarchy of the phase that is to count by them.

    Returns:
        The places; None where nothing was published whose name the phase knows.
    """
    over = [each for each in operator.phases() if each.status == _PUBLISHED]
    over.sort(key=lambda each: each.finished or 0.0, reverse=True)
    labelled: Labelled | None = None
    for view in over:
        ending = operator.export(view.phase).ending
        if not isinstance(ending, NamedCentroids):
            continue
        if not isinstance(ending, Labelled):
            since = labelled if labelled and labelled.encoder == ending.encoder else None
            return _agreed(ending, since, hierarchy)
        labelled = labelled or ending
    return None if labelled is None else _agreed(None, labelled, hierarchy)


def _agreed(
    result: NamedCentroids | None, labelled: Labelled | None, hierarchy: LabelHierarchy
) -> AgreedPlaces | None:
    places, about = together(result, labelled), result or labelled
    if places is None or about is None:
        return None
    agreed = AgreedPlaces.of(places, about.encoder, hierarchy)
    return agreed if any(label != UNNAMED for label in agreed.labels) else None
