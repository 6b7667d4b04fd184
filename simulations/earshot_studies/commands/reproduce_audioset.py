"""`earshot reproduce` for ensembles of taggers and their students (Muschiol 2021)."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from importlib import import_module
from pathlib import Path
from typing import Annotated

import typer

from earshot_models.commands.output import prepare_folder
from earshot_simulations.reporting.resuming import resumable
from earshot_studies.commands.reproducing import SHARED, WORK, Out, Overwrite, Sounds, written

COMMANDS = {
    "audioset-ensemble": "Ensembles that name all that sounds: 10, 20, 50 teachers and a baseline.",
    "audioset-student": "Students of what fifty of them answer, by threshold and check, and costs.",
}
"""Modules of `reproductions` by their names, and what they show."""


class Teachers(StrEnum):
    """What they are; the values of `tagging.school.Kind`, which is imported where it is needed."""

    LINEAR = "linear"
    SMALL = "small"


def command(name: str) -> Callable[..., None]:
    """The command that makes one of `COMMANDS`."""

    def make(
        out: Out,
        data: Sounds = SHARED,
        teachers: Annotated[
            Teachers, typer.Option(help="Small networks, or linear ones in a tenth of the time.")
        ] = Teachers.SMALL,
        seeds: Annotated[
            int | None, typer.Option(help="Repetitions, each with its own mixtures and taggers.")
        ] = None,
        full: Annotated[
            bool, typer.Option("--full", help="Ten seeds, and more taggers of each.")
        ] = False,
        processes: Annotated[int, typer.Option(help="That train.")] = 2,
        cache: Annotated[
            Path | None,
            typer.Option(help=f"Folder that keeps ensembles between runs; by default OUT/{WORK}."),
        ] = None,
        overwrite: Overwrite = False,
    ) -> None:
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
        from earshot_studies.kit.outcome import files_of
        from earshot_studies.muschiol.taggers.school import Kind, Teaching
        from earshot_studies.muschiol.taggers.study import Study
        from earshot_studies.muschiol.work import Work

        folder = cache or out / WORK
        reproduction = import_module(f"earshot_studies.muschiol.{name.removeprefix('audioset-')}")
        study, teaching = Study(data, folder), Teaching(Kind(teachers.value))
        count = seeds if seeds is not None else 10 if full else 5
        work = Work(study, count, teaching, processes, full, out)
        prepare_folder(out, (*files_of(name), *reproduction.FILES), overwrite, resumes=[WORK])
        with resumable(folder) as progress:
            outcome = reproduction.reproduce(replace(work, progress=progress))
        written(outcome, out)
        for path in (out / each for each in reproduction.FILES):
            if path.is_file():
                print(path)

    return make
