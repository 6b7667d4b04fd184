"""All kinds of phase: the protocol's list, from which messages are derived."""

from __future__ import annotations

from earshot_protocol.phases import discovery, labelling, learning, statistics
from earshot_protocol.phases.parameters import Kind

KINDS: tuple[Kind, ...] = (
    learning.LEARNING,
    discovery.DISCOVERY,
    labelling.LABELLING,
    statistics.STATISTICS,
)
