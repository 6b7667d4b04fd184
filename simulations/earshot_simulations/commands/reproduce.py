"""`earshot reproduce`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown

if TYPE_CHECKING:
    from earshot_simulations.reproductions.outcome import Outcome

app = typer.Typer(add_completion=False)

Data = Annotated[Path, typer.Option(help="Folder of the labelled data set that is measured.")]
Out = Annotated[
    Path, typer.Option(help="New folder for the CSV, the picture and the Markdown note.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace these files where --out has them.")
]
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
    from earshot_simulations.reproductions import liebenow_9_1
    from earshot_simulations.reproductions.outcome import files_of

    dataset = open_dataset(data)
    others = [open_dataset(folder) for folder in other or ()]
    recipe = Recipe()
    if steps is not None:
        recipe = replace(recipe, schedule=replace(recipe.schedule, steps=steps))
    prepare_folder(out, files_of("liebenow-9.1"), overwrite, resumes=["encoders"])
    with shown() as progress:
        outcome = liebenow_9_1.reproduce(dataset, others, out / "encoders", recipe, cache, progress)
    _write(outcome, out)


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
    from earshot_simulations.reproductions import liebenow_9_2
    from earshot_simulations.reproductions.outcome import files_of

    dataset, whose = open_dataset(data), open_encoder(encoder)
    prepare_folder(out, files_of("liebenow-9.2"), overwrite)
    with shown() as progress:
        outcome = liebenow_9_2.reproduce(dataset, whose, cache, progress)
    _write(outcome, out)


def _write(outcome: Outcome, folder: Path) -> None:
    from earshot_simulations.reproductions.outcome import write

    for path in write(outcome, folder):
        print(path)
