"""What releases cost, in both units of privacy.

The table uses basic composition (thesis, Theorem 8.3): a view that anyone can check by hand.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Cost, Mechanism, Unit


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One release of one step, counted in one unit."""

    step: str
    unit: Unit
    epsilon: float
    delta: float
    mechanism: str


class Expense(NamedTuple):
    """A release, and the event that it is: what a ledger keeps."""

    release: Release
    event: Event


def expenses(step: str, mechanism: Mechanism) -> tuple[Expense, ...]:
    """What one private step costs, in each unit."""
    return tuple(
        Expense(
            Release(step, unit, cost.epsilon, cost.delta, mechanism.name), mechanism.event(unit)
        )
        for unit, cost in ((unit, mechanism.cost(unit)) for unit in LEDGER_UNITS)
    )


def total(spent: Iterable[Release]) -> dict[Unit, Cost]:
    """The sum of all releases per unit (basic composition); δ is capped at 1."""
    spent = tuple(spent)
    return {
        unit: Cost(
            sum(release.epsilon for release in spent if release.unit is unit),
            min(1.0, sum(release.delta for release in spent if release.unit is unit)),
        )
        for unit in LEDGER_UNITS
    }
