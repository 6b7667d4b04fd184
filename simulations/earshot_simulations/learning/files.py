"""The files that a person keeps of a simulated phase."""

from __future__ import annotations

import json
import os
from pathlib import Path

from earshot_simulations.learning.run import Run, result

RESULT = "result.json"
FILES = (RESULT, "report.html")
"""All that `write` writes."""


def write(run: Run, folder: Path) -> None:
    """Write `result.json` and `report.html`, each whole or not at all.

    The numbers are written first, so that they survive a report that cannot be drawn.

    Args:
        run: finished or ended early.
        folder: created if it is not there; other files in it stay as they are.
    """
    # What words and draws a report is not loaded while a run is measured.
    from earshot_simulations.learning.report import render

    folder.mkdir(parents=True, exist_ok=True)
    replace_file(folder / RESULT, json.dumps(result(run), indent=2, allow_nan=False) + "\n")
    replace_file(folder / "report.html", render(run))


def replace_file(path: Path, content: str | bytes) -> None:
    """Put a file in the place of the one that is there, whole or not at all; text as UTF-8."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
