"""`earshot reproduce audioset-phones`: the command."""

from __future__ import annotations

from typing import Annotated

import typer

from earshot_models.commands.output import prepare_folder
from earshot_simulations.reporting.resuming import resumable
from earshot_studies.commands.reproducing import SHARED, WORK, Out, Overwrite, Sounds, written


def audioset_phones(
    out: Out,
    data: Sounds = SHARED,
    phones: Annotated[int, typer.Option(help="Teachers.")] = 3000,
    samples: Annotated[int, typer.Option(help="That they are asked about, in one sum.")] = 500,
    epsilon: Annotated[float, typer.Option(help="ε of a phone that is left out.")] = 1.0,
    delta: Annotated[float, typer.Option(help="δ.")] = 1e-6,
    seeds: Annotated[int, typer.Option(help="Crowds, each with its own mixtures and noise.")] = 5,
    real: Annotated[
        int | None,
        typer.Option(help="Crowds whose sums have real cryptography; all, or others by their law."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Thousands of phones as teachers: a secure sum beside a curator with the same ε."""
    from earshot_studies.kit.outcome import files_of
    from earshot_studies.muschiol import phones as reproduction

    work = out / WORK
    prepare_folder(out, files_of(reproduction.NAME), overwrite, resumes=[WORK])
    with resumable(work) as progress:
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
    written(outcome, out)
