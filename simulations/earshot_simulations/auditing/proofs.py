"""What is proven of events: a phone's own accounting, and that of the dp-accounting library."""

from __future__ import annotations

from collections.abc import Sequence

from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import Mechanism, Unit
from earshot_server.accounting.accountant import composed
from earshot_simulations.auditing.findings import Finding, Method, Role
from earshot_simulations.auditing.losses import Bracket

DELTA = 1e-6
"""δ at which ε is measured, unless a paper states another."""


def finding(
    subject: str,
    case: str,
    unit: Unit,
    mechanism: Mechanism,
    measured: Bracket,
    method: Method,
    role: Role = Role.PRODUCT,
) -> Finding:
    """What was measured beside what a mechanism declares and what is proven of its event."""
    events = (mechanism.event(unit),)
    return composed_finding(
        subject, case, unit, mechanism.cost(unit).epsilon, events, measured, method, role
    )


def composed_finding(
    subject: str,
    case: str,
    unit: Unit,
    claimed: float,
    events: Sequence[Event],
    measured: Bracket,
    method: Method,
    role: Role = Role.PRODUCT,
) -> Finding:
    """The same of several events, one after the other."""
    return Finding(
        subject,
        case,
        unit,
        DELTA,
        claimed,
        composed_epsilon(events, DELTA),
        measured,
        method,
        role,
        composed(events, DELTA).epsilon,
    )
