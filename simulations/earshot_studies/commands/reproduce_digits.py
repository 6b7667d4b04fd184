"""`earshot reproduce pate-aae`: private students of spoken digits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from earshot_models.commands.output import prepare_folder
from earshot_simulations.reporting.resuming import resumable
from earshot_studies.commands.reproducing import SHARED, WORK, Out, Overwrite, written

NAME = "pate-aae"
HELP = "Private students of generated spoken digits, by generator and ε."


def command(
    out: Out,
    data: Annotated[Path, typer.Option(help="Folder that holds fsdd and free_sounds.")] = SHARED,
    speaker: Annotated[
        str | None,
        typer.Option(help="Whose clips are public; by default of the first speaker by name."),
    ] = None,
    seeds: Annotated[
        int, typer.Option(help="Repetitions, each with its own teachers, generators and noise.")
    ] = 5,
    teachers: Annotated[int, typer.Option(help="Parts of the private clips.")] = 200,
    queries: Annotated[int, typer.Option(help="Generated clips that are answered.")] = 200,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="A budget; may be repeated. By default the paper's.")
    ] = None,
    delta: Annotated[float, typer.Option(help="Of every budget.")] = 1e-5,
    processes: Annotated[int, typer.Option(help="That train.")] = 2,
    work: Annotated[
        Path | None,
        typer.Option(help=f"Folder that keeps cells between runs; by default OUT/{WORK}."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Run it, or go on where it was stopped."""
    from earshot_protocol import checks
    from earshot_simulations.engine.processes import check_processes
    from earshot_studies.kit.outcome import files_of
    from earshot_studies.pate_aae import table_1 as pate_aae
    from earshot_studies.pate_aae.study import EPSILONS, Size

    count = checks.whole("seeds", seeds)
    check_processes("processes", processes)
    size = Size(teachers, queries, delta=delta, epsilons=tuple(epsilon or EPSILONS))
    prepare_folder(out, files_of(NAME), overwrite, resumes=[WORK])
    folder = work or out / WORK
    with resumable(folder) as progress:
        study = pate_aae.opened(data, folder, size, progress, speaker)
        outcome = pate_aae.reproduce(study, count, processes)
    written(outcome, out)
