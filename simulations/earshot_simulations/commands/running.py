"""What commands share that run simulated phases: doing it, keeping it, and summing it up."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS
from earshot_protocol.progress import Progress
from earshot_server.discovery.route import Discovery
from earshot_simulations.phases.routes import ROUTES
from earshot_simulations.phases.run import Found
from earshot_simulations.phases.settings import ROUTE, PhaseSettings
from earshot_simulations.reporting.words import real

if TYPE_CHECKING:
    from earshot_simulations.phases.routes import Settings
    from earshot_simulations.phases.routes_page import Runs
    from earshot_simulations.phases.run import Run

F = TypeVar("F", bound=Found)
_NAME, _COLUMN = 22, 30


def run_and_write(asked: Mapping[Discovery, Settings], out: Path | None, overwrite: bool) -> Runs:
    """Run a phase on each route with its progress shown, and keep it where that is wanted.

    Args:
        asked: Settings by route, checked.
        out: Folder of the files; None to keep nothing.
        overwrite: Whether these may be replaced.

    Returns:
        Runs by route; one that was not begun after an interruption is missing.

    Raises:
        InvalidInputError: if the folder cannot be used, or the machine has no room for the run.
    """
    from earshot_simulations.phases.report import FILES, write
    from earshot_simulations.phases.routes_page import FILES_OF_BOTH, write_both
    from earshot_simulations.phases.simulation import simulate_routes

    both = len(asked) > 1
    with _kept(out, FILES_OF_BOTH if both else FILES, overwrite) as progress:
        runs = simulate_routes(asked, progress)
        if out is not None and both:
            write_both(runs, out)
        elif out is not None:
            (run,) = runs.values()
            write(run, out)
    return runs


def run_and_write_one(settings: PhaseSettings[F], out: Path | None, overwrite: bool) -> Run[F]:
    """Run a phase of any kind with its progress shown, and keep it where that is wanted.

    Args:
        settings: Settings, checked.
        out: Folder of the files; None to keep nothing.
        overwrite: Whether these may be replaced.

    Raises:
        InvalidInputError: if the folder cannot be used, or the machine has no room for the run.
    """
    from earshot_simulations.phases.report import FILES, write
    from earshot_simulations.phases.simulation import simulate

    with _kept(out, FILES, overwrite) as progress:
        run = simulate(settings, progress)
        if out is not None:
            write(run, out)
    return run


@contextmanager
def _kept(out: Path | None, files: Collection[str], overwrite: bool) -> Iterator[Progress]:
    """Prepare the folder of a run's files, and yield the display of its progress."""
    if out is not None:
        prepare_folder(out, files, overwrite)
    try:
        with shown() as progress:
            yield progress
    except (OSError, MemoryError) as error:
        raise InvalidInputError(f"this machine has no room for that simulation: {error}") from error


def print_each(results: Mapping[Discovery, object]) -> None:
    """Print the only one of these as JSON, or all of them by route."""
    told = results if len(results) > 1 else next(iter(results.values()))
    print(json.dumps(told, indent=2, allow_nan=False))


def summarize(results: Mapping[Discovery, dict[str, Any]], out: Path | None) -> None:
    """Print what a person wants to know first of a `result.json`, or of those of both routes.

    Args:
        results: by route.
        out: the folder of the report; None without one.
    """
    columns = [_summary(figures) for figures in results.values()]
    if len(columns) > 1:
        _print("", *(ROUTES[route].found.phase for route in results))
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
    """Return the figures by the names that people call them."""
    return {
        **{name: figures[name] for name in ("phones", "survivors")},
        **_counted(figures),
        **{
            name: figures[name]
            for name in ("ari_train", "ari_test", "label_accuracy", "clear_label_accuracy")
        },
        **_spent(figures),
        **{name: figures[name] for name in ("peak_memory_mb", "interrupted")},
    }


def _spent(figures: dict[str, Any]) -> dict[str, str]:
    """Return what a phone has spent together, per unit of ledgers, composed as in the report."""
    together = figures["privacy"]["together"] if figures["privacy"]["releases"] else {}
    return {
        f"ε per {unit}": f"{real(together[unit]['epsilon'])} at δ = {real(together[unit]['delta'])}"
        for unit in LEDGER_UNITS
        if unit in together
    }


def _counted(figures: dict[str, Any]) -> dict[str, Any]:
    """Return what was found, in the words of its route; those of others have no value."""
    own = figures["configuration"][ROUTE]
    return {
        name: value if discovery == own else None
        for discovery, route in ROUTES.items()
        for name, value in route.counted(figures).items()
    }
