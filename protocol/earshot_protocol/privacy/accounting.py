"""Costs of releases, in both units of privacy: added up, and composed.

Reports show the composed cost of the releases' events, and budgets are compared with it
(`composed_cost`, `epsilon_at`). Adding up (basic composition; thesis, Theorem 8.3) can be checked
by hand (`total`); files keep it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from earshot_protocol.privacy.composition import added, composed_epsilon
from earshot_protocol.privacy.events import Event, Pure
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Cost, Mechanism, Unit
from earshot_protocol.text import line

LARGEST_STEP, LARGEST_MECHANISM = 64, 256
"""Most characters in the names of a step and of a mechanism."""


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One release of one step, counted in one unit."""

    step: Annotated[str, line(LARGEST_STEP)]
    unit: Unit
    epsilon: Annotated[float, Meta(ge=0)]
    delta: Annotated[float, Meta(ge=0, le=1)]
    mechanism: Annotated[str, line(LARGEST_MECHANISM)]


class Expense(NamedTuple):
    """A release and its event: what a ledger keeps."""

    release: Release
    event: Event


# Every phone needs the same at every step of a phase, and a simulation has many phones.
@functools.lru_cache(maxsize=1024)
def expenses(step: str, mechanism: Mechanism) -> tuple[Expense, ...]:
    """Return the cost of one private step, in each unit."""
    return tuple(
        Expense(
            Release(step, unit, cost.epsilon, cost.delta, mechanism.name), mechanism.event(unit)
        )
        for unit, cost in ((unit, mechanism.cost(unit)) for unit in LEDGER_UNITS)
    )


NOTHING = Pure(0.0)
"""Event of a step to which a phone adds nothing that depends on its data."""


def unspent(step: str, mechanism: Mechanism) -> tuple[Expense, ...]:
    """Return the cost, in each unit, of a step to which a phone adds zeros and its noise share."""
    return tuple(
        Expense(Release(step, unit, 0.0, 0.0, mechanism.name), NOTHING) for unit in LEDGER_UNITS
    )


def total(spent: Iterable[Release]) -> dict[Unit, Cost]:
    """Return the sum of all releases per unit (basic composition); δ is capped at 1."""
    spent = tuple(spent)
    return {
        unit: Cost(
            sum(release.epsilon for release in spent if release.unit is unit),
            min(1.0, sum(release.delta for release in spent if release.unit is unit)),
        )
        for unit in LEDGER_UNITS
    }


TOLD_DELTA = 1e-6
"""Default δ at which a composed ε is reported, unless a release states a larger one."""
_LESS = 1 - 1e-5
"""Minimum relative saving before the composed ε is reported instead of the sum; a smaller saving is
not worth the extra δ."""


def composed_cost(spent: Iterable[Expense]) -> Cost:
    """Return the joint cost of expenses of one unit, the one that every report shows.

    The cost is composed at `TOLD_DELTA`, or at the largest δ that one of them states. Where
    composing gains nothing, as with a single release, they are added up, which needs no more δ than
    they state.
    """
    spent = tuple(spent)
    together = added_epsilon(spent)
    delta = max([TOLD_DELTA, *(expense.release.delta for expense in spent)])
    composed = epsilon_at(delta, spent)
    if composed < _LESS * together:
        return Cost(composed, delta)
    return Cost(together, stated_delta(spent))


def added_epsilon(spent: Iterable[Expense]) -> float:
    """Return the sum of the ε that expenses of one unit state."""
    return added(expense.release.epsilon for expense in spent)


def stated_delta(spent: Iterable[Expense]) -> float:
    """Return the sum of the δ that expenses of one unit state; at most 1."""
    return min(1.0, added(expense.release.delta for expense in spent))


def epsilon_at(delta: float, spent: Iterable[Expense]) -> float:
    """Return an ε such that expenses of one unit together are (ε, δ)-differentially private.

    It is the smaller of the composed ε of their events (`composed_epsilon`) and, where their stated
    δ leaves it open, of their sum. The latter is smaller where the secure sums of many phases are
    most of δ: it counts each one's distance from an ideal sum at its own small ε.

    Args:
        delta: Value of δ; from 1 on every release is private.
        spent: Expenses of one unit.

    Returns:
        ε; infinite where no bound is known at this δ.

    Raises:
        InvalidParametersError: A number of an event is out of range.
    """
    return _epsilon_at(min(delta, 1.0), tuple(spent))


# The phones of a simulation need the same repeatedly.
@functools.lru_cache(maxsize=1024)
def _epsilon_at(delta: float, spent: tuple[Expense, ...]) -> float:
    composed = composed_epsilon((expense.event for expense in spent), delta)
    if stated_delta(spent) > delta:
        return composed
    return min(composed, added_epsilon(spent))
