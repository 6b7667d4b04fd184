"""`earshot reproduce audioset-privacy`: the command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_simulations.commands.reproduce_audioset import Teachers

_WORK = "work"
"""Folder, in --out, of ensembles and of what was measured of each."""
_SHARED = Path("../shared/data")


def audioset_privacy(
    out: Annotated[
        Path, typer.Option(help="New folder for the CSV, the picture and the Markdown note.")
    ],
    data: Annotated[
        Path, typer.Option(help="Folder that holds esc10, fsdd and perhaps free_sounds.")
    ] = _SHARED,
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
        typer.Option(help=f"Folder that keeps ensembles between runs; by default OUT/{_WORK}."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace these files where --out has them.")
    ] = False,
) -> None:
    """Costs of votes against thresholds: as claimed on AudioSet, as they hold, and cheapest."""
    from earshot_protocol import checks
    from earshot_simulations.engine.processes import check_processes
    from earshot_simulations.reproductions import audioset_privacy as reproduction
    from earshot_simulations.reproductions.audioset_mixtures import on_mixtures
    from earshot_simulations.reproductions.outcome import files_of, write

    count = checks.whole("seeds", seeds if seeds is not None else 10 if full else 5)
    checks.whole("queries", queries)
    check_processes("processes", processes)
    prepare_folder(out, files_of(reproduction.NAME), overwrite, resumes=[_WORK])
    work = cache or out / _WORK
    work.mkdir(parents=True, exist_ok=True)
    try:
        with shown() as progress:
            plan = on_mixtures(data, work, teachers.value, queries, count, processes, progress)
            outcome = reproduction.reproduce(plan)
    except KeyboardInterrupt:
        print(f"what is done is in {work}; the same command goes on from there")
        raise typer.Exit(130) from None
    for path in write(outcome, out):
        print(path)
