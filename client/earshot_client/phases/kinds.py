"""All kinds of phase: the phone's list."""

from __future__ import annotations

from typing import Any

from earshot_client.phases import discovery, labelling, learning, statistics
from earshot_client.phases.kind import PhoneKind
from earshot_protocol.messages import Failed
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.wire import Ending

KINDS: tuple[PhoneKind, ...] = (
    learning.LEARNING,
    discovery.DISCOVERY,
    labelling.LABELLING,
    statistics.STATISTICS,
)


def kind_of(parameters: Parameters) -> PhoneKind:
    """Return the kind of a phase with these parameters."""
    return next(kind for kind in KINDS if isinstance(parameters, kind.kind.parameters))


def kind_ending(ending: Ending) -> PhoneKind | None:
    """Return the kind of phase that ends like this; None if it failed."""
    return next((kind for kind in KINDS if isinstance(ending, kind.kind.outcome)), None)


def described(ending: Ending) -> dict[str, Any]:
    """Return an ending in plain types, for the phone's user: its `type`, `phase` and outcome."""
    about = {"type": str(ending.__struct_config__.tag), "phase": ending.phase.hex()}
    if isinstance(ending, Failed):
        return about | {"reason": ending.reason}
    kind = kind_ending(ending)
    return about if kind is None else about | kind.describe(ending)
