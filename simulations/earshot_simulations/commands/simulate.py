"""`earshot simulate`: run one phase, one of each route, or a kept run again, and summarize."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

from cyclopts import App, ArgumentCollection, Parameter, Token

from earshot_models.commands.listing import list_dataset
from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.phases import learning_budget
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Cost
from earshot_protocol.progress import Progress
from earshot_server.dashboard.spending import dearer_recording
from earshot_server.phases.options import Discovery, given, refuse_others, spelled
from earshot_simulations.commands.simulate_campaign import campaign
from earshot_simulations.engine.states import NO_ROOM
from earshot_simulations.phases.labelling import LabellingSettings
from earshot_simulations.phases.route_options import OPTIONS, ROUTE, in_words
from earshot_simulations.phases.run import (
    FILES,
    INFINITE,
    NOISELESS,
    UNPROTECTED,
    PhaseFindings,
)
from earshot_simulations.phases.settings import (
    BLOBS,
    NO_BUDGET,
    ROUTES,
    SOUNDSCAPES,
    WHERE,
    PhaseSettings,
    Routes,
    Settings,
    not_beside,
    replaced,
    whole_budget,
)
from earshot_simulations.phases.statistics import StatisticsSettings
from earshot_simulations.populations.hearing import Hearings, hearing_kept, hearing_once
from earshot_simulations.populations.vectors import counts_of, is_vectors
from earshot_simulations.reporting.words import at_delta, whole

if TYPE_CHECKING:
    from earshot_simulations.phases.kept import Pair
    from earshot_simulations.phases.routes_page import Runs
    from earshot_simulations.phases.run import Run

F = TypeVar("F", bound=PhaseFindings)
_DEFAULT = Settings()
_LABELLING = LabellingSettings()
_STATISTICS = StatisticsSettings()
_NAME, _COLUMN = 22, 30
_MOST_SHOWN = 10
_OTHER_DIGITS = (
    "figures differ because libraries or processor do: libraries choose their instructions by the "
    "processor, and round in another order with others. For the same bits, repeat the run with the "
    "same libraries on such a processor"
)
_NO_KNOWN_CAUSE = (
    "figures differ though no library and no instruction of the processor has changed: one of the "
    "two runs is wrong, or the run depends on something that it does not record"
)
_MOST_NAMED = 5
_FILES = frozenset({"data", "encoder"})
"""Settings that may accompany --repeat, as files may have moved; their content is compared."""


def _from_file(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Fill missing options from the file of `--config`, if there is one."""
    del app, commands
    given = {argument.name: argument for argument in arguments if argument.tokens}
    typed = {name: each.tokens[-1].value for name, each in given.items()}
    _refuse_beside_vectors(typed)
    if "--config" not in given or "--repeat" in given:
        return
    from earshot_simulations.sweeps.plan import read_settings

    file = typed["--config"]
    held = read_settings(Path(file))
    if "--data" not in given:
        _refuse_beside_vectors({**dict(in_words(held)), **typed})
    if given.keys() & {"--epsilon", "--budget"}:  # each replaces the other
        held = {name: held[name] for name in held if name not in ("epsilon", "budget")}
    # Without the route, so that options of the other one are not left out, but refused by name.
    route = [("--discovery", held.pop(ROUTE))] if ROUTE in held else []
    for option, value in (*route, *in_words(held)):
        argument, _, _ = arguments.match(option)
        if not argument.tokens:
            argument.append(Token(keyword=option, value=value or "true", source=file))


def _refuse_beside_vectors(given: Mapping[str, str | None]) -> None:
    """Refuse options that a file of vectors replaces where they have their default.

    With another value they are refused with the settings.
    """
    data = given.get("--data")
    if data is None or not is_vectors(data):
        return
    for name in replaced(True):
        if any(each.partition(".")[0] == spelled(name) for each in given):
            raise InvalidInputError(not_beside(name, f"data={data}"))
    usual = _DEFAULT.phones
    if given.get("--phones") == str(usual) and (counts := counts_of(Path(data))).phones != usual:
        raise InvalidInputError(not_beside(f"phones={usual}", f"data={data}", str(counts)))


app = App(config=_from_file)


@app.default
def simulate(
    *,
    settings: Annotated[Settings, Parameter(name="*")] = _DEFAULT,
    discovery: Routes | None = None,
    budget: str | None = None,
    config: Path | None = None,
    repeat: Path | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Run one phase over simulated phones, every phone with its real cryptography.

    By default a discovery phase, by secure sums; with --discovery local a learning phase, the
    thesis's: phones cluster and publish, and two votes keep and name what is found. With
    --discovery both, each of them on a crowd that hears once.

    Args:
        discovery: Route: secure-sum protects phones; local, the thesis's, protects recordings; both
            run one after the other on a crowd that hears once. By default secure-sum.
        budget: With --discovery local: ε of each step per recording, as
            clustering=ε,selection=ε,centroid-vote=ε,label-vote=ε; the default depends on the data.
            On every route none, which is --epsilon inf: no noise, and nothing is protected.
        config: TOML file of [settings], named like these options with _ for -, as in a sweep; or
            the result.json of a run, whose settings are taken. Options beside it win.
        repeat: Repeat the run of this result.json, and report whether the result is the same. Name
            sound or an encoder that has moved by --data or --encoder.
        out: New folder for result.json and report.html; for both routes one report.html, and both
            files of each route in folders local and secure-sum.
        overwrite: Replace these files where --out has them.
        as_json: Print result.json, or those of both routes, and nothing else.
    """
    said = given(settings, _DEFAULT) | ({"budget"} if budget is not None else set())
    if repeat is not None:
        others = {"config": config, "discovery": discovery}
        beside = said | {name for name, value in others.items() if value is not None}
        where = {name: getattr(settings, name) for name in WHERE}
        moved = {name: getattr(settings, name) for name in beside & _FILES}
        _repeated(repeat, beside - WHERE - _FILES, where, moved, out, overwrite, as_json)
        return
    silent = budget is not None and budget.strip() == NO_BUDGET
    routes = discovery or Routes.SECURE_SUM
    refuse_others(
        said - {"budget"} if silent else said,
        f"--discovery {routes}",
        {f"--discovery {route}": own for route, own in OPTIONS.items()},
        *(f"--discovery {route}" for route in routes.each),
    )
    if budget is not None:
        if settings.epsilon is not None and (silent or routes is not Routes.BOTH):
            raise InvalidInputError(f"--epsilon and --budget: {learning_budget.ONE_OF_THEM}")
        steps, epsilon = None if silent else whole_budget(budget), settings.epsilon
        settings = replace(settings, budget=steps, epsilon=NOISELESS if silent else epsilon)
    _check_data(settings, _DEFAULT.scenes)
    asked = {route: _of_route(settings, route) for route in routes.each}
    for each in asked.values():
        each.check()

    from earshot_simulations.phases.routes_page import headline
    from earshot_simulations.phases.run import result

    runs = _run_and_write(asked, out, overwrite)
    results = {route: result(run) for route, run in runs.items()}
    if as_json:
        _print_each(results)
    else:
        if len(runs) > 1:
            print(headline(runs))
        _summarize(results, out)
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
    _check_data(settings, _LABELLING.scenes)
    _simulate_one(settings, out, overwrite, as_json)


@app.command
def statistics(
    *,
    settings: Annotated[StatisticsSettings, Parameter(name="*")] = _STATISTICS,
    out: Path | None = None,
    overwrite: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Run one statistics phase over simulated phones: contacts are counted by kind of place.

    Args:
        out: New folder for result.json and report.html.
        overwrite: Replace these two files where --out has them.
        as_json: Print result.json, and nothing else.
    """
    _check_data(settings, _STATISTICS.scenes)
    _simulate_one(settings, out, overwrite, as_json)


def _simulate_one(
    settings: PhaseSettings[Any], out: Path | None, overwrite: bool, as_json: bool
) -> None:
    """Run one phase, and print its figures, or its result as JSON."""
    settings.check()

    from earshot_simulations.phases.run import headline, result

    run = _run_and_write_one(settings, out, overwrite)
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


app.command(campaign)


def _check_data(settings: PhaseSettings[Any], default: int) -> None:
    """Refuse `--scenes` for a folder, and report files that are left out.

    Raises:
        InvalidInputError: `--scenes` is given, or the folder holds no data set with classes.
    """
    if settings.data in (BLOBS, SOUNDSCAPES) or is_vectors(settings.data):
        return
    if settings.scenes != default:
        raise InvalidInputError(
            f"--scenes {settings.scenes}: for generated data; in a folder each class is a scene, "
            "so leave it out"
        )
    list_dataset(Path(settings.data)).check_classes()


def try_it(routes: Routes) -> str:
    """Return the command that runs the same settings over one's own sound."""
    route = "" if routes is Routes.SECURE_SUM else f"--discovery {routes} "
    return f"earshot simulate {route}--data FOLDER --recordings 100 --dropout 0.1 --out out/real"


def _of_route(settings: Settings, route: Discovery) -> Settings:
    """Return the settings of one route, without options of the other one."""
    if route is Discovery.SECURE_SUM:
        return replace(settings, discovery=route, budget=None)
    epsilon = settings.epsilon if settings.budget is None else None
    return replace(settings, discovery=route, epsilon=epsilon)


def _run_and_write(
    asked: Mapping[Discovery, Settings],
    out: Path | None,
    overwrite: bool,
    hearing: Callable[[], AbstractContextManager[Hearings]] = hearing_kept,
) -> Runs:
    """Run a phase on each route, show progress, and write the files if requested.

    Args:
        asked: Settings by route, checked.
        out: Folder of the files; None to write nothing.
        overwrite: Whether these may be replaced.
        hearing: Context of the cache of embedded sound.

    Returns:
        Runs by route; one not begun because of an interruption is missing.

    Raises:
        InvalidInputError: The folder cannot be used, or the machine has no room for the run.
    """
    from earshot_simulations.phases.routes_page import FILES_OF_BOTH, write_both
    from earshot_simulations.phases.simulation import simulate_routes

    both = len(asked) > 1
    files = FILES_OF_BOTH if both else FILES
    with hearing(), _kept(out, files, overwrite) as progress:
        runs = simulate_routes(asked, progress)
        if out is not None and both:
            write_both(runs, out)
        elif out is not None:
            (run,) = runs.values()
            run.write(out, overwrite=True)  # what the folder held was checked before
    return runs


def _run_and_write_one(settings: PhaseSettings[F], out: Path | None, overwrite: bool) -> Run[F]:
    """Run a phase of any kind, show progress, and write the files if requested.


    Args:
        settings: Settings, checked.
        out: Folder of the files; None to keep nothing.
        overwrite: Whether these may be replaced.

    Raises:
        InvalidInputError: The folder cannot be used, or the machine has no room for the run.
    """
    from earshot_simulations.phases.simulation import simulate

    with hearing_kept(), _kept(out, FILES, overwrite) as progress:
        run = simulate(settings, progress)
        if out is not None:
            run.write(out, overwrite=True)  # what the folder held was checked before
    return run


@contextmanager
def _kept(out: Path | None, files: Collection[str], overwrite: bool) -> Iterator[Progress]:
    """Prepare the folder of a run's files, and yield the display of its progress."""
    prepare_folder(out, files, overwrite)
    try:
        with shown() as progress:
            yield progress
    except (OSError, MemoryError) as error:
        if isinstance(error, OSError) and error.errno not in NO_ROOM:
            raise InvalidInputError(f"that simulation has failed: {error}") from error
        raise InvalidInputError(f"this machine has no room for that simulation: {error}") from error


def _print_each(results: Mapping[Discovery, object]) -> None:
    """Print a single result as JSON, or several by route."""
    told = results if len(results) > 1 else next(iter(results.values()))
    print(json.dumps(told, indent=2, allow_nan=False))


def _summarize(results: Mapping[Discovery, dict[str, Any]], out: Path | None) -> None:
    """Print the summary of a `result.json`, or of those of both routes.

    Args:
        results: Results by route.
        out: Folder of the report; None without one.
    """
    columns = [_summary(figures) for figures in results.values()]
    if len(columns) > 1:
        _print("", *(ROUTES[route].found.phase for route in results))
    skipped = next(iter(results.values()))["skipped"]
    if skipped["count"]:
        named = [f"{each['recording']} is {each['reason']}" for each in skipped["list"]]
        more = [f"and {len(named) - _MOST_NAMED} more"] if len(named) > _MOST_NAMED else []
        _print("left out", "; ".join(named[:_MOST_NAMED] + more))
    for name in dict.fromkeys(name for column in columns for name in column):
        values = [column.get(name) for column in columns]
        if any(value is not None for value in values):
            _print(name.replace("_", " "), *map(_written, values))
    if out is not None:
        _print("report", str(out / "report.html"))


def _print(name: str, *values: str) -> None:
    print(f"{name:<{_NAME}} {''.join(f'{value:<{_COLUMN}}' for value in values)}".rstrip())


def _written(value: object) -> str:
    if value is None:
        return "–"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def _summary(figures: dict[str, Any]) -> dict[str, Any]:
    """Return the figures of the summary by display name."""
    return {
        **{name: figures[name] for name in ("phones", "survivors")},
        **_counted(figures),
        **{
            name: figures[name]
            for name in ("ari_train", "ari_test", "label_accuracy", "clear_label_accuracy")
        },
        **_spent(figures),
        "peak_memory": f"{whole(figures['peak_memory_mb'])} MB",
        "interrupted": figures["interrupted"],
    }


def _spent(figures: dict[str, Any]) -> dict[str, str]:
    """Return a phone's composed cost per unit of ledgers, as in the report."""
    if figures["configuration"]["epsilon"] == INFINITE:
        return {"privacy": UNPROTECTED}
    together = figures["privacy"]["together"] if figures["privacy"]["releases"] else {}
    costs = {
        # The file has no ε where none is known to hold.
        unit: Cost(math.inf if cost["epsilon"] is None else cost["epsilon"], cost["delta"])
        for unit, cost in ((unit, together[unit]) for unit in LEDGER_UNITS if unit in together)
    }
    said = {f"ε per {unit}": at_delta(cost) for unit, cost in costs.items()}
    dearer = dearer_recording(costs)
    return {**said, "why": dearer} if dearer else said


def _counted(figures: dict[str, Any]) -> dict[str, Any]:
    """Return the counts of results by the route's names; those of other routes are None."""
    own = figures["configuration"][ROUTE]
    return {
        name: value if discovery == own else None
        for discovery, route in ROUTES.items()
        for name, value in route.found.counts_of(figures).items()
    }


def _repeated(
    kept: Path,
    others: AbstractSet[str],
    where: Mapping[str, Any],
    moved: Mapping[str, str],
    out: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Repeat a kept run, and report whether the result is the same, bit for bit.

    Args:
        kept: Path of the run's `result.json`, or its folder; or that of a run of both routes.
        others: Names of other given settings, which are refused.
        where: Engine, address and jobs of the repetition, by the names of `WHERE`.
        moved: Given paths of sound and encoder, by the names of `_FILES`.
        out: Folder of the repetition's files; None to keep nothing.
        overwrite: Whether these may be replaced.
        as_json: Whether to print JSON, and nothing else.

    Raises:
        InvalidInputError: Another setting is given, or the run cannot be repeated; see
            `phases.kept.repeatable`.
        SystemExit: The result differs; the status is 1.
    """
    if others:
        named = ", ".join(map(spelled, sorted(others)))
        raise InvalidInputError(
            f"{named}: not with --repeat, which "
            f"takes all settings from {kept}; leave it out, or run without --repeat"
        )
    from earshot_simulations.phases.kept import outcome, read_each, repeatable
    from earshot_simulations.phases.run import result

    kept_runs = read_each(kept)
    asked, elsewhere = {}, False
    for route, each in kept_runs.items():
        settings, changed = repeatable(each, moved)
        asked[route] = replace(settings, **where)
        elsewhere |= bool(changed)
        if changed:
            print(f"changed since: {_named(changed)}; figures may differ", file=sys.stderr)
    runs = _run_and_write(asked, out, overwrite, hearing_once)  # hearing is repeated, too
    now = {route: result(run) for route, run in runs.items()}
    differs = {route: outcome(kept_runs[route], figures) for route, figures in now.items()}
    if as_json:
        told = {route: _told(differs[route], figures) for route, figures in now.items()}
        _print_each(told)
    else:
        _summarize(now, out)
        same = [_named(pairs) if pairs else "the same, bit for bit" for pairs in differs.values()]
        print(f"{'repeated':<22} {'; '.join(dict.fromkeys(same))}")
    if any(differs.values()):
        print(_OTHER_DIGITS if elsewhere else _NO_KNOWN_CAUSE, file=sys.stderr)
    if any(differs.values()) or any(run.interrupted for run in runs.values()):
        sys.exit(1)


def _told(differs: Mapping[str, Pair], now: Mapping[str, Any]) -> dict[str, Any]:
    pairs = {name: {"then": pair[0], "now": pair[1]} for name, pair in differs.items()}
    return {"same": not differs, "differs": pairs, "result": now}


def _named(pairs: Mapping[str, Pair]) -> str:
    shown = [f"{name} was {then}, is {now}" for name, (then, now) in pairs.items()]
    more = [f"and {len(shown) - _MOST_SHOWN} more"] if len(shown) > _MOST_SHOWN else []
    return "; ".join(shown[:_MOST_SHOWN] + more)
