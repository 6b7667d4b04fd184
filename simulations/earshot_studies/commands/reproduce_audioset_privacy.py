"""`earshot reproduce audioset-privacy`: the command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from earshot_models.commands.output import prepare_folder
from earshot_simulations.reporting.resuming import resumable
from earshot_studies.commands.reproduce_audioset import Teachers
from earshot_studies.commands.reproducing import SHARED, WORK, Out, Overwrite, Sounds, written


def audioset_privacy(
    out: Out,
    data: Sounds = SHARED,
    teachers: Annotated[
        Teachers,
        typer.Option(
            help="Small networks, those of audioset-ensemble: give its --cache; or linear ones, in "
            "a tenth of the time."
        ),
    ] = Teachers.SMALL,
    seeds: Annotated[
        int | None, typer.Option(help="Ensembles, each with its own mixtures and noise.")
    ] = None,
    queries: Annotated[
        int, typer.Option(help="Mixtures that costs are worked out from, at most.")
    ] = 2000,
    full: Annotated[bool, typer.Option("--full", help="Ten ensembles.")] = False,
    processes: Annotated[int, typer.Option(help="That train.")] = 2,
    cache: Annotated[
        Path | None,
        typer.Option(help=f"Folder that keeps ensembles between runs; by default OUT/{WORK}."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Costs of votes against thresholds: as claimed on AudioSet, as they hold, and cheapest."""
    from earshot_protocol import checks
    from earshot_simulations.engine.processes import check_processes
    from earshot_studies.kit.outcome import files_of
    from earshot_studies.muschiol import privacy as reproduction
    from earshot_studies.muschiol.on_mixtures import on_mixtures

    count = checks.whole("seeds", seeds if seeds is not None else 10 if full else 5)
    checks.whole("queries", queries)
    check_processes("processes", processes)
    prepare_folder(out, files_of(reproduction.NAME), overwrite, resumes=[WORK])
    work = cache or out / WORK
    with resumable(work) as progress:
        plan = on_mixtures(data, work, teachers.value, queries, count, processes, progress)
        outcome = reproduction.reproduce(plan)
    written(outcome, out)
