"""`earshot reproduce` for what was published on private votes with several winners."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown

_WORK = "work"
"""Folder, in --out, of mixtures and of what was measured of each seed."""
_SHARED = Path("../shared/data")

COMMANDS = {
    "multi-winner-queries": "Queries that rules with several winners answer, by labels and noise.",
    "multi-winner-student": "Students of those answers, beside private training by DP-SGD.",
    "capc": "Parties that answer each other's queries through a secure sum, before and after.",
}
"""Modules of `reproductions` by their names, and what they show."""


def command(name: str) -> Callable[..., None]:
    """The command that makes one of `COMMANDS`."""

    def make(
        out: Annotated[
            Path, typer.Option(help="New folder for the CSV, the picture and the Markdown note.")
        ],
        data: Annotated[
            Path, typer.Option(help="Folder that holds esc10, fsdd and perhaps free_sounds.")
        ] = _SHARED,
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
            typer.Option(help=f"Folder that keeps mixtures between runs; by default OUT/{_WORK}."),
        ] = None,
        overwrite: Annotated[
            bool, typer.Option("--overwrite", help="Replace these files where --out has them.")
        ] = False,
    ) -> None:
        from earshot_protocol import checks
        from earshot_simulations.mixtures.embedding import Size
        from earshot_simulations.reproductions.multi_winner import Study
        from earshot_simulations.reproductions.outcome import files_of, write

        count = checks.whole("seeds", seeds if seeds is not None else 10 if full else 3)
        prepare_folder(out, files_of(name), overwrite, resumes=[_WORK])
        work = cache or out / _WORK
        work.mkdir(parents=True, exist_ok=True)
        reproduction = import_module(f"earshot_simulations.reproductions.{name.replace('-', '_')}")
        try:
            with shown() as progress:
                study = Study(data, work, Size(), count, progress, encoder)
                outcome = reproduction.reproduce(study)
        except KeyboardInterrupt:
            print(f"what is done is in {work}; the same command goes on from there")
            raise typer.Exit(130) from None
        for path in write(outcome, out):
            print(path)

    return make
