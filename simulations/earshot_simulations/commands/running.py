"""What commands share that run simulated phases: doing it, keeping it, and summing it up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS
from earshot_server.discovery.route import Discovery
from earshot_simulations.reporting.words import real

if TYPE_CHECKING:
    from collections.abc import Mapping

    from earshot_simulations.learning.run import Run
    from earshot_simulations.learning.settings import Settings

_NAME, _COLUMN = 22, 30
_KINDS = {Discovery.LOCAL: "learning phase", Discovery.SECURE_SUM: "discovery phase"}


def run_and_write(
    asked: Mapping[Discovery, Settings], out: Path | None, overwrite: bool
) -> dict[Discovery, Run]:
    """Run a phase on each route with its progress shown, and keep it where that is wanted.

    Args:
        asked: by route, checked.
        out: folder of the files; None to keep nothing.
        overwrite: whether these may be replaced.

    Returns:
        the runs, by route; one that was not begun after an interruption is missing.

    Raises:
        InvalidInputError: the folder cannot be used, or the machine has no room for the run.
    """
    from earshot_simulations.learning.files import FILES, FILES_OF_BOTH, write, write_both
    from earshot_simulations.learning.simulation import simulate_routes

    both = len(asked) > 1
    if out is not None:
        prepare_folder(out, FILES_OF_BOTH if both else FILES, overwrite)
    try:
        with shown() as progress:
            runs = simulate_routes(asked, progress)
        if out is not None and both:
            write_both(runs, out)
        elif out is not None:
            (run,) = runs.values()
            write(run, out)
    except (OSError, MemoryError) as error:
        raise InvalidInputError(f"this machine has no room for that simulation: {error}") from error
    return runs


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
        _print("", *(_KINDS[route] for route in results))
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
    """The figures by what a person calls them."""
    return {
        **{name: figures[name] for name in ("phones", "survivors")},
        **_found(figures),
        **{
            name: figures[name]
            for name in ("ari_train", "ari_test", "label_accuracy", "clear_label_accuracy")
        },
        **_spent(figures),
        **{name: figures[name] for name in ("peak_memory_mb", "interrupted")},
    }


def _spent(figures: dict[str, Any]) -> dict[str, str]:
    """What a phone has spent in all, per unit of ledgers: composed, as the report has it."""
    together = figures["privacy"]["together"] if figures["privacy"]["releases"] else {}
    return {
        f"ε per {unit}": f"{real(together[unit]['epsilon'])} at δ = {real(together[unit]['delta'])}"
        for unit in LEDGER_UNITS
        if unit in together
    }


def _found(figures: dict[str, Any]) -> dict[str, Any]:
    """What was found, in the words of its discovery."""
    local = figures["configuration"]["discovery"] == Discovery.LOCAL
    named = [each for each in figures["environments"] if each["label"] and each["centroids"]]
    cells = {
        "cells": figures["global_centroids"],
        "named_cells": figures["named"],
        "environments": None if figures["named"] is None else len(named),
    }
    centroids = {name: figures[name] for name in ("global_centroids", "top_global_centroids")}
    return dict.fromkeys(cells if local else centroids) | (centroids if local else cells)
