"""`earshot audit`."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_protocol.checks import whole

# An option may stand behind the name.
app = typer.Typer(add_completion=False, context_settings={"allow_interspersed_args": True})


@app.callback(invoke_without_command=True)
def audit(
    name: Annotated[
        str | None, typer.Argument(help="What to audit; everything by default.")
    ] = None,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Take as long as it needs: 25 times the trials.")
    ] = False,
    trials: Annotated[
        int | None, typer.Option(help="Transcripts of each clustering, on each of two data sets.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of what is drawn at random.")] = 0,
    out: Annotated[
        Path | None, typer.Option(help="New folder for audit.json and audit.html.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace these two files where --out has them.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print audit.json, and nothing else.")
    ] = False,
) -> None:
    """Measure what every private mechanism really costs, beside what is claimed and proven."""
    from dataclasses import replace

    from earshot_simulations.auditing import catalogue, page, writing

    effort = replace(
        catalogue.THOROUGH if thorough else catalogue.USUAL, seed=whole("seed", seed, 0)
    )
    if trials is not None:
        effort = replace(effort, trials=whole("trials", trials, 100, 10**8))
    catalogue.check(name)
    if out is not None:
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
        raise typer.Exit(1)
