"""`earshot reproduce`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_simulations.reporting.resuming import resumable
from earshot_studies.commands import (
    reproduce_attacks,
    reproduce_audioset,
    reproduce_digits,
    reproduce_votes,
)
from earshot_studies.commands.reproduce_audioset_phones import audioset_phones
from earshot_studies.commands.reproduce_audioset_privacy import audioset_privacy
from earshot_studies.commands.reproducing import SHARED, Out, Overwrite, written

if TYPE_CHECKING:
    from collections.abc import Callable


app = typer.Typer(add_completion=False)

_FIGURES = {
    "liebenow-9.3a": "Clustering of heard and of unheard recordings.",
    "liebenow-9.3b": "Clustering by the number of recordings of a phone.",
    "liebenow-9.4": "Right names by the fraction of recordings that are labelled.",
    "liebenow-9.5a": "Seconds of every operation by phones, with real cryptography.",
    "liebenow-9.5b": "Incoming traffic of the server by phones: measured, computed, the thesis's.",
    "liebenow-9.6": "Privacy and utility: what the ε of each operation does.",
    "liebenow-10.1": "What each setting of both routes does, one at a time.",
    "growing-crowd": "Whether either route finds more, the more phones take part.",
    "phone-unit": "What a phone's own ε buys: discovery by secure sum, by ε and by phones.",
}
"""Those of `reproductions.figures`, and what they show."""
_SHARED_SOUND = SHARED / "esc10"
_SHARED_VOTES = SHARED / "pate_votes"

Data = Annotated[Path, typer.Option(help="Folder of the labelled data set that is measured.")]
Cache = Annotated[Path | None, typer.Option(help="Folder that keeps decoded sound between runs.")]


@app.callback()
def reproduce() -> None:
    """Make a table or figure of a paper anew, from data that you have."""
    # TensorFlow says much at its start that no user can act on.
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


@app.command("liebenow-9.1")
def linear_accuracy(
    data: Data,
    out: Out,
    other: Annotated[
        list[Path] | None,
        typer.Option(help="Folder of other sound to train on; may be repeated."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Batches that each encoder is trained for.")
    ] = None,
    overwrite: Overwrite = False,
    cache: Cache = None,
) -> None:
    """Linear accuracy by training set, and by pre-processing. Trains many encoders."""
    from earshot_models.datasets.opening import open_dataset
    from earshot_models.recipe import Recipe
    from earshot_studies.kit.outcome import files_of
    from earshot_studies.liebenow import figure_9_1 as liebenow_9_1

    dataset = open_dataset(data)
    others = [open_dataset(folder) for folder in other or ()]
    recipe = Recipe()
    if steps is not None:
        recipe = replace(recipe, schedule=replace(recipe.schedule, steps=steps))
    prepare_folder(out, files_of("liebenow-9.1"), overwrite, resumes=["encoders"])
    with shown() as progress:
        outcome = liebenow_9_1.reproduce(dataset, others, out / "encoders", recipe, cache, progress)
    written(outcome, out)


@app.command("liebenow-9.2")
def embedding_space(
    data: Data,
    out: Out,
    encoder: Annotated[
        str | None,
        typer.Option(help="An encoder file, or a shipped encoder by its name; by default ours."),
    ] = None,
    overwrite: Overwrite = False,
    cache: Cache = None,
) -> None:
    """An embedding space by PCA and t-SNE."""
    from earshot_client.encoder import open_encoder
    from earshot_models.datasets.opening import open_dataset
    from earshot_studies.kit.outcome import files_of
    from earshot_studies.liebenow import figure_9_2 as liebenow_9_2

    dataset, whose = open_dataset(data), open_encoder(encoder)
    prepare_folder(out, files_of("liebenow-9.2"), overwrite)
    with shown() as progress:
        outcome = liebenow_9_2.reproduce(dataset, whose, cache, progress)
    written(outcome, out)


@app.command("papernot-table-1")
def published_votes(
    out: Out,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of mnist.npy, svhn.npy and adult.npy, the votes that were published with "
            f"the paper; by default {_SHARED_VOTES} where it exists."
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="Draws of the noise.")] = 10,
    overwrite: Overwrite = False,
) -> None:
    """What Confident-GNMax costs on published votes: theirs, by their accounting, and soundly."""
    from earshot_protocol.errors import InvalidInputError
    from earshot_studies.kit.outcome import files_of
    from earshot_studies.papernot import table_1 as papernot_table_1

    folder = data or (_SHARED_VOTES if _SHARED_VOTES.is_dir() else None)
    if folder is None:
        raise InvalidInputError("--data: there are no published votes here; name their folder")
    votes = papernot_table_1.read_votes(folder)
    prepare_folder(out, files_of(papernot_table_1.NAME), overwrite)
    with shown() as progress:
        outcome = papernot_table_1.reproduce(votes, seeds, progress=progress)
    written(outcome, out)


def _figure(name: str) -> Callable[..., None]:
    """The command that makes a figure by simulating whole phases."""

    def make(
        out: Out,
        data: Annotated[
            Path | None,
            typer.Option(
                help="Folder of class/*.wav|ogg|flac that phones hear, beside blobs; by default "
                f"{_SHARED_SOUND} where it exists."
            ),
        ] = None,
        encoder: Annotated[
            str | None,
            typer.Option(help="Of that sound: an encoder file, or a shipped one by its name."),
        ] = None,
        phones: Annotated[int | None, typer.Option(help="Phones of every phase.")] = None,
        recordings: Annotated[
            int | None, typer.Option(help="Recordings of a phone, on average.")
        ] = None,
        seeds: Annotated[
            int | None, typer.Option(help="Phases of every kind, each with its own seed.")
        ] = None,
        full: Annotated[
            bool, typer.Option("--full", help="Large crowds, many seeds and points: takes hours.")
        ] = False,
        jobs: Annotated[int, typer.Option(help="Phases at a time.")] = os.cpu_count() or 1,
        overwrite: Overwrite = False,
    ) -> None:
        from earshot_protocol.errors import InvalidInputError
        from earshot_simulations.engine.processes import check_processes
        from earshot_simulations.sweeps.rows import FILE
        from earshot_studies.kit.outcome import files_of
        from earshot_studies.liebenow.contenders import Setup
        from earshot_studies.liebenow.figures import FIGURES

        figure = FIGURES[name]
        given = {"phones": phones, "recordings": recordings, "seeds": seeds}
        if given.get(figure.varies) is not None:
            raise InvalidInputError(f"--{figure.varies}: is what varies in {name}; leave it out")
        chosen = {size: value for size, value in given.items() if value is not None}
        sound = data or (_SHARED_SOUND if _SHARED_SOUND.is_dir() else None)
        if encoder is not None and sound is None:
            raise InvalidInputError("--encoder: there is no sound; name its folder with --data")
        size = replace(figure.full if full else figure.soon, **chosen)
        processes = check_processes("jobs", jobs)
        prepare_folder(out, files_of(name), overwrite, resumes=[FILE])
        with resumable(out) as progress:
            setup = Setup(size, out / FILE, sound, encoder, processes, progress)
            outcome = figure.make(setup, full)
        written(outcome, out)

    return make


for _name, _help in _FIGURES.items():
    app.command(_name, help=_help)(_figure(_name))
for _name, _help in reproduce_votes.COMMANDS.items():
    app.command(_name, help=_help)(reproduce_votes.command(_name))
app.command("audioset-phones")(audioset_phones)
app.command("audioset-privacy")(audioset_privacy)
for _name, _help in reproduce_audioset.COMMANDS.items():
    app.command(_name, help=_help)(reproduce_audioset.command(_name))
app.command(reproduce_digits.NAME, help=reproduce_digits.HELP)(reproduce_digits.command)
app.command(reproduce_attacks.NAME, help=reproduce_attacks.HELP)(reproduce_attacks.command)


_PERSONAL = {
    "personalized-labels": "Labels that an ensemble gives under budgets of each owner's own.",
    "personalized-accuracy": "Accuracy of students that learn from those labels.",
}


def _personal(name: str) -> Callable[..., None]:
    """The command that makes a table of Mühl (2021)."""

    def make(
        data: Annotated[
            Path, typer.Option(help="Folder of MNIST's IDX files, or of UCI Adult's tables.")
        ],
        out: Out,
        votes: Annotated[
            Path | None,
            typer.Option(help="Folder that keeps teachers' votes between runs; in --out if none."),
        ] = None,
        processes: Annotated[
            int | None, typer.Option(help="Voting processes of a cell; 5 if none, or Mühl's.")
        ] = None,
        students: Annotated[int, typer.Option(help="Students of a cell.")] = 1,
        teachers: Annotated[int, typer.Option(help="Of an ensemble.")] = 250,
        full: Annotated[
            bool,
            typer.Option(
                "--full", help="With upsampling, which trains four times as many teachers."
            ),
        ] = False,
        overwrite: Overwrite = False,
    ) -> None:
        from earshot_protocol.checks import whole
        from earshot_studies.kit.outcome import files_of
        from earshot_studies.muehl import personal
        from earshot_studies.muehl.cells import Work
        from earshot_studies.muehl.data import open_subject
        from earshot_studies.muehl.votes import Ensembles

        subject = open_subject(data)
        ensembles = Ensembles(len(subject.private), teachers)
        usual = subject.processes if full else 5
        number = usual if processes is None else whole("processes", processes)
        whole("students", students)
        prepare_folder(out, files_of(name), overwrite, resumes=["votes"])
        folder = votes or out / "votes"
        with resumable(folder) as progress:
            work = Work(subject, ensembles, folder, number, full, progress)
            if name == personal.LABELS:
                outcome = personal.labels(work)
            else:
                outcome = personal.accuracy(work, students)
        written(outcome, out)

    return make


for _name, _help in _PERSONAL.items():
    app.command(_name, help=_help)(_personal(_name))
