"""Proven costs of events: by a phone's own accounting, and by the dp-accounting library."""

from __future__ import annotations

from collections.abc import Sequence

from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import Mechanism, Unit
from earshot_server.accounting.accountant import composed
from earshot_simulations.auditing.findings import Finding, Technique
from earshot_simulations.auditing.losses import Bracket

DELTA = 1e-6
"""Value of δ at which ε is measured, unless a paper states another."""


def finding(
    case: str, unit: Unit, mechanism: Mechanism, measured: Bracket, method: Technique
) -> Finding:
    """Compare a measurement with a mechanism's declared cost and its event's proven cost."""
    events = (mechanism.event(unit),)
    return composed_finding(case, unit, mechanism.cost(unit).epsilon, events, measured, method)


def composed_finding(
    case: str,
    unit: Unit,
    claimed: float,
    events: Sequence[Event],
    measured: Bracket,
    method: Technique,
) -> Finding:
    """Compare a measurement with a claimed ε and the proven cost of composed events."""
    proven, library = composed_epsilon(events, DELTA), composed(events, DELTA).epsilon
    return Finding(case, unit, DELTA, claimed, proven, measured, method, library)
