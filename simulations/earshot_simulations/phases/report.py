"""The page `report.html` on a simulated phase, which loads nothing from elsewhere."""

from __future__ import annotations

import html
import json
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from earshot_protocol.files import replace_file
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Cost, Unit
from earshot_server.dashboard.spending import VACUOUS_EPSILON, by_mechanism, is_vacuous
from earshot_simulations.phases.routes import in_words
from earshot_simulations.phases.run import Run, result
from earshot_simulations.reporting import charts
from earshot_simulations.reporting.markup import (
    alert,
    details,
    document,
    escaped,
    figure,
    figures,
    grid,
    lead,
    section,
    table,
)
from earshot_simulations.reporting.words import (
    NOTHING,
    byte_size,
    counted,
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


def write(run: Run[Any], folder: Path) -> None:
    """Write `result.json` and `report.html`, each as a whole or not at all.

    The numbers are written first, so that they survive a report that cannot be drawn.

    Args:
        run: Run that finished or ended early.
        folder: Folder, created if it does not exist; other files in it stay as they are.
    """
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / RESULT, json.dumps(result(run), indent=2, allow_nan=False) + "\n")
    replace_file(folder / REPORT, render(run))


def render(run: Run[Any]) -> str:
    """Render the whole report as one HTML document.

    Args:
        run: Run that finished or ended early; missing parts are mentioned, not left blank.
    """
    return document(
        title=f"{run.survivors} of {run.phones} phones",
        kicker=f"Earshot · a simulated {run.found.phase} · {run.population}",
        headline=headline(run),
        notes="".join(alert(note) for note in run.notes[:_MOST_NOTES]),
        figures=_figures(run),
        sections=(
            *run.found.sections(run),
            _privacy(run),
            _dropouts(run),
            _costs(run),
            _skipped(run),
            _configuration(run),
            _notes(run),
        ),
        version=run.version,
    )


def headline(run: Run[Any]) -> str:
    """Return the outcome in one plain sentence."""
    if run.interrupted is not None:
        return f"The run ended early: {run.interrupted}."
    outcome: str = run.found.outcome(run)
    return outcome


def command_line(configuration: Mapping[str, object], command: str = "earshot simulate") -> str:
    """Return the command that repeats the run, quoted for a shell, one option per line."""
    parts = [command]
    for option, value in in_words(configuration):
        words = [option] if value is None else [option, value]
        parts.append(shlex.join(map(printable, words)))
    return " \\\n  ".join(parts)


def _figures(run: Run[Any]) -> str:
    costs = run.together
    pairs = {
        "phones stayed": f"{whole(run.survivors)} / {whole(run.phones)}",
        **run.found.figures(),
        "ε per recording / phone (zero-out)": " / ".join(
            real(costs[unit].epsilon) for unit in (Unit.RECORDING, Unit.PHONE)
        )
        if run.privacy
        else NOTHING,
        "wall-clock time": duration(run.seconds),
        "peak memory": f"{whole(run.peak_memory_mb)} MB",
    }
    return figures(pairs)


def _privacy(run: Run[Any]) -> str:
    title, spent = "Privacy spent", run.privacy
    if not spent:
        return section(title, lead("Nothing was released, so nothing was spent."))
    promise = (
        "This bounds what everything published reveals about one recording, or about one phone: "
        "whether it took part changes the probability of any outcome by at most the factor "
        "e<sup>ε</sup>, except with probability δ. A phone is compared with zeros in its place, "
        "its noise still added (zero-out); the cost if another phone's part takes its place stands "
        "beside it, and no budget counts it. Steps together cost what they compose to, which may "
        "be less than their sum."
    )
    costs = run.together
    rows = [
        [step, *_cost_cells({**run.costs.get(step, {}), **by_unit}), mechanism]
        for (step, mechanism), by_unit in by_mechanism(spent).items()
    ]
    spending = table(
        "Cost of every step, per recording, per phone"
        + run.found.unit_note
        + ", and per phone that is replaced.",
        (
            *("Step", "#ε recording", "#δ recording", "#ε phone (zero-out)"),
            *("#δ phone (zero-out)", "#ε phone, replaced", "Mechanism"),
        ),
        rows,
        ["Together", *_cost_cells(costs), ""],
    )
    counted_units = (unit for unit in LEDGER_UNITS if is_vacuous(costs[unit]))
    warnings = "".join(_vacuous(unit, costs[unit]) for unit in counted_units)
    return section(title, f'<p class="lead">{promise}</p>{spending}{warnings}')


def _cost_cells(costs: Mapping[Unit, Cost]) -> list[str]:
    cells = [
        real(number) for unit in LEDGER_UNITS for number in (costs[unit].epsilon, costs[unit].delta)
    ]
    replaced = costs.get(Unit.REPLACED_PHONE)
    return [*cells, NOTHING if replaced is None else real(replaced.epsilon)]


def _vacuous(unit: Unit, cost: Cost) -> str:
    return alert(
        f"Per {unit.value} this promises nothing: ε = {real(cost.epsilon)} and δ = "
        f"{real(cost.delta)} allow an attacker to be all but certain. A promise begins well below "
        f"ε = {VACUOUS_EPSILON:.0f}, and needs a tiny δ."
    )


def _dropouts(run: Run[Any]) -> str:
    title = "Who vanished when"
    asked = [step for step in run.steps if step.asked]
    if not asked:
        return section(title, lead("No phone was asked anything."))
    steps = table(
        "Phones in every step.",
        ("Step", "#Asked", "#Answered", "#Vanished"),
        [
            [step.step, *map(whole, (step.asked, step.answered, len(step.dropped)))]
            for step in asked
        ],
    )
    lost = sum(len(step.dropped) for step in asked)
    if not lost:
        return section(title, lead("No phone vanished.") + steps)
    words = lead(f"{counted(lost, 'phone')} of {whole(run.phones)} vanished during the phase.")
    picture = figure("Phones that vanished", "By step.", charts.dropouts(run.steps))
    numbers = "".join(
        f"<li>{escaped(step.step)}: {_listed(step.dropped)}</li>" for step in asked if step.dropped
    )
    return section(
        title,
        words
        + steps
        + grid(picture, kind="grid narrow")
        + details("Their numbers", f"<ul>{numbers}</ul>"),
    )


def _listed(phones: Sequence[int]) -> str:
    numbers = ", ".join(map(str, phones[:_MOST_PHONES]))
    more = len(phones) - _MOST_PHONES
    return f"{numbers} and {whole(more)} more" if more > 0 else numbers


def _costs(run: Run[Any]) -> str:
    title = "Time and traffic"
    if not run.steps:
        return section(title, lead("The run ended before the first step."))
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
    means = table(
        "Per phone: means over the phones that answered. All phones share this machine, so "
        "wall-clock time is that of the simulation.",
        ("Step", "#Up per phone", "#Down per phone", "#Phone CPU", "#Server CPU", "#Wall clock"),
        [
            [step.step, *_amount_cells(row, bool(step.asked))]
            for step, row in zip(run.steps, amounts, strict=True)
        ],
        ["Total", *_amount_cells([sum(column) for column in zip(*amounts, strict=True)], True)],
    )
    pictures = grid(
        figure("Bytes", "Per phone and step.", charts.bytes_per_step(run.steps)),
        figure("Seconds", "Wall-clock time per step.", charts.seconds_per_step(run.steps)),
    )
    return section(title, means + pictures)


def _amount_cells(amounts: Sequence[float], by_phones: bool) -> list[str]:
    up, down, *durations = amounts
    cells = [byte_size(up), byte_size(down), *map(duration, durations)]
    return cells if by_phones else [NOTHING] * 3 + cells[3:]


def _skipped(run: Run[Any]) -> str:
    if not run.skipped:
        return ""
    reasons = Counter(entry.reason for entry in run.skipped).most_common(_MOST_ROWS)
    counts = table(
        f"{counted(len(run.skipped), 'recording')} could not be used.",
        ("Reason", "#Recordings"),
        [[reason, whole(count)] for reason, count in reasons],
    )
    listed = table(
        f"The first {min(_MOST_ROWS, len(run.skipped))} of {whole(len(run.skipped))}.",
        ("Recording", "Reason", "Detail"),
        [[entry.recording, entry.reason, entry.detail] for entry in run.skipped[:_MOST_ROWS]],
    )
    return section("What was skipped", counts + details("Which ones", listed))


def _configuration(run: Run[Any]) -> str:
    words = lead(
        "This command repeats the run. Keys and masks come from the operating system and differ "
        "each time."
    )
    command = html.escape(command_line(run.configuration, run.found.command))
    return section("How to repeat it", f"{words}<pre>{command}</pre>")


def _notes(run: Run[Any]) -> str:
    if len(run.notes) <= _MOST_NOTES:
        return ""
    items = "".join(f"<li><p>{escaped(note)}</p></li>" for note in run.notes)
    summary = f"All {whole(len(run.notes))}"
    return section("Notes", details(summary, f'<ul class="notes">{items}</ul>'))
