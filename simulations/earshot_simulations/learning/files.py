"""The files that a person keeps of a simulated phase, or of one on each route."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from earshot_protocol.files import replace_file
from earshot_simulations.learning.routes import Routes
from earshot_simulations.learning.run import Run, result
from earshot_simulations.learning.settings import Discovery

RESULT, REPORT = "result.json", "report.html"
FILES = (RESULT, REPORT)
"""All files that `write` writes."""
FILES_OF_BOTH = (REPORT, *(f"{route}/{name}" for route in Routes.BOTH.each for name in FILES))
"""All files that `write_both` writes."""


def write(run: Run, folder: Path) -> None:
    """Write `result.json` and `report.html`, each as a whole or not at all.

    The numbers are written first, so that they survive a report that cannot be drawn.

    Args:
        run: Run that finished or ended early.
        folder: Folder, created if it does not exist; other files in it stay as they are.
    """
    # The modules of a report are not loaded while a run is measured.
    from earshot_simulations.learning.report import render

    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / RESULT, json.dumps(result(run), indent=2, allow_nan=False) + "\n")
    replace_file(folder / REPORT, render(run))


def write_both(runs: Mapping[Discovery, Run], folder: Path) -> None:
    """Write a `report.html` on both routes together, and each route's files in its own folder.

    Files of an earlier run under these names are removed, so that all files are of these runs.

    Args:
        runs: Runs by route; the second is missing if the first was interrupted.
        folder: Folder, created if it does not exist; other files in it stay as they are.
    """
    from earshot_simulations.learning.routes_page import render

    for name in FILES_OF_BOTH + FILES:
        (folder / name).unlink(missing_ok=True)
    for route, run in runs.items():
        write(run, folder / route)
    replace_file(folder / REPORT, render(runs))
