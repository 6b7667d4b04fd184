"""Privacy cost of phases: of each, and of all together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from earshot_protocol.messages import Failed
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import LocalRelease, Outcome
from earshot_protocol.privacy import accounting
from earshot_protocol.privacy.accounting import Release
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Cost, Unit
from earshot_server.accounting.accountant import composed_total
from earshot_server.dashboard import histograms
from earshot_server.dashboard.languages import gettext as _
from earshot_server.dashboard.languages import noted
from earshot_server.phases import costs
from earshot_server.phases.spending import Costs, expenses_of, released, spending
from earshot_server.records import PhaseRecord

VACUOUS_EPSILON = 20.0
VACUOUS_DELTA = 0.01
DEARER_RECORDING = noted(
    "A recording costs more than its phone here: a phone is compared with zeros, but one recording "
    "more or less may change what a phone sends by more than replacing it with zeros does."
)
"""Explanation of an ε per recording that exceeds the ε per phone, shown beside both."""
_KINDS = {
    "discovery": noted("discovery phases"),
    "learning": noted("learning phases"),
    "labelling": noted("labelling phases"),
    "statistics": noted("statistics phases"),
}
OF_NAMED_RECORDINGS = noted(
    "Where phones cluster their own recordings, the cost per phone is for a phone that holds at "
    "most as many as its phase names; one that holds more spends more. Each phone's own ledger "
    "counts at least 1,000 recordings, so as not to reveal how many it holds."
)
"""Explanation of an ε per phone that depends on the phase's number of recordings."""


class StepSpending(NamedTuple):
    """One private step: its costs by unit, and whether phones have paid them.

    The units are those of ledgers and `Unit.REPLACED_PHONE`.
    """

    step: str
    mechanism: str
    costs: dict[Unit, Cost]
    spent: bool


@dataclass(frozen=True)
class Privacy:
    """Privacy cost of a phase.

    Attributes:
        rows: All private steps.
        total: Cost of all steps together, per unit (`costs.together`).
        spent: Cost of the steps that phones have paid together, per unit.
        complete: Whether phones have paid all steps.
        vacuous: Costs that are too large to promise anything (`is_vacuous`), by unit.
        limited: Phones for which the cost per phone holds, if not for all (`limited_to`).
    """

    rows: tuple[StepSpending, ...]
    total: Costs
    spent: Costs
    complete: bool
    vacuous: Costs
    limited: str

    @property
    def dearer(self) -> str:
        """Reason why a recording costs more than its phone; empty if it does not."""
        return dearer_recording(self.total)


def of_phase(record: PhaseRecord) -> Privacy:
    """Return the published privacy cost of a phase; before its end, the planned cost.

    A failed phase that never asked phones anything has no rows.
    """
    releases, paid = _planned(record), {each.step for each in released(record)}
    plan = histograms.agreed_parameters(record).plan()
    known = costs.step_costs(plan)
    rows = tuple(
        StepSpending(step, mechanism, known.get(step, {}) | cost, step in paid)
        for (step, mechanism), cost in by_mechanism(releases).items()
    )
    expenses = expenses_of(record, releases)
    units: tuple[Unit, ...] = LEDGER_UNITS
    steps = {row.step for row in rows}
    if steps <= set(known):
        units = tuple(Unit)
        expenses += tuple(
            each
            for each in costs.expenses(plan)
            if each.release.step in steps and each.release.unit not in LEDGER_UNITS
        )
    together = composed_total(expenses, units)
    spent = composed_total((each for each in expenses if each.release.step in paid), units)
    vacuous = {
        unit: cost
        for unit, cost in (spent if isinstance(record.ending, Failed) else together).items()
        if unit in LEDGER_UNITS and is_vacuous(cost)
    }
    limited = limited_to([record.parameters])
    return Privacy(rows, together, spent, all(row.spent for row in rows), vacuous, limited)


def _planned(record: PhaseRecord) -> tuple[Release, ...]:
    if isinstance(record.ending, Outcome):
        return record.ending.privacy
    if isinstance(record.ending, Failed) and not record.steps:
        return ()
    return histograms.agreed_parameters(record).plan().releases()


def by_mechanism(releases: Iterable[Release]) -> dict[tuple[str, str], dict[Unit, Cost]]:
    """Return the costs of each step and mechanism, in the order of their first release."""
    groups: dict[tuple[str, str], list[Release]] = {}
    for release in releases:
        groups.setdefault((release.step, release.mechanism), []).append(release)
    return {key: accounting.total(group) for key, group in groups.items()}


def is_vacuous(cost: Cost) -> bool:
    """Return whether a cost is too large to promise anything."""
    return cost.epsilon > VACUOUS_EPSILON or cost.delta > VACUOUS_DELTA


def dearer_recording(costs: Mapping[Any, Cost]) -> str:
    """Return the reason why a recording costs more than its phone; empty if it does not."""
    if not costs or costs[Unit.RECORDING].epsilon <= costs[Unit.PHONE].epsilon:
        return ""
    return _(DEARER_RECORDING)


def limited_to(phases: Iterable[Parameters]) -> str:
    """Return for which phones the cost per phone of these phases holds; empty if for all."""
    parts = (part for parameters in phases for part in parameters.plan().parts)
    if not any(isinstance(part, LocalRelease) for part in parts):
        return ""
    return _(OF_NAMED_RECORDINGS)


class Total(NamedTuple):
    """Total that a phone has paid that took part in all phases of a group.

    Attributes:
        sort: Name of the group; empty for all phases.
        phases: Number of its phases that have cost phones anything.
        spent: Cost per unit.
        limited: Phones for which the cost per phone holds, if not for all (`limited_to`).
    """

    sort: str
    phases: int
    spent: Costs
    limited: str

    @property
    def dearer(self) -> str:
        """Reason why a recording costs more than its phone; empty if it does not."""
        return dearer_recording(self.spent)


def of_all(records: Iterable[PhaseRecord]) -> tuple[Total, ...]:
    """Return the most that phases have cost a phone: by kind, by cohort, and in total."""
    paid = [record for record in records if released(record)]
    if not paid:
        return ()
    together = spending(paid)
    kinds = sorted({record.parameters.kind for record in paid})
    rows = [_of_kind(kind, paid) for kind in kinds] if len(kinds) > 1 else []
    for name, spent in together.cohorts.items():
        open_to = [record for record in paid if not record.cohorts or name in record.cohorts]
        rows.append(Total(_("cohort %(name)s", name=name), len(open_to), spent, _limited(open_to)))
    return (*rows, Total("", len(paid), together.total, _limited(paid)))


def _of_kind(kind: str, paid: Sequence[PhaseRecord]) -> Total:
    records = [record for record in paid if record.parameters.kind == kind]
    sort = _(_KINDS.get(kind, f"{kind} phases"))
    return Total(sort, len(records), spending(records).total, _limited(records))


def _limited(records: Iterable[PhaseRecord]) -> str:
    return limited_to(record.parameters for record in records)
