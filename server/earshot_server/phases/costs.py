"""Privacy cost of a phase to a phone: of each step and of all together, in every unit.

Besides the units of ledgers there is that of a replaced phone, whose part is exchanged for another
phone's: its sensitivity is up to twice as large as with zeros, and it counts towards no budget.
"""

from __future__ import annotations

from collections.abc import Collection

from earshot_protocol.phases.plan import Plan
from earshot_protocol.privacy.accounting import Expense, Release
from earshot_protocol.privacy.mechanisms import Cost, Unit
from earshot_server.accounting.accountant import Composed, composed_total


def expenses(plan: Plan) -> tuple[Expense, ...]:
    """Return the cost of everything that a phase of this plan releases, in every unit."""
    return tuple(
        Expense(
            Release(name, unit, cost.epsilon, cost.delta, mechanism.name), mechanism.event(unit)
        )
        for name, mechanism in plan.mechanisms.items()
        for unit, cost in ((unit, mechanism.cost(unit)) for unit in Unit)
    )


def step_costs(plan: Plan) -> dict[str, dict[Unit, Cost]]:
    """Return the cost of each private step of this plan, by its name and unit."""
    return {
        name: {unit: mechanism.cost(unit) for unit in Unit}
        for name, mechanism in plan.mechanisms.items()
    }


def together(plan: Plan, steps: Collection[str] | None = None) -> dict[Unit, Composed]:
    """Return the joint cost of private steps of a phase, by unit.

    Args:
        plan: Plan of the phase.
        steps: Names of the private steps to count; by default all.
    """
    wanted = plan.mechanisms if steps is None else steps
    return composed_total(
        (each for each in expenses(plan) if each.release.step in wanted), tuple(Unit)
    )
