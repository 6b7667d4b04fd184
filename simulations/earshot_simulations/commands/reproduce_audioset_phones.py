"""`earshot reproduce audioset-phones`: the command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown

_WORK = "work"
"""Folder, in --out, of what was measured of each crowd, and of sums that were cut short."""
_SHARED = Path("../shared/data")


def audioset_phones(
    out: Annotated[
        Path, typer.Option(help="New folder for the CSV, the picture and the Markdown note.")
    ],
    data: Annotated[
        Path, typer.Option(help="Folder that holds esc10, fsdd and perhaps free_sounds.")
    ] = _SHARED,
    phones: Annotated[int, typer.Option(help="Teachers.")] = 3000,
    samples: Annotated[int, typer.Option(help="That they are asked about, in one sum.")] = 500,
    epsilon: Annotated[float, typer.Option(help="ε of a phone that is left out.")] = 1.0,
    delta: Annotated[float, typer.Option(help="δ.")] = 1e-6,
    seeds: Annotated[int, typer.Option(help="Crowds, each with its own mixtures and noise.")] = 5,
    real: Annotated[
        int | None,
        typer.Option(help="Crowds whose sums have real cryptography; all, or others by their law."),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace these files where --out has them.")
    ] = False,
) -> None:
    """Thousands of phones as teachers: a secure sum beside a curator with the same ε."""
    from earshot_simulations.reproductions import audioset_phones as reproduction
    from earshot_simulations.reproductions.outcome import files_of, write

    work = out / _WORK
    prepare_folder(out, files_of(reproduction.NAME), overwrite, resumes=[_WORK])
    work.mkdir(parents=True, exist_ok=True)
    try:
        with shown() as progress:
            plan = reproduction.Plan(
                data,
                work,
                phones=phones,
                samples=samples,
                epsilon=epsilon,
                delta=delta,
                seeds=seeds,
                real=real,
                progress=progress,
            )
            outcome = reproduction.reproduce(plan)
    except KeyboardInterrupt:
        print(f"what is done is in {work}; the same command goes on from there")
        raise typer.Exit(130) from None
    for path in write(outcome, out):
        print(path)
