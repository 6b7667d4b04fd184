"""The places of a statistics phase: environments that earlier phases found and named."""

from __future__ import annotations

from collections.abc import Iterator

from earshot_protocol.environments import LabelHierarchy
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.places import AgreedPlaces
from earshot_protocol.wire import Ending
from earshot_server.operator_client import OperatorClient
from earshot_server.phases.places import agreed
from earshot_server.records import PUBLISHED

NOTHING = "none"
"""Value of `--places-of` for no phase: only labelled contacts are counted."""


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
    places = agreed(ending, None, hierarchy)
    if places is None:
        raise InvalidInputError(
            f"--places-of {phase}: none of its environments has the name of one of the labels "
            f"{', '.join(hierarchy.classes)}"
        )
    return places


def published(operator: OperatorClient) -> Iterator[Ending | None]:
    """Yield the endings of published phases, newest first.

    Args:
        operator: Operator of the server that knows the phases.
    """
    over = [each for each in operator.phases() if each.status == PUBLISHED]
    over.sort(key=lambda each: each.finished or 0.0, reverse=True)
    return (operator.export(view.phase).ending for view in over)
