"""The places of a statistics phase: environments that earlier phases found and named."""

from __future__ import annotations

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases.labelling import Labelled
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.places import UNNAMED, AgreedPlaces, together
from earshot_protocol.wire import Ending
from earshot_server.operator_client import OperatorClient

NOTHING = "none"
"""Value of `--places-of` for no phase: only labelled contacts are counted."""
_PUBLISHED = "published"


def of_phase(phase: str, ending: Ending | None, hierarchy: LabelHierarchy) -> AgreedPlaces:
    """Return the places of one phase.

    Args:
        phase: Identifier of the phase, as the user gave it.
        ending: Ending of that phase.
        hierarchy: Label hierarchy of the statistics phase.

    Raises:
        InvalidInputError: The phase has published no places, or none with a label of the
            hierarchy.
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

    Phones name scenes by the same places.

    Args:
        operator: Client of the server that has the phases.
        hierarchy: Label hierarchy of the statistics phase.

    Returns:
        The places; None if none was published with a label of the hierarchy.
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
