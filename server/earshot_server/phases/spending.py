"""What phases have cost those who took part: of each, and of all of them together.

A total is that of a phone which took part in every phase it was offered, by basic composition
(thesis, Theorem 8.3): no phone has spent more on this server, and most have spent less.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from earshot_protocol.phases.plan import Outcome
from earshot_protocol.privacy.accounting import Release, total
from earshot_protocol.privacy.mechanisms import Cost, Unit
from earshot_server.records import PhaseRecord

Costs = dict[Unit, Cost]


class Spending(NamedTuple):
    """What phones have spent.

    Attributes:
        phases: of each phase, in the order in which they were given.
        total: of a phone that took part in all of them.
        cohorts: of a phone of each cohort that took part in all that were open to it.
    """

    phases: tuple[Costs, ...]
    total: Costs
    cohorts: dict[str, Costs]


def released(record: PhaseRecord) -> tuple[Release, ...]:
    """What has left the phones of a phase so far, in both units.

    Of a phase that was published, what it says itself; of any other, what its plan releases in the
    steps that some phone has answered.
    """
    if isinstance(record.ending, Outcome):
        return record.ending.privacy
    answered = {step.step for step in record.steps if step.answered}
    if not answered:
        return ()
    plan = msgspec.structs.replace(record.parameters, phones=record.joined).plan()
    left = {
        name
        for name in plan.mechanisms
        if (step := plan.released_in(name)) is not None and step.name in answered
    }
    return tuple(release for release in plan.releases() if release.step in left)


def spending(records: Iterable[PhaseRecord]) -> Spending:
    """What phones have spent in these phases."""
    records = tuple(records)
    each = [released(record) for record in records]
    named = sorted({name for record in records for name in record.cohorts})

    def of_cohort(name: str) -> Costs:
        return total(
            release
            for record, releases in zip(records, each, strict=True)
            if not record.cohorts or name in record.cohorts
            for release in releases
        )

    return Spending(
        tuple(total(releases) for releases in each),
        total(release for releases in each for release in releases),
        {name: of_cohort(name) for name in named},
    )
