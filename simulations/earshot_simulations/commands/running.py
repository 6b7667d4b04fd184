"""What commands share that run a phase: doing it, keeping it, and summing it up."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS
from earshot_server.dashboard.wording import real
from earshot_server.discovery.route import Discovery

if TYPE_CHECKING:
    from earshot_simulations.learning.run import Run
    from earshot_simulations.learning.settings import Settings


def run_and_write(settings: Settings, out: Path | None, overwrite: bool) -> Run:
    """Run a phase with its progress shown, and keep it where that is wanted.

    Args:
        settings: checked.
        out: folder of `result.json` and `report.html`; None to keep nothing.
        overwrite: whether these may be replaced.

    Raises:
        InvalidInputError: the folder cannot be used, or the machine has no room for the run.
    """
    from earshot_simulations.learning.files import FILES, write
    from earshot_simulations.learning.simulation import simulate

    if out is not None:
        prepare_folder(out, FILES, overwrite)
    try:
        with shown() as progress:
            run = simulate(settings, progress)
        if out is not None:
            write(run, out)
    except (OSError, MemoryError) as error:
        raise InvalidInputError(f"this machine has no room for that simulation: {error}") from error
    return run


def summarize(figures: dict[str, Any], out: Path | None) -> None:
    """Print what a person wants to know first of a `result.json`."""
    shown_figures = {
        **{name: figures[name] for name in ("phones", "survivors")},
        **_found(figures),
        **{
            name: figures[name]
            for name in (
                *("ari_train", "ari_test", "label_accuracy", "clear_label_accuracy"),
                *("peak_memory_mb", "interrupted"),
            )
        },
        **_spent(figures),
    }
    for name, value in shown_figures.items():
        if value is not None:
            shown_value = f"{value:.3f}" if isinstance(value, float) else value
            print(f"{name.replace('_', ' '):<22} {shown_value}")
    if out is not None:
        print(f"{'report':<22} {out / 'report.html'}")


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
    if figures["configuration"]["discovery"] == Discovery.LOCAL:
        return {name: figures[name] for name in ("global_centroids", "top_global_centroids")}
    named = [each for each in figures["environments"] if each["label"] and each["centroids"]]
    done = figures["named"] is not None
    return {
        "cells": figures["global_centroids"],
        "named_cells": figures["named"],
        "environments": len(named) if done else None,
    }
