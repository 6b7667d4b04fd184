"""The page `report.html` on both routes for one crowd: findings, costs and protected units."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from earshot_protocol.files import replace_file
from earshot_protocol.privacy.mechanisms import Cost, Unit
from earshot_server.dashboard.spending import is_vacuous
from earshot_server.phases.options import Discovery
from earshot_simulations.phases.environments import EnvironmentFindings, Pictured
from earshot_simulations.phases.route_options import OPTIONS, ROUTE
from earshot_simulations.phases.run import (
    FILES,
    REPORT,
    UNPROTECTED,
    Run,
    command_line,
    cost_figure,
)
from earshot_simulations.phases.settings import ROUTES, Routes
from earshot_simulations.reporting import plane
from earshot_simulations.reporting.pages import page
from earshot_simulations.reporting.words import (
    NOTHING,
    at_delta,
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


def write_both(runs: Runs, folder: str | os.PathLike[str]) -> None:
    """Write a `report.html` on both routes together, and each route's files in its own folder.

    Files of an earlier run under these names are removed first.

    Args:
        runs: Runs by route; the second is missing if the first was interrupted.
        folder: Folder, created if it does not exist; other files in it stay as they are.
    """
    folder = Path(folder)
    for name in FILES_OF_BOTH + FILES:
        (folder / name).unlink(missing_ok=True)
    for route, run in runs.items():
        run.write(folder / route)
    replace_file(folder / REPORT, render(runs))


def render(runs: Runs) -> str:
    """Render the whole page as one HTML document.

    Args:
        runs: Runs by route, at least one; the page mentions missing parts of a run, and a route
            that was not begun.
    """
    first = next(iter(runs.values()))
    frame = plane.frame(first.found.points)
    shared = [note for note in first.notes if all(note in run.notes for run in runs.values())]
    labels = first.found.label_names[:_MOST_LABELS]
    named = [Counter(run.found.names) for run in runs.values()]
    return page(
        "phases/routes_page.html",
        title=f"both routes on {counted(first.phones, 'phone')}",
        kicker=f"Earshot · two simulated phases on one crowd · {first.population}",
        headline=headline(runs),
        version=first.version,
        warnings=[*_endings(runs), *shared][:_MOST_NOTES],
        figures=_figures(runs),
        runs=runs,
        first=first,
        heard=first.found.heard(frame) if len(first.found.points) else None,
        projection=plane.projection(frame),
        promises=[_promise(run) for run in runs.values()],
        columns=["Figure", *(f"#{_heading(run.found)}" for run in runs.values())],
        compared=_compared(runs),
        notes=_notes(runs, shared),
        steps=_side_by_side(runs),
        places=["Scene", *(f"#{_heading(run.found)}: {run.found.place}s" for run in runs.values())],
        named=[[label, *(whole(counts[label]) for counts in named)] for label in labels],
        unnamed=["without a name", *(whole(counts[None]) for counts in named)],
        command=command_line(_asked(runs)),
    )


def headline(runs: Runs) -> str:
    """Return the result of each route in one sentence."""
    first = next(iter(runs.values()))
    scenes = " on scenes that the encoder was trained on" if first.is_known else ""
    clauses = []
    for route, run in runs.items():
        shown, accuracy = ROUTES[route].found, run.found.label_accuracy
        cost = run.together.get(shown.unit)
        if run.stopped or accuracy is None or cost is None:
            clauses.append(f"the {shown.phase} has no result")
            continue
        clauses.append(
            f"the {shown.phase} gives {percent(accuracy)} of new recordings "
            "their right name "
            + ("without noise" if run.noiseless else f"with ε = {at_delta(cost)} per {shown.unit}")
        )
    return (
        f"One crowd of {counted(first.phones, 'phone')}, two routes{scenes}: {'; '.join(clauses)}."
    )


def _endings(runs: Runs) -> list[str]:
    """Return the reasons why parts of the page are missing."""
    endings = [
        f"The {ROUTES[route].found.phase} ended early: {run.interrupted}."
        for route, run in runs.items()
        if run.interrupted is not None
    ]
    missing = [ROUTES[route].found.phase for route in Routes.BOTH.each if route not in runs]
    return endings + [f"The {name} was not begun." for name in missing]


def _figures(runs: Runs) -> dict[str, str]:
    pairs: dict[str, str] = {}
    for route, run in runs.items():
        name, costs = ROUTES[route].found.phase, run.together
        pairs[f"right name, {name}"] = optional(run.found.label_accuracy, percent)
        pairs[f"clustering (ARI), {name}"] = optional(run.found.ari_test, "{:.2f}".format)
        for unit in (Unit.RECORDING, Unit.PHONE):
            said, epsilon = cost_figure(f"ε per {unit}, {name}", costs.get(unit))
            pairs[said] = epsilon
    return pairs


def _promise(run: Run[EnvironmentFindings]) -> tuple[str, list[str]]:
    """Return a route's protected unit as a heading, and sentences on the cost of this run."""
    costs, unit, name = run.together, run.found.unit, _heading(run.found)
    if not costs:
        return name, ["Nothing was released, so nothing was spent."]
    if run.noiseless:
        return name, [f"{UNPROTECTED.capitalize()}."]
    protected = costs[unit]
    words = [
        f"Whether one {unit.value} took part changes the probability of any outcome by at "
        f"most the factor exp(ε), with {_epsilon(protected)}, except with probability "
        f"δ\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{real(protected.delta)}."
    ]
    if unit is Unit.RECORDING:
        words.append(
            "A phone has many recordings: all of them together cost it "
            f"{_epsilon(costs[Unit.PHONE])} at δ\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}"
            f"{real(costs[Unit.PHONE].delta)}."
        )
    else:
        words.append("That covers everything that a phone heard.")
    if is_vacuous(costs[Unit.PHONE]):
        words.append("That promises nothing to a phone.")
    return f"{name}: protects a {unit.value}", words


def _heading(found: EnvironmentFindings | type[EnvironmentFindings]) -> str:
    """Return the name of a route's phase, as a heading."""
    return found.phase.capitalize()


def _epsilon(cost: Cost) -> str:
    return f"ε\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{real(cost.epsilon)}"


def _compared(runs: Runs) -> list[list[str]]:
    """Return the figures of the routes, each with its name."""

    def cost(unit: Unit) -> Callable[[Run[EnvironmentFindings]], str]:
        return lambda run: at_delta(run.together[unit]) if unit in run.together else NOTHING

    def traffic(name: str) -> Callable[[Run[EnvironmentFindings]], str]:
        return lambda run: byte_size(sum(each.per_phone(getattr(each, name)) for each in run.steps))

    def places(found: type[EnvironmentFindings]) -> Callable[[Run[EnvironmentFindings]], str]:
        return lambda run: run.found.count() if isinstance(run.found, found) else NOTHING

    found = [ROUTES[route].found for route in Routes.BOTH.each]
    rows: dict[str, Callable[[Run[EnvironmentFindings]], str]] = {
        "Protected unit": lambda run: run.found.unit.value,
        "ε per recording": cost(Unit.RECORDING),
        "ε per phone (zero-out)": cost(Unit.PHONE),
        "ε per phone, replaced": cost(Unit.REPLACED_PHONE),
        "Policy of the phones": lambda run: str(run.configuration.get("policy")),
        "Phones that stayed": lambda run: f"{whole(run.survivors)} of {whole(run.phones)}",
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
    return [[name, *map(cell, runs.values())] for name, cell in rows.items()]


def _notes(runs: Runs, shared: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Return the caveat about a route's figures, if there is one."""
    own = {
        _heading(run.found): [note for note in run.notes if note not in shared][:_MOST_NOTES]
        for run in runs.values()
    }
    return [(name, notes) for name, notes in own.items() if notes]


def _side_by_side(runs: Runs) -> list[Pictured]:
    """Return the steps of the routes, alternating between them."""
    columns = [_steps(run.found) for run in runs.values()]
    return [step for row in zip(*columns, strict=True) for step in row]


def _steps(found: EnvironmentFindings) -> list[Pictured]:
    steps = found.steps(plane.frame(found.points))
    return [
        step._replace(title=f"{_heading(found)}, {number}: {step.title}")
        for number, step in enumerate(steps, start=1)
    ]


def _asked(runs: Runs) -> dict[str, object]:
    """Return the options of both runs together."""
    each = {route: run.configuration for route, run in runs.items()}
    asked = dict(next(iter(each.values())))
    for route, configuration in each.items():
        asked |= {name: configuration.get(name) for name in OPTIONS[route]}
        asked["epsilon"] = configuration.get("epsilon")  # the last, by secure sums, always has one
    # Different policies are the defaults of the routes.
    if len({configuration.get("policy") for configuration in each.values()}) > 1:
        del asked["policy"]
    return asked | {ROUTE: str(Routes.BOTH)}
