"""The two files that a person keeps of a simulated labelling phase."""

from __future__ import annotations

import html
import json
import shlex
from dataclasses import asdict
from pathlib import Path

from earshot_protocol import distribution
from earshot_protocol.files import replace_file
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Unit
from earshot_server.dashboard.outcomes import answer_of
from earshot_simulations.labelling.simulation import Run, Scores, result
from earshot_simulations.reporting.markup import alert, document, lead, section, table
from earshot_simulations.reporting.words import (
    NOTHING,
    byte_size,
    counted,
    duration,
    percent,
    real,
    whole,
)

_MOST_NOTES = 3


def write(run: Run, folder: Path) -> None:
    """Write `result.json` and `report.html`, each as a whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / "result.json", json.dumps(result(run), indent=2, allow_nan=False) + "\n")
    replace_file(folder / "report.html", render(run))


def render(run: Run) -> str:
    """Render the whole report as one HTML document that loads nothing from elsewhere."""
    return document(
        title=f"{run.survivors} of {run.settings.phones} phones",
        kicker=f"Earshot · a simulated labelling phase · {run.population}",
        headline=headline(run),
        notes="".join(alert(note) for note in run.notes[:_MOST_NOTES]),
        sections=(_samples(run), _privacy(run), _steps(run), _repeated(run)),
        version=distribution.version(),
    )


def headline(run: Run) -> str:
    """Return the outcome in one plain sentence."""
    scores = run.scores
    if scores is None:
        return f"The phase failed: {run.failure}"
    who = f"{whole(run.survivors)} of {counted(run.settings.phones, 'phone')}"
    samples = counted(run.settings.samples, "sample")
    said = f"{who} labelled {percent(scores.answered)} of {samples}"
    if scores.right is not None:
        said += f", {percent(scores.right)} of these correctly"
    return (
        f"{said}; a phone alone labels {percent(scores.alone)} correctly on average; the phase "
        f"costs ε = {real(run.together[Unit.PHONE].epsilon)} per phone."
    )


def figures(scores: Scores) -> dict[str, str]:
    """Return the figures of the scores in words, by name."""
    alone = f"{percent(scores.alone)} (mean), {percent(scores.best_alone)} (best)"
    return {
        "samples answered": percent(scores.answered),
        "of these right": _optional(scores.right),
        "clear of the noise": percent(scores.clear),
        "of these right, too": _optional(scores.clear_right),
        "right by votes alone": percent(scores.proposed_right),
        "right by one phone": alone,
    }


def _optional(value: float | None) -> str:
    return NOTHING if value is None else percent(value)


def _samples(run: Run) -> str:
    found = run.outcome
    if found is None or run.scores is None:
        return section("Samples", lead("The phase failed before anything was published."))
    names = run.parameters.labels
    shares = table(
        "Answered samples.", ("", "#Share"), list(map(list, figures(run.scores).items()))
    )
    rows = [
        [str(row + 1), names[scene], answer_of(found, row), real(found.name_p_values[row])]
        for row, scene in enumerate(run.scenes)
    ]
    said = (
        f"The label with the most votes is the answer if {real(found.threshold)} or more phones, "
        "noise included, agree with it."
    )
    answers = table("Sample by sample.", ("Sample", "Truth", "Answer", "#p"), rows)
    return section("Samples", lead(said) + shares + answers)


def _privacy(run: Run) -> str:
    units = (*LEDGER_UNITS, Unit.REPLACED_PHONE)
    rows = [
        [step, *(f"{real(costs[unit].epsilon)}" for unit in units)]
        for step, costs in run.costs.items()
    ]
    foot = ["Together", *(f"{real(run.together[unit].epsilon)}" for unit in units)]
    heads = ("Step", "#ε recording", "#ε phone (zero-out)", "#ε phone, replaced")
    caption = f"At δ = {real(run.settings.delta)}, for a phone of the largest weight."
    return section("Privacy spent", table(caption, heads, rows, foot))


def _steps(run: Run) -> str:
    rows = [
        [
            *(step.step, whole(step.asked), whole(step.answered), whole(len(step.dropped))),
            *(byte_size(step.per_phone(step.bytes_up)), duration(step.seconds)),
        ]
        for step in run.steps
    ]
    heads = ("Step", "#Asked", "#Answered", "#Vanished", "#Up per phone", "#Wall clock")
    return section("Steps", table("Phones in every step.", heads, rows))


def _repeated(run: Run) -> str:
    words = ["earshot", "simulate", "labelling"]
    for name, value in asdict(run.settings).items():
        if name != "heterogeneity" and value is not None:
            words += [f"--{name.replace('_', '-')}", str(value)]
    said = lead("This command repeats the run; keys and masks differ each time.")
    return section("How to repeat it", f"{said}<pre>{html.escape(shlex.join(words))}</pre>")
