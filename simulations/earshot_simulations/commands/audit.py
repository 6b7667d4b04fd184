"""`earshot audit`."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_protocol.checks import whole

# A single command, not a group, so that options may follow the name.

app = App()


@app.default
def audit(
    name: str | None = None,
    /,
    *,
    thorough: bool = False,
    trials: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    overwrite: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Compare the measured cost of every private mechanism with its claimed and proven cost.

    Args:
        name: Mechanism to audit; by default all of them.
        thorough: Run 25 times the trials, however long that takes.
        trials: Transcripts of each clustering on each of two data sets.
        seed: Seed of the trials.
        out: New folder for audit.json and audit.html.
        overwrite: Replace these two files where --out has them.
        as_json: Print audit.json, and nothing else.
    """
    from dataclasses import replace

    from earshot_simulations.auditing import catalogue, page, writing

    effort = replace(
        catalogue.THOROUGH if thorough else catalogue.USUAL, seed=whole("seed", seed, 0)
    )
    if trials is not None:
        effort = replace(effort, trials=whole("trials", trials, 100, 10**8))
    catalogue.check(name)
    prepare_folder(out, page.FILES, overwrite)
    started = time.monotonic()
    with shown() as progress:
        results = catalogue.audit(name, effort, progress)
    figures = writing.figures(results, time.monotonic() - started)
    if out is not None:
        page.write(results, figures, out)
    if as_json:
        print(json.dumps(figures, indent=2, allow_nan=False))
    else:
        writing.show(results)
        if out is not None:
            print(out / page.FILES[1])
    if not figures["passed"]:
        sys.exit(1)
