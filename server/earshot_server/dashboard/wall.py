"""Wall page of a phase, for a room: attendance, progress and results."""

from __future__ import annotations

from typing import Any, NamedTuple

from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.phases.plan import Outcome
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.accounting.accountant import Composed
from earshot_server.dashboard import outcomes, prototypes, spending
from earshot_server.dashboard.prototypes import LabelRow
from earshot_server.records import GATHERING, RUNNING, PhaseRecord

EVERY = 2
"""Seconds after which the page refreshes itself."""


class Findings(NamedTuple):
    """Results of a phase, as the wall page shows them.

    Attributes:
        named: Labels and choices that are clear of the noise, the longest first.
        doubtful: Names of the others, which may be noise.
        lines: Outcome as text, for kinds of phase that find no labels.
    """

    named: tuple[LabelRow, ...] = ()
    doubtful: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()


def shown(record: PhaseRecord) -> dict[str, Any]:
    """Return the values of a phase for the page's template."""
    return {
        "record": record,
        "live": record.status in (GATHERING, RUNNING),
        "every": EVERY,
        "found": _found(record),
        "spent": _spent(record),
    }


def _found(record: PhaseRecord) -> Findings | None:
    ending = record.ending
    if isinstance(ending, Discovered):
        named: dict[str, LabelRow] = {}
        doubtful = []
        for row in prototypes.rows(ending):
            if row.clear:
                named.setdefault(row.name, row)
            else:
                doubtful.append(row.name)
        return Findings(tuple(named.values()), tuple(dict.fromkeys(doubtful)))
    if isinstance(ending, Outcome):
        nothing = outcomes.nothing_clear(ending)
        words = outcomes.words_for(record.parameters)
        return Findings(lines=(nothing,) if nothing else tuple(words.lines(ending)))
    return None


def _spent(record: PhaseRecord) -> Composed:
    """Return the most that the phase has cost a phone so far."""
    return spending.of_phase(record).spent[Unit.PHONE]
