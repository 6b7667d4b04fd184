"""All kinds of phase: the server's list."""

from __future__ import annotations

import msgspec

from earshot_protocol.messages import AnyParameters
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.labelling import LabellingParameters
from earshot_protocol.phases.learning import PhaseParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_server.phases.discovery import DiscoveryPhase
from earshot_server.phases.labelling import LabellingPhase
from earshot_server.phases.learning import LearningPhase
from earshot_server.phases.snapshot import Snapshot
from earshot_server.phases.statistics import StatisticsPhase

KINDS: dict[type[Parameters], type[Snapshot]] = {
    PhaseParameters: LearningPhase,
    DiscoveryParameters: DiscoveryPhase,
    LabellingParameters: LabellingPhase,
    StatisticsParameters: StatisticsPhase,
}
"""Parameters → what the server knows of such a phase, and does in it."""


class _Header(msgspec.Struct):
    parameters: AnyParameters


def decode_snapshot(saved: bytes) -> Snapshot:
    """A snapshot that was encoded, of whatever kind of phase."""
    header = msgspec.msgpack.decode(saved, type=_Header)
    return msgspec.msgpack.decode(saved, type=KINDS[type(header.parameters)])
