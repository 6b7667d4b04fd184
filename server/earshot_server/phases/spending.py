"""Privacy cost of phases to their participants: of each, and of all together.

A total is the cost to a phone that took part in every phase it was offered, composed from the
events of its releases if that is less than their sum: an upper bound for every phone of this server
that holds at most as many recordings as each phase of local clustering names.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from earshot_protocol.messages import Failed
from earshot_protocol.phases.plan import Outcome
from earshot_protocol.privacy.accounting import Expense, Release
from earshot_protocol.privacy.events import Approximate
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.accounting.accountant import Composed, composed_total
from earshot_server.records import RESTORED_REASON, PhaseRecord

Costs = dict[Unit, Composed]


class Spending(NamedTuple):
    """Privacy that phones have spent.

    Attributes:
        phases: Costs of each phase, in the given order.
        total: Costs to a phone that took part in all of them.
        cohorts: Costs by cohort, to a phone that took part in all phases open to it.
    """

    phases: tuple[Costs, ...]
    total: Costs
    cohorts: dict[str, Costs]


def released(record: PhaseRecord) -> tuple[Release, ...]:
    """Return the releases that have left the phones of a phase so far, in both units of ledgers.

    The result of a published phase lists them; for any other phase, they are those in its plan's
    steps that some phone has answered. A phase that was under way in a backup may have continued
    after it, so all releases of its plan count.
    """
    if isinstance(record.ending, Outcome):
        return record.ending.privacy
    ending = record.ending
    restored = isinstance(ending, Failed) and ending.reason.startswith(RESTORED_REASON)
    answered = {step.step for step in record.steps if step.answered}
    if not answered and not restored:
        return ()
    phones = record.joined if record.steps else record.wanted
    plan = msgspec.structs.replace(record.parameters, phones=phones).plan()
    if restored:
        return plan.releases()
    left = {
        name
        for name in plan.mechanisms
        if (step := plan.released_in(name)) is not None and step.name in answered
    }
    return tuple(release for release in plan.releases() if release.step in left)


def expenses_of(record: PhaseRecord, releases: Iterable[Release]) -> tuple[Expense, ...]:
    """Return releases of a phase with their events.

    A release that is not in the plan of the phase's parameters is an `Approximate` event.
    """
    releases = tuple(releases)
    if not releases:
        return ()
    planned = {
        (each.release.step, each.release.unit): each for each in record.parameters.plan().expenses()
    }
    found = []
    for release in releases:
        known = planned.get((release.step, release.unit))
        alike = known is not None and math.isclose(known.release.epsilon, release.epsilon)
        event = known.event if known and alike else Approximate(release.epsilon, release.delta)
        found.append(Expense(release, event))
    return tuple(found)


def spending(records: Iterable[PhaseRecord]) -> Spending:
    """Return the privacy that phones have spent in these phases."""
    records = tuple(records)
    each = [expenses_of(record, released(record)) for record in records]
    named = sorted({name for record in records for name in record.cohorts})

    def of_cohort(name: str) -> Costs:
        return composed_total(
            expense
            for record, expenses in zip(records, each, strict=True)
            if not record.cohorts or name in record.cohorts
            for expense in expenses
        )

    return Spending(
        tuple(composed_total(expenses) for expenses in each),
        composed_total(expense for expenses in each for expense in expenses),
        {name: of_cohort(name) for name in named},
    )
