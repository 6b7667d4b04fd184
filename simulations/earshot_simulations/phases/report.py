"""The page `report.html` on a simulated phase, which loads no other files."""

from __future__ import annotations

import json
import os
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from earshot_protocol.files import replace_file
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Cost, Unit
from earshot_server.dashboard.spending import (
    VACUOUS_EPSILON,
    by_mechanism,
    dearer_recording,
    is_vacuous,
)
from earshot_simulations.phases.own import OWN
from earshot_simulations.phases.run import UNPROTECTED, Run, figures, headline, result
from earshot_simulations.phases.settings import in_words
from earshot_simulations.reporting import charts
from earshot_simulations.reporting.pages import page
from earshot_simulations.reporting.words import (
    NOTHING,
    byte_size,
    duration,
    printable,
    real,
    whole,
)

RESULT, REPORT = "result.json", "report.html"
FILES = (RESULT, REPORT)
"""All files that `write` writes."""
_MOST_NOTES = 3
_MOST_ROWS = 200
_MOST_PHONES = 1000


def write(run: Run[Any], folder: str | os.PathLike[str]) -> None:
    """Write `result.json` and `report.html`, each as a whole or not at all.

    The numbers are written first, so they are saved even if rendering the report fails.

    Args:
        run: Run that finished or ended early.
        folder: Folder, created if it does not exist; other files in it stay as they are.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / RESULT, json.dumps(result(run), indent=2, allow_nan=False) + "\n")
    replace_file(folder / REPORT, render(run))


def render(run: Run[Any]) -> str:
    """Render the whole report as one HTML document.

    Args:
        run: Run that finished or ended early; the report mentions missing parts.
    """
    asked = [step for step in run.steps if step.asked]
    reasons = Counter(entry.reason for entry in run.skipped).most_common(_MOST_ROWS)
    costs = run.together.items()
    return page(
        "phases/report.html",
        title=f"{run.survivors} of {run.phones} phones",
        kicker=f"Earshot · a simulated {run.found.phase} · {run.population}",
        headline=headline(run),
        version=run.version,
        warnings=run.notes[:_MOST_NOTES],
        figures=figures(run),
        run=run,
        charts=charts,
        spending=_spending(run),
        unprotected=UNPROTECTED,
        dearer=dearer_recording(run.together),
        vacuous={unit: cost for unit, cost in costs if unit in LEDGER_UNITS and is_vacuous(cost)},
        vacuous_epsilon=VACUOUS_EPSILON,
        asked=[
            [step.step, *map(whole, (step.asked, step.answered, len(step.dropped)))]
            for step in asked
        ],
        lost=sum(len(step.dropped) for step in asked),
        most_phones=_MOST_PHONES,
        amounts=_amounts(run),
        reasons=[[reason, whole(count)] for reason, count in reasons],
        skipped=[
            [entry.recording, entry.reason, entry.detail] for entry in run.skipped[:_MOST_ROWS]
        ],
        own=run.provenance.get(OWN),
        command=command_line(run.configuration, run.found.command),
    )


def command_line(configuration: Mapping[str, object], command: str = "earshot simulate") -> str:
    """Return the command that repeats the run, quoted for a shell, one option per line."""
    parts = [command]
    for option, value in in_words(configuration):
        words = [option] if value is None else [option, value]
        parts.append(shlex.join(map(printable, words)))
    return " \\\n  ".join(parts)


def _spending(run: Run[Any]) -> list[list[str]]:
    """Return the costs of every step, then those of all together; none without a release."""
    if not run.privacy:
        return []
    rows = [
        [step, *_cost_cells({**run.costs.get(step, {}), **by_unit}), mechanism]
        for (step, mechanism), by_unit in by_mechanism(run.privacy).items()
    ]
    return [*rows, ["Together", *_cost_cells(run.together), ""]]


def _cost_cells(costs: Mapping[Unit, Cost]) -> list[str]:
    cells = [
        real(number) for unit in LEDGER_UNITS for number in (costs[unit].epsilon, costs[unit].delta)
    ]
    replaced = costs.get(Unit.REPLACED_PHONE)
    return [*cells, NOTHING if replaced is None else real(replaced.epsilon)]


def _amounts(run: Run[Any]) -> list[list[str]]:
    """Return the time and traffic of every step, then their totals; none before the first."""
    if not run.steps:
        return []
    amounts = [
        (
            step.per_phone(step.bytes_up),
            step.per_phone(step.bytes_down),
            step.per_phone(step.phone_cpu_seconds),
            step.server_cpu_seconds,
            step.seconds,
        )
        for step in run.steps
    ]
    rows = [
        [step.step, *_amount_cells(row, bool(step.asked))]
        for step, row in zip(run.steps, amounts, strict=True)
    ]
    totals = [sum(column) for column in zip(*amounts, strict=True)]
    return [*rows, ["Total", *_amount_cells(totals, True)]]


def _amount_cells(amounts: Sequence[float], by_phones: bool) -> list[str]:
    up, down, *durations = amounts
    cells = [byte_size(up), byte_size(down), *map(duration, durations)]
    return cells if by_phones else [NOTHING] * 3 + cells[3:]
