"""`report.html`: what a simulated learning phase did, on one page that loads nothing else."""

from __future__ import annotations

import html
import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from earshot_protocol.privacy.accounting import Release, total
from earshot_protocol.privacy.mechanisms import Cost, Unit
from earshot_protocol.privacy.significance import LEVEL
from earshot_server.dashboard.spending import VACUOUS_EPSILON, by_mechanism, is_vacuous
from earshot_server.dashboard.wording import NOTHING, UNNAMED, byte_size, counted, real, whole
from earshot_simulations.learning import charts, plane
from earshot_simulations.learning.attacks import adversary_section
from earshot_simulations.learning.markup import (
    alert,
    details,
    document,
    escaped,
    figure,
    grid,
    lead,
    section,
    table,
)
from earshot_simulations.learning.run import Run
from earshot_simulations.learning.wording import duration, percent, printable

_MOST_NOTES = 3
_MOST_ROWS = 200
_MOST_PHONES = 1000
_Value = TypeVar("_Value")


def render(run: Run) -> str:
    """The whole report as one HTML document.

    Args:
        run: finished or ended early; what it never reached is said, not left blank.
    """
    sections = (
        _learning_phase(run),
        _environments(run),
        adversary_section(run.adversary),
        _privacy(run.privacy),
        _dropouts(run),
        _costs(run),
        _skipped(run),
        _configuration(run),
        _notes(run),
    )
    return document(
        title=f"{run.survivors} of {run.phones} phones",
        kicker=f"Earshot · a simulated learning phase · {run.population}",
        headline=headline(run),
        notes="".join(alert(note) for note in run.notes[:_MOST_NOTES]),
        figures=_figures(run),
        sections=sections,
        version=run.version,
    )


def headline(run: Run) -> str:
    """The outcome in one plain sentence."""
    who = f"{whole(run.survivors)} of {counted(run.phones, 'phone')}"
    if run.interrupted is not None:
        return f"The run ended early: {run.interrupted}."
    environments = len({name for name in run.names if name is not None})
    if not environments:
        return f"{who} stayed to the end, but no environment was found and named."
    clauses = [f"{who} found {counted(environments, 'environment')}"]
    unnamed = run.names.count(None)
    if unnamed:
        clauses.append(f"{counted(unnamed, 'centroid')} of {len(run.names)} stayed unnamed")
    if run.label_accuracy is not None:
        clauses.append(
            f"a new recording gets the right name {percent(run.label_accuracy)} of the time"
        )
    if run.privacy:
        clauses.append(f"total privacy cost {_in_both_units(run.privacy)}")
    return "; ".join(clauses) + "."


def _in_both_units(spent: Sequence[Release]) -> str:
    costs = total(spent)
    return " and ".join(
        f"ε = {real(costs[unit].epsilon)} per {unit.value}"
        + (" (vacuous)" if is_vacuous(costs[unit]) else "")
        for unit in (Unit.RECORDING, Unit.PHONE)
    )


def command_line(configuration: Mapping[str, object]) -> str:
    """The command that repeats the run, quoted for a shell, one option a line."""
    parts = ["earshot simulate"]
    for name, value in configuration.items():
        if value is None or value is False or value == {}:
            continue
        words = ["--" + name.replace("_", "-")]
        if isinstance(value, Mapping):
            pairs = (f"{key.replace('_', '-')}={entry}" for key, entry in value.items())
            words.append(",".join(pairs))
        elif value is not True:
            words.append(str(value))
        parts.append(shlex.join(printable(word) for word in words))
    return " \\\n  ".join(parts)


def _figures(run: Run) -> str:
    costs = total(run.privacy)
    kept = NOTHING if run.centroid_votes is None else whole(len(run.top))
    named = len(run.names) - run.names.count(None)
    centroids = (
        _optional(run.global_centroids, lambda rows: whole(len(rows))),
        kept,
        _optional(run.label_votes, lambda _: whole(named)),
    )
    figures = {
        "phones stayed": f"{whole(run.survivors)} / {whole(run.phones)}",
        "centroids found / kept / named": " / ".join(centroids),
        "clustering (ARI), held out": _optional(run.ari_test, "{:.2f}".format),
        "clustering (ARI), heard": _optional(run.ari_train, "{:.2f}".format),
        "right name, held out": _optional(run.label_accuracy, percent),
        "ε per recording / phone": " / ".join(
            real(costs[unit].epsilon) for unit in (Unit.RECORDING, Unit.PHONE)
        )
        if run.privacy
        else NOTHING,
        "wall-clock time": duration(run.seconds),
        "peak memory": f"{whole(run.peak_memory_mb)} MB",
    }
    pairs = (f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in figures.items())
    return f'<dl class="figures">{"".join(pairs)}</dl>'


def _learning_phase(run: Run) -> str:
    frame = plane.frame(run.points)
    words = "Every picture shows the same plane. Grey points are what the phones heard."
    if frame.explained is not None:
        words += (
            f" The {run.points.shape[1]} dimensions are projected on the two in which the points "
            f"differ most; these hold {percent(frame.explained)} of their variance."
        )
    pictures = grid(
        figure(
            "1. What the phones heard",
            f"A sample of {counted(len(run.points), 'recording')}, coloured by true scene. "
            "No phone and no server knows this picture.",
            plane.recordings(run, frame),
        ),
        figure(
            "2. What they published",
            "The top centroids of all phones, with the noise that protects each recording.",
            plane.local_centroids(run, frame),
        ),
        figure(
            "3. What the server found",
            "Centroids in one colour went into one global centroid, marked by a cross; "
            "grey ones are outliers.",
            plane.global_centroids(run, frame),
        ),
        figure(
            "4. What the votes made of it",
            "The kept global centroids with the label and the centroid votes each received.",
            plane.labelled_centroids(run, frame),
        ),
    )
    return section("The learning phase", lead(words) + pictures)


def _environments(run: Run) -> str:
    if run.centroid_votes is None:
        return section("Environments found", lead("The run ended before the vote on centroids."))
    rows = []
    for row, (index, name) in enumerate(zip(run.top, run.names, strict=True)):
        votes_to_keep = whole(run.centroid_votes[index])
        if run.label_votes is None:
            rows.append([NOTHING, str(index), votes_to_keep, NOTHING, NOTHING, NOTHING])
            continue
        votes = run.label_votes[row]
        cast, most = votes.clip(0).sum(), votes.max()
        rows.append(
            [
                UNNAMED if name is None else name,
                str(index),
                votes_to_keep,
                whole(most),
                percent(most / cast) if cast else NOTHING,
                real(run.name_p_values[row]) if run.name_p_values else NOTHING,
            ]
        )
    centroids = table(
        "Kept global centroids. Votes carry noise; the share is that of the most frequent label "
        "among the label votes for its centroid. It is the centroid's name where noise alone would "
        f"name any centroid in at most {round(100 * LEVEL)} of 100 phases (p, corrected for all "
        "that were looked at); else the centroid is unnamed.",
        ("Label", "#Centroid", "#Votes to keep it", "#Votes for the label", "#Share", "#p"),
        rows[:_MOST_ROWS],
    )
    pictures = grid(
        figure(
            "Labels, published and true",
            "Held-out recordings by the name that the published centroids give them, "
            "beside their true one.",
            charts.label_histogram(run),
        ),
        figure(
            "Votes for a label",
            "Noisy sums of the second vote; a strong colour is a large sum.",
            charts.label_votes(run),
        ),
        figure(
            "Votes to keep a centroid", "Noisy sums of the first vote.", charts.centroid_votes(run)
        ),
    )
    return section("Environments found", centroids + _left_out(len(rows)) + pictures)


def _privacy(spent: Sequence[Release]) -> str:
    title = "Privacy spent"
    if not spent:
        return section(title, lead("Nothing was released, so nothing was spent."))
    promise = (
        "The most that everything published can tell about one recording, or about one phone: "
        "whether it took part changes the probability of any outcome by at most the factor "
        "e<sup>ε</sup>, except with probability δ. Costs add up over the steps."
    )
    costs = total(spent)
    rows = [
        [step, *_cost_cells(by_unit), mechanism]
        for (step, mechanism), by_unit in by_mechanism(spent).items()
    ]
    spending = table(
        "Cost of every step, per recording, and per phone that has as many recordings as the phase "
        "counts on.",
        ("Step", "#ε recording", "#δ recording", "#ε phone", "#δ phone", "Mechanism"),
        rows,
        ["Total", *_cost_cells(costs), ""],
    )
    warnings = (_vacuous(unit, cost) for unit, cost in costs.items() if is_vacuous(cost))
    return section(title, f'<p class="lead">{promise}</p>{spending}{"".join(warnings)}')


def _cost_cells(costs: Mapping[Unit, Cost]) -> list[str]:
    return [
        real(number)
        for unit in (Unit.RECORDING, Unit.PHONE)
        for number in (costs[unit].epsilon, costs[unit].delta)
    ]


def _vacuous(unit: Unit, cost: Cost) -> str:
    return alert(
        f"Per {unit.value} this promises nothing: ε = {real(cost.epsilon)} and δ = "
        f"{real(cost.delta)} allow an attacker to be all but certain. A promise begins well below "
        f"ε = {VACUOUS_EPSILON:.0f}, and needs a tiny δ."
    )


def _dropouts(run: Run) -> str:
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


def _costs(run: Run) -> str:
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


def _skipped(run: Run) -> str:
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


def _configuration(run: Run) -> str:
    words = lead(
        "This command repeats the run. Keys and masks come from the operating system and differ "
        "each time."
    )
    command = html.escape(command_line(run.configuration))
    return section("How to repeat it", f"{words}<pre>{command}</pre>")


def _notes(run: Run) -> str:
    if len(run.notes) <= _MOST_NOTES:
        return ""
    items = "".join(f"<li><p>{escaped(note)}</p></li>" for note in run.notes)
    summary = f"All {whole(len(run.notes))}"
    return section("Notes", details(summary, f'<ul class="notes">{items}</ul>'))


def _left_out(rows: int) -> str:
    more = rows - _MOST_ROWS
    return lead(f"{whole(more)} more are in result.json.") if more > 0 else ""


def _optional(value: _Value | None, write: Callable[[_Value], str]) -> str:
    return NOTHING if value is None else write(value)
