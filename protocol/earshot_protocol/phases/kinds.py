"""All kinds of phase: the protocol's list."""

from __future__ import annotations

from typing import TYPE_CHECKING

from earshot_protocol.phases import learning, statistics
from earshot_protocol.phases.kind import Kind, union
from earshot_protocol.phases.parameters import Parameters

KINDS: tuple[Kind, ...] = (learning.LEARNING, statistics.STATISTICS)

# msgspec reads a union of types from what carries one of them; to a type checker each of them is
# no more than what all kinds share.
if TYPE_CHECKING:
    AnyParameters = Parameters
else:
    AnyParameters = union(kind.parameters for kind in KINDS)
    """Of any kind of phase; on the wire, `type` tells them apart."""
