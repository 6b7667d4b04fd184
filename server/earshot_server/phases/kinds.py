"""Registry of all kinds of phase on the server."""

from __future__ import annotations

import msgspec

from earshot_protocol.messages import AnyParameters
from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.labelling import LabellingParameters
from earshot_protocol.phases.learning import PhaseParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.secure_sum.interface import Aggregator, Saved
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
"""Type of parameters → type of snapshot, which implements the server's part in such a phase."""


class _Header(msgspec.Struct):
    parameters: AnyParameters


_PAIR = b"\x92"
"""First byte of an array of two objects in MessagePack: a snapshot, and the sum under way."""


def encode_snapshot(state: Snapshot, running: Aggregator | None) -> Saved:
    """Encode a snapshot with its sum, without copying a large sum."""
    encoded = msgspec.msgpack.encode(state)
    return running.save(_PAIR + encoded) if running else encoded


def decode_snapshot(saved: Saved) -> tuple[Snapshot, Saved]:
    """Decode a snapshot of any kind of phase, and its encoded sum; empty if there is none."""
    state: Saved = saved
    running: Saved = b""
    if bytes(saved[:1]) == _PAIR:
        pair = msgspec.msgpack.decode(saved, type=tuple[msgspec.Raw, msgspec.Raw])
        state, running = memoryview(pair[0]), memoryview(pair[1])
    header = msgspec.msgpack.decode(state, type=_Header)
    snapshot = msgspec.msgpack.decode(state, type=KINDS[type(header.parameters)])
    return snapshot, running
