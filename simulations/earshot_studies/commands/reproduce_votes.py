"""`earshot reproduce` for what was published on private votes with several winners."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from earshot_models.commands.output import prepare_folder
from earshot_simulations.reporting.resuming import resumable
from earshot_studies.commands.reproducing import SHARED, WORK, Out, Overwrite, Sounds, written

COMMANDS = {
    "multi-winner-queries": "Queries that rules with several winners answer, by labels and noise.",
    "multi-winner-student": "Students of those answers, beside private training by DP-SGD.",
    "capc": "Parties that answer each other's queries through a secure sum, before and after.",
}
"""Modules of `reproductions` by their names, and what they show."""


def command(name: str) -> Callable[..., None]:
    """The command that makes one of `COMMANDS`."""

    def make(
        out: Out,
        data: Sounds = SHARED,
        encoder: Annotated[
            str | None,
            typer.Option(help="Public encoder: a file, or a shipped one by its name."),
        ] = None,
        seeds: Annotated[
            int | None, typer.Option(help="Repetitions, each with its own mixtures and noise.")
        ] = None,
        full: Annotated[bool, typer.Option("--full", help="Ten seeds: takes an hour.")] = False,
        cache: Annotated[
            Path | None,
            typer.Option(help=f"Folder that keeps mixtures between runs; by default OUT/{WORK}."),
        ] = None,
        overwrite: Overwrite = False,
    ) -> None:
        from earshot_protocol import checks
        from earshot_studies.dziedzic.multi_winner import Study
        from earshot_studies.kit.mixtures.embedding import Size
        from earshot_studies.kit.outcome import files_of

        count = checks.whole("seeds", seeds if seeds is not None else 10 if full else 3)
        prepare_folder(out, files_of(name), overwrite, resumes=[WORK])
        work = cache or out / WORK
        module = name.removeprefix("multi-winner-")
        reproduction = import_module(f"earshot_studies.dziedzic.{module}")
        with resumable(work) as progress:
            study = Study(data, work, Size(), count, progress, encoder)
            outcome = reproduction.reproduce(study)
        written(outcome, out)

    return make
