"""The page `report.html` on both routes for one crowd: findings, costs, and whom each protects."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from earshot_protocol.files import replace_file
from earshot_protocol.privacy.mechanisms import Cost, Unit
from earshot_server.dashboard.spending import is_vacuous
from earshot_server.discovery.route import Discovery
from earshot_simulations.phases.environments import EnvironmentFindings, Pictured
from earshot_simulations.phases.report import FILES, REPORT, command_line, write
from earshot_simulations.phases.routes import ROUTES, Routes
from earshot_simulations.phases.run import Run
from earshot_simulations.phases.settings import ROUTE
from earshot_simulations.reporting import plane
from earshot_simulations.reporting.markup import (
    alert,
    card,
    cards,
    document,
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
    optional,
    percent,
    real,
    whole,
)

FILES_OF_BOTH = (REPORT, *(f"{route}/{name}" for route in Routes.BOTH.each for name in FILES))
"""All files that `write_both` writes."""
_MOST_LABELS = 200
_MOST_NOTES = 3

Runs = Mapping[Discovery, Run[EnvironmentFindings]]
"""Runs by route."""


def write_both(runs: Runs, folder: Path) -> None:
    """Write a `report.html` on both routes together, and each route's files in its own folder.

    Files of an earlier run under these names are removed, so that all files are of these runs.

    Args:
        runs: Runs by route; the second is missing if the first was interrupted.
        folder: Folder, created if it does not exist; other files in it stay as they are.
    """
    for name in FILES_OF_BOTH + FILES:
        (folder / name).unlink(missing_ok=True)
    for route, run in runs.items():
        write(run, folder / route)
    replace_file(folder / REPORT, render(runs))


def render(runs: Runs) -> str:
    """Render the whole page as one HTML document.

    Args:
        runs: Runs by route, at least one; missing parts of a run that ended early are mentioned,
            and so is a route that was not begun.
    """
    first = next(iter(runs.values()))
    shared = [note for note in first.notes if all(note in run.notes for run in runs.values())]
    return document(
        title=f"both routes on {counted(first.phones, 'phone')}",
        kicker=f"Earshot · two simulated phases on one crowd · {first.population}",
        headline=headline(runs),
        notes="".join(alert(note) for note in [*_endings(runs), *shared][:_MOST_NOTES]),
        figures=_figures(runs),
        sections=(
            _heard(runs),
            _compared(runs),
            _notes(runs, shared),
            _side_by_side(runs),
            _named(runs),
            _files(runs),
            _repeated(runs),
        ),
        version=first.version,
    )


def headline(runs: Runs) -> str:
    """Return the result of each route, in one plain sentence."""
    first = next(iter(runs.values()))
    clauses = []
    for route, run in runs.items():
        shown, accuracy = ROUTES[route].found, run.found.label_accuracy
        cost = run.together.get(shown.unit)
        if run.stopped or accuracy is None or cost is None:
            clauses.append(f"the {shown.phase} has no result")
            continue
        clauses.append(
            f"the {shown.phase} gives {percent(accuracy)} of new recordings "
            f"their right name at {_epsilon(cost)} per {shown.unit.value}"
        )
    return f"One crowd of {counted(first.phones, 'phone')}, two routes: {'; '.join(clauses)}."


def _endings(runs: Runs) -> list[str]:
    """Return the reasons why parts of the page are missing."""
    endings = [
        f"The {ROUTES[route].found.phase} ended early: {run.interrupted}."
        for route, run in runs.items()
        if run.interrupted is not None
    ]
    missing = [ROUTES[route].found.phase for route in Routes.BOTH.each if route not in runs]
    return endings + [f"The {name} was not begun." for name in missing]


def _figures(runs: Runs) -> str:
    pairs: dict[str, str] = {}
    for route, run in runs.items():
        name, costs = ROUTES[route].found.phase, run.together
        pairs[f"right name, {name}"] = optional(run.found.label_accuracy, percent)
        pairs[f"clustering (ARI), {name}"] = optional(run.found.ari_test, "{:.2f}".format)
        for unit in (Unit.RECORDING, Unit.PHONE):
            cost = costs.get(unit)
            shown = NOTHING if cost is None else real(cost.epsilon)
            pairs[f"ε per {unit.value}, {name}"] = shown
    return figures(pairs)


def _heard(runs: Runs) -> str:
    """Format the recordings that both routes begin with, and each route's promise."""
    run = next(iter(runs.values()))
    title = "One crowd, two promises"
    if not len(run.found.points):
        return section(title, lead("The run ended before the phones had heard."))
    frame, asked = plane.frame(run.found.points), run.configuration
    words = lead(
        f"Phones have {asked.get('recordings')} recordings on average, of which "
        f"{percent(float(str(asked.get('labelled', 0))))} carry a label. Each is embedded once, "
        "and both routes continue from there. They are alternatives: a phone that took part in "
        "both would pay for both."
    )
    step = run.found.heard(frame)
    picture = figure(step.title, f"{step.words} {plane.projection(frame)}", step.picture)
    promises = (_promise(run) for run in runs.values())
    return section(title, words + grid(picture, cards(*promises)))


def _promise(run: Run[EnvironmentFindings]) -> str:
    """Format a route's protected unit, with the cost of this run."""
    costs, unit, name = run.together, run.found.unit, _heading(run.found)
    if not costs:
        return card(name, "Nothing was released, so nothing was spent.")
    protected = costs[unit]
    words = [
        f"Whether one {unit.value} took part changes the probability of any outcome by at "
        f"most the factor exp(ε), with {_epsilon(protected)}, except with probability "
        f"δ\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{real(protected.delta)}."
    ]
    if unit is Unit.RECORDING:
        words.append(
            "A phone has many recordings: all of them together cost it "
            f"{_epsilon(costs[Unit.PHONE])}."
        )
    else:
        words.append("That covers everything that a phone heard.")
    if is_vacuous(costs[Unit.PHONE]):
        words.append("That promises nothing to a phone.")
    return card(f"{name}: protects a {unit.value}", *words)


def _heading(found: EnvironmentFindings | type[EnvironmentFindings]) -> str:
    """Return the name of a route's phase, as a heading."""
    return found.phase.capitalize()


def _epsilon(cost: Cost) -> str:
    return f"ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{real(cost.epsilon)}"


def _compared(runs: Runs) -> str:
    """Format the figures of the routes in columns."""

    def cost(unit: Unit, name: str) -> Callable[[Run[EnvironmentFindings]], str]:
        def written(run: Run[EnvironmentFindings]) -> str:
            costs = run.together
            return real(getattr(costs[unit], name)) if unit in costs else NOTHING

        return written

    def traffic(name: str) -> Callable[[Run[EnvironmentFindings]], str]:
        return lambda run: byte_size(sum(each.per_phone(getattr(each, name)) for each in run.steps))

    def places(found: type[EnvironmentFindings]) -> Callable[[Run[EnvironmentFindings]], str]:
        return lambda run: run.found.count() if isinstance(run.found, found) else NOTHING

    found = [ROUTES[route].found for route in Routes.BOTH.each]
    rows: dict[str, Callable[[Run[EnvironmentFindings]], str]] = {
        "Protected unit": lambda run: run.found.unit.value,
        "ε per recording": cost(Unit.RECORDING, "epsilon"),
        "ε per phone (zero-out)": cost(Unit.PHONE, "epsilon"),
        "ε per phone, replaced": cost(Unit.REPLACED_PHONE, "epsilon"),
        "δ per phone": cost(Unit.PHONE, "delta"),
        "Policy of the phones": lambda run: str(run.configuration.get("policy")),
        "Phones that stayed": lambda run: f"{whole(run.survivors)} / {whole(run.phones)}",
        **{each.counts.capitalize(): places(each) for each in found},
        "Environments with a name": lambda run: whole(len(set(run.found.names) - {None})),
        "Right name, held out": lambda run: optional(run.found.label_accuracy, percent),
        "Right name, clear of the noise": lambda run: optional(
            run.found.clear_label_accuracy, percent
        ),
        "Clustering (ARI), held out": lambda run: optional(run.found.ari_test, "{:.2f}".format),
        "Clustering (ARI), heard": lambda run: optional(run.found.ari_train, "{:.2f}".format),
        "Up per phone": traffic("bytes_up"),
        "Down per phone": traffic("bytes_down"),
        "Wall-clock time": lambda run: duration(run.seconds),
    }
    compared = table(
        "Held-out recordings are those that no phone "
        "heard. All steps together cost what they compose to. The time of the first route includes "
        "hearing, which is done once for both.",
        ("Figure", *(f"#{_heading(run.found)}" for run in runs.values())),
        [[name, *map(cell, runs.values())] for name, cell in rows.items()],
    )
    return section("What each route found, and what it cost", compared)


def _notes(runs: Runs, shared: Sequence[str]) -> str:
    """Format remarks for readers before they trust the figures, route by route."""
    own = {
        _heading(run.found): [note for note in run.notes if note not in shared][:_MOST_NOTES]
        for run in runs.values()
    }
    told = [card(name, *notes) for name, notes in own.items() if notes]
    return section("Before you trust these figures", grid(*told)) if told else ""


def _side_by_side(runs: Runs) -> str:
    """Show, step by step, what each route made of the sound."""
    columns = [_steps(run.found) for run in runs.values()]
    shown = [
        figure(step.title, step.words, step.picture)
        for row in zip(*columns, strict=True)
        for step in row
    ]
    words = lead(
        "The pictures of a phase show one plane, in which grey points are what the phones heard. "
        "Each phase has its own plane: noise is added to every dimension, so each projects sound "
        "on the number of dimensions that suits it."
    )
    return section("Step by step, side by side", words + grid(*shown))


def _steps(found: EnvironmentFindings) -> list[Pictured]:
    steps = found.steps(plane.frame(found.points))
    return [
        step._replace(title=f"{_heading(found)}, {number}: {step.title}")
        for number, step in enumerate(steps, start=1)
    ]


def _named(runs: Runs) -> str:
    """Format the number of places with each name, on each route."""
    labels = next(iter(runs.values())).found.label_names
    named = [Counter(run.found.names) for run in runs.values()]
    rows = [[label, *(whole(counts[label]) for counts in named)] for label in labels[:_MOST_LABELS]]
    more = len(labels) - len(rows)
    caption = "Published places by their name, where it stands clear of the noise."
    if more > 0:
        caption += f" {counted(more, 'label')} more: each report has all."
    counts = table(
        caption,
        ("Scene", *(f"#{_heading(run.found)}: {run.found.place}s" for run in runs.values())),
        rows,
        ["without a name", *(whole(counts[None]) for counts in named)],
    )
    shown = (
        figure(
            f"{_heading(run.found)}: labels, published and true",
            "Held-out recordings by their published name, even if noise, beside their true one.",
            run.found.histogram(),
        )
        for run in runs.values()
    )
    return section("What each route named", counts + grid(*shown))


def _files(runs: Runs) -> str:
    links = "".join(
        f'<li><a href="{route}/report.html">{_heading(run.found)}</a>: privacy step by step, '
        f"dropouts, votes, time and traffic; its figures are in {route}/result.json.</li>"
        for route, run in runs.items()
    )
    words = lead("Beside this page, in folders of their own:")
    return section("Each route in full", f"{words}<ul>{links}</ul>")


def _repeated(runs: Runs) -> str:
    words = lead("This command repeats both runs.")
    return section(
        "How to repeat it", f"{words}<pre>{html.escape(command_line(_asked(runs)))}</pre>"
    )


def _asked(runs: Runs) -> dict[str, object]:
    """Return the options of both runs together."""
    each = {route: run.configuration for route, run in runs.items()}
    asked = dict(next(iter(each.values())))
    for route, configuration in each.items():
        asked |= {name: configuration.get(name) for name in ROUTES[route].options}
        asked["epsilon"] = configuration.get("epsilon")  # the last, by secure sums, always has one
    # Each route takes its own policy by default.
    if len({configuration.get("policy") for configuration in each.values()}) > 1:
        del asked["policy"]
    return asked | {ROUTE: str(Routes.BOTH)}
