"""All kinds of phase: the protocol's list, from which messages are derived."""

from __future__ import annotations

from earshot_protocol.phases import discovery, learning, statistics
from earshot_protocol.phases.parameters import Kind

KINDS: tuple[Kind, ...] = (learning.LEARNING, discovery.DISCOVERY, statistics.STATISTICS)
