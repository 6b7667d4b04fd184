"""`earshot simulate`."""

from __future__ import annotations

import json
import sys
from collections.abc import Set as AbstractSet
from dataclasses import fields, replace
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases import learning_budget
from earshot_server.discovery.route import Discovery
from earshot_simulations.commands.repeating import repeated
from earshot_simulations.commands.running import (
    print_each,
    run_and_write,
    run_and_write_one,
    summarize,
)
from earshot_simulations.phases.labelling import LabellingSettings
from earshot_simulations.phases.local import NO_BUDGET, whole_budget
from earshot_simulations.phases.routes import ROUTES, Routes, Settings
from earshot_simulations.phases.settings import NO_NOISE, SOUNDSCAPES, WHERE

app = App()

_DEFAULT = Settings()
_LABELLING = LabellingSettings()


@app.default
def simulate(
    *,
    settings: Annotated[Settings, Parameter(name="*")] = _DEFAULT,
    discovery: Routes | None = None,
    budget: str | None = None,
    repeat: Path | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Run one phase over simulated phones, every phone with its real cryptography.

    By default a discovery phase, by secure sums; with --discovery local a learning phase, the
    thesis's: phones cluster and publish, and two votes keep and name what is found. With
    --discovery both each of them, on a crowd that hears once.

    Args:
        discovery: Route: secure-sum protects phones; local, the thesis's, protects recordings; both
            run one after the other on a crowd that hears once. By default secure-sum, unless an
            option of the local route is given.
        budget: With --discovery local: ε of each step per recording, as
            clustering=ε,selection=ε,centroid-vote=ε,label-vote=ε; the default depends on the data.
            Or none, for no noise at all.
        repeat: Repeat the run of this result.json, and say whether it comes out the same.
        out: New folder for result.json and report.html; for both routes one report.html, and both
            files of each route in folders local and secure-sum.
        overwrite: Replace these files where --out has them.
        as_json: Print result.json, or those of both routes, and nothing else.
    """
    said = _given(settings) | ({"budget"} if budget is not None else set())
    if repeat is not None:
        beside = said | ({"discovery"} if discovery is not None else set())
        where = {name: getattr(settings, name) for name in WHERE}
        repeated(repeat, beside - WHERE, where, out, overwrite, as_json)
        return
    silent = budget is not None and budget.strip() == NO_BUDGET
    routes = _routes(said - {"budget"} if silent else said, discovery)
    if budget is not None:
        if settings.epsilon is not None and (silent or routes is not Routes.BOTH):
            raise InvalidInputError(f"--epsilon and --budget: {learning_budget.ONE_OF_THEM}")
        steps = None if silent else whole_budget(budget)
        settings = replace(settings, budget=steps, epsilon=NO_NOISE if silent else settings.epsilon)
    asked = {route: _of_route(settings, route) for route in routes.each}
    for each in asked.values():
        each.check()

    from earshot_simulations.phases.run import result

    runs = run_and_write(asked, out, overwrite)
    results = {route: result(run) for route, run in runs.items()}
    if as_json:
        print_each(results)
    else:
        summarize(results, out)
        if settings.data == SOUNDSCAPES and settings.encoder is None:
            unheard = ". ".join(ROUTES[route].real_sound for route in asked)
            print(
                f"{'real sound':<22} The encoder knows these scenes. {unheard}. Try yours, "
                f"FOLDER/CLASS/*.wav: {try_it(routes)}"
            )
    if any(run.interrupted for run in runs.values()):
        sys.exit(1)


@app.command
def labelling(
    *,
    settings: Annotated[LabellingSettings, Parameter(name="*")] = _LABELLING,
    out: Path | None = None,
    overwrite: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Run one labelling phase over simulated phones: public samples get labels.

    Args:
        out: New folder for result.json and report.html.
        overwrite: Replace these two files where --out has them.
        as_json: Print result.json, and nothing else.
    """
    settings.check()

    from earshot_simulations.phases.report import headline
    from earshot_simulations.phases.run import result

    run = run_and_write_one(settings, out, overwrite)
    if as_json:
        print(json.dumps(result(run), indent=2, allow_nan=False))
    else:
        print(headline(run))
        for name, value in run.found.figures().items():
            print(f"{name:<22} {value}")
        if out is not None:
            print(f"{'report':<22} {out / 'report.html'}")
    if run.interrupted is not None:
        sys.exit(1)


def _given(settings: Settings) -> set[str]:
    """Return the settings that are not the default ones."""
    return {
        each.name
        for each in fields(Settings)
        if getattr(settings, each.name) != getattr(_DEFAULT, each.name)
    }


def _routes(said: AbstractSet[str], discovery: Routes | None) -> Routes:
    """Return the routes that are asked for, or that the given options mean.

    Raises:
        InvalidInputError: an option of another route is given.
    """
    local = said & ROUTES[Discovery.LOCAL].options
    chosen = discovery or (Routes.LOCAL if local else Routes.SECURE_SUM)
    for route, own in ROUTES.items():
        others = said & own.options
        if others and route not in chosen.each:
            named = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(others))
            raise InvalidInputError(
                f"{named}: not for --discovery {chosen}, but for --discovery {route}; leave it "
                "out, or choose that"
            )
    return chosen


def try_it(routes: Routes) -> str:
    """Return the command that simulates the same over one's own sound."""
    route = "" if routes is Routes.SECURE_SUM else f"--discovery {routes} "
    return f"earshot simulate {route}--data FOLDER --recordings 100 --dropout 0.1 --out out/real"


def _of_route(settings: Settings, route: Discovery) -> Settings:
    """Return the settings of one route; with both, each has its own part of what is given."""
    if route is Discovery.SECURE_SUM:
        return replace(settings, discovery=route, budget=None)
    epsilon = settings.epsilon if settings.budget is None else None
    return replace(settings, discovery=route, epsilon=epsilon)
