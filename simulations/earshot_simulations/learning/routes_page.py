"""The page `report.html` on both routes for one crowd: findings, costs, and whom each protects."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from earshot_protocol.privacy.mechanisms import Cost, Unit
from earshot_server.dashboard.spending import is_vacuous
from earshot_server.discovery.route import Discovery
from earshot_simulations.learning import cell_sections, local_sections
from earshot_simulations.learning.pictured import Step, heard
from earshot_simulations.learning.report import command_line
from earshot_simulations.learning.routes import Routes
from earshot_simulations.learning.run import Run
from earshot_simulations.learning.settings import OPTIONS
from earshot_simulations.reporting import charts, plane
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

_MOST_LABELS = 200
_MOST_NOTES = 3


@dataclass(frozen=True)
class _Route:
    """A route as the page describes it.

    Attributes:
        name: Name of the route's phase, as a heading.
        unit: Unit that the route protects.
        sections: Module with the report's sections for this route alone.
        places: Noun for the places that the route publishes.
    """

    name: str
    unit: Unit
    sections: Any
    places: str


_ROUTES: Mapping[Discovery, _Route] = {
    Discovery.LOCAL: _Route("Learning phase", Unit.RECORDING, local_sections, "centroids"),
    Discovery.SECURE_SUM: _Route("Discovery phase", Unit.PHONE, cell_sections, "cells"),
}


def render(runs: Mapping[Discovery, Run]) -> str:
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


def headline(runs: Mapping[Discovery, Run]) -> str:
    """Return the result of each route, in one plain sentence."""
    first = next(iter(runs.values()))
    clauses = []
    for route, run in runs.items():
        shown, cost = _ROUTES[route], run.together.get(_ROUTES[route].unit)
        if run.stopped or run.label_accuracy is None or cost is None:
            clauses.append(f"the {shown.name.lower()} has no result")
            continue
        clauses.append(
            f"the {shown.name.lower()} gives {percent(run.label_accuracy)} of new recordings "
            f"their right name at {_epsilon(cost)} per {shown.unit.value}"
        )
    return f"One crowd of {counted(first.phones, 'phone')}, two routes: {'; '.join(clauses)}."


def _endings(runs: Mapping[Discovery, Run]) -> list[str]:
    """Return the reasons why parts of the page are missing."""
    endings = [
        f"The {_ROUTES[route].name.lower()} ended early: {run.interrupted}."
        for route, run in runs.items()
        if run.interrupted is not None
    ]
    missing = [_ROUTES[route].name.lower() for route in Routes.BOTH.each if route not in runs]
    return endings + [f"The {name} was not begun." for name in missing]


def _figures(runs: Mapping[Discovery, Run]) -> str:
    pairs: dict[str, str] = {}
    for route, run in runs.items():
        name, costs = _ROUTES[route].name.lower(), run.together
        pairs[f"right name, {name}"] = optional(run.label_accuracy, percent)
        pairs[f"clustering (ARI), {name}"] = optional(run.ari_test, "{:.2f}".format)
        for unit in (Unit.RECORDING, Unit.PHONE):
            cost = costs.get(unit)
            shown = NOTHING if cost is None else real(cost.epsilon)
            pairs[f"ε per {unit.value}, {name}"] = shown
    return figures(pairs)


def _heard(runs: Mapping[Discovery, Run]) -> str:
    """Format the recordings that both routes begin with, and each route's promise."""
    run = next(iter(runs.values()))
    title = "One crowd, two promises"
    if not len(run.points):
        return section(title, lead("The run ended before the phones had heard."))
    frame, asked = plane.frame(run.points), run.configuration
    words = lead(
        f"Phones have {asked.get('recordings')} recordings on average, of which "
        f"{percent(float(str(asked.get('labelled', 0))))} carry a label. Each is embedded once, "
        "and both routes continue from there. They are alternatives: a phone that took part in "
        "both would pay for both."
    )
    step = heard(run, frame)
    picture = figure(step.title, f"{step.words} {plane.projection(frame)}", step.picture)
    promises = (_promise(_ROUTES[route], run) for route, run in runs.items())
    return section(title, words + grid(picture, cards(*promises)))


def _promise(route: _Route, run: Run) -> str:
    """Format a route's protected unit, with the cost of this run."""
    costs = run.together
    if not costs:
        return card(route.name, "Nothing was released, so nothing was spent.")
    protected = costs[route.unit]
    words = [
        f"Whether one {route.unit.value} took part changes the probability of any outcome by at "
        f"most the factor exp(ε), with {_epsilon(protected)}, except with probability "
        f"δ\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{real(protected.delta)}."
    ]
    if route.unit is Unit.RECORDING:
        words.append(
            "A phone has many recordings: all of them together cost it "
            f"{_epsilon(costs[Unit.PHONE])}."
        )
    else:
        words.append("That covers everything that a phone heard.")
    if is_vacuous(costs[Unit.PHONE]):
        words.append("That promises nothing to a phone.")
    return card(f"{route.name}: protects a {route.unit.value}", *words)


def _epsilon(cost: Cost) -> str:
    return f"ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{real(cost.epsilon)}"


def _compared(runs: Mapping[Discovery, Run]) -> str:
    """Format the figures of the routes in columns."""

    def cost(unit: Unit, name: str) -> Callable[[Discovery, Run], str]:
        def written(_route: Discovery, run: Run) -> str:
            costs = run.together
            return real(getattr(costs[unit], name)) if unit in costs else NOTHING

        return written

    def traffic(name: str) -> Callable[[Discovery, Run], str]:
        return lambda _, run: byte_size(
            sum(each.per_phone(getattr(each, name)) for each in run.steps)
        )

    rows: dict[str, Callable[[Discovery, Run], str]] = {
        "Protected unit": lambda route, _: _ROUTES[route].unit.value,
        "ε per recording": cost(Unit.RECORDING, "epsilon"),
        "ε per phone (zero-out)": cost(Unit.PHONE, "epsilon"),
        "ε per phone, replaced": cost(Unit.REPLACED_PHONE, "epsilon"),
        "δ per phone": cost(Unit.PHONE, "delta"),
        "Policy of the phones": lambda _, run: str(run.configuration.get("policy")),
        "Phones that stayed": lambda _, run: f"{whole(run.survivors)} / {whole(run.phones)}",
        "Centroids found / kept / named": lambda route, run: _found(Discovery.LOCAL, route, run),
        "Cells / moved / named": lambda route, run: _found(Discovery.SECURE_SUM, route, run),
        "Environments with a name": lambda _, run: whole(len(set(run.names) - {None})),
        "Right name, held out": lambda _, run: optional(run.label_accuracy, percent),
        "Right name, clear of the noise": lambda _, run: optional(
            run.clear_label_accuracy, percent
        ),
        "Clustering (ARI), held out": lambda _, run: optional(run.ari_test, "{:.2f}".format),
        "Clustering (ARI), heard": lambda _, run: optional(run.ari_train, "{:.2f}".format),
        "Up per phone": traffic("bytes_up"),
        "Down per phone": traffic("bytes_down"),
        "Wall-clock time": lambda _, run: duration(run.seconds),
    }
    found = table(
        "Held-out recordings are those that no phone "
        "heard. All steps together cost what they compose to. The time of the first route includes "
        "hearing, which is done once for both.",
        ("Figure", *(f"#{_ROUTES[route].name}" for route in runs)),
        [[name, *(cell(route, run) for route, run in runs.items())] for name, cell in rows.items()],
    )
    return section("What each route found, and what it cost", found)


def _found(counts: Discovery, route: Discovery, run: Run) -> str:
    return _ROUTES[route].sections.found(run)[1] if counts is route else NOTHING


def _notes(runs: Mapping[Discovery, Run], shared: Sequence[str]) -> str:
    """Format remarks for readers before they trust the figures, route by route."""
    own = {
        route: [note for note in run.notes if note not in shared][:_MOST_NOTES]
        for route, run in runs.items()
    }
    told = [card(_ROUTES[route].name, *notes) for route, notes in own.items() if notes]
    return section("Before you trust these figures", grid(*told)) if told else ""


def _side_by_side(runs: Mapping[Discovery, Run]) -> str:
    """Show, step by step, what each route made of the sound."""
    columns = [_steps(_ROUTES[route], run) for route, run in runs.items()]
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


def _steps(route: _Route, run: Run) -> list[Step]:
    steps = route.sections.steps(run, plane.frame(run.points))
    return [
        step._replace(title=f"{route.name}, {number}: {step.title}")
        for number, step in enumerate(steps, start=1)
    ]


def _named(runs: Mapping[Discovery, Run]) -> str:
    """Format the number of places with each name, on each route."""
    labels = next(iter(runs.values())).label_names
    named = {route: Counter(run.names) for route, run in runs.items()}
    rows = [
        [label, *(whole(counts[label]) for counts in named.values())]
        for label in labels[:_MOST_LABELS]
    ]
    more = len(labels) - len(rows)
    caption = "Published places by their name, where it stands clear of the noise."
    if more > 0:
        caption += f" {counted(more, 'label')} more: each report has all."
    counts = table(
        caption,
        ("Scene", *(f"#{_ROUTES[route].name}: {_ROUTES[route].places}" for route in runs)),
        rows,
        ["without a name", *(whole(counts[None]) for counts in named.values())],
    )
    shown = (
        figure(
            f"{_ROUTES[route].name}: labels, published and true",
            "Held-out recordings by their published name, even if noise, beside their true one.",
            charts.histogram(run.label_names, run.label_histogram, run.true_histogram),
        )
        for route, run in runs.items()
    )
    return section("What each route named", counts + grid(*shown))


def _files(runs: Mapping[Discovery, Run]) -> str:
    links = "".join(
        f'<li><a href="{route}/report.html">{_ROUTES[route].name}</a>: privacy step by step, '
        f"dropouts, votes, time and traffic; its figures are in {route}/result.json.</li>"
        for route in runs
    )
    words = lead("Beside this page, in folders of their own:")
    return section("Each route in full", f"{words}<ul>{links}</ul>")


def _repeated(runs: Mapping[Discovery, Run]) -> str:
    words = lead("This command repeats both runs.")
    return section(
        "How to repeat it", f"{words}<pre>{html.escape(command_line(_asked(runs)))}</pre>"
    )


def _asked(runs: Mapping[Discovery, Run]) -> dict[str, object]:
    """Return the options of both runs together."""
    each = {route: run.configuration for route, run in runs.items()}
    asked = dict(next(iter(each.values())))
    for route, configuration in each.items():
        asked |= {name: configuration.get(name) for name in OPTIONS[route]}
        asked["epsilon"] = configuration.get("epsilon")  # the last, by secure sums, always has one
    # Each route takes its own policy by default.
    if len({configuration.get("policy") for configuration in each.values()}) > 1:
        del asked["policy"]
    return asked | {"discovery": str(Routes.BOTH)}
