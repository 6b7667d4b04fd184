"""`earshot reproduce`."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from earshot_models.commands.progress import shown

if TYPE_CHECKING:
    from earshot_simulations.reproductions.outcome import Outcome

app = typer.Typer(add_completion=False)

Data = Annotated[Path, typer.Option(help="Folder of the labelled data set that is measured.")]
Out = Annotated[Path, typer.Option(help="Folder for the CSV, the picture and the Markdown note.")]
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
    cache: Cache = None,
) -> None:
    """Linear accuracy by training set, and by pre-processing. Trains many encoders."""
    from earshot_models.datasets.opening import open_dataset
    from earshot_models.recipe import Recipe
    from earshot_simulations.reproductions import liebenow_9_1

    dataset = open_dataset(data)
    others = [open_dataset(folder) for folder in other or ()]
    recipe = Recipe()
    if steps is not None:
        recipe = replace(recipe, schedule=replace(recipe.schedule, steps=steps))
    with shown() as progress:
        outcome = liebenow_9_1.reproduce(dataset, others, out / "encoders", recipe, cache, progress)
    _write(outcome, out)


@app.command("liebenow-9.2")
def embedding_space(
    data: Data,
    out: Out,
    encoder: Annotated[
        Path | None, typer.Option(help="Encoder file; by default the shipped one.")
    ] = None,
    cache: Cache = None,
) -> None:
    """An embedding space by PCA and t-SNE."""
    from earshot_client.encoder import default_encoder
    from earshot_client.lite_rt_encoder import LiteRtEncoder
    from earshot_models.datasets.opening import open_dataset
    from earshot_simulations.reproductions import liebenow_9_2

    whose = default_encoder() if encoder is None else LiteRtEncoder.open(encoder)
    with shown() as progress:
        outcome = liebenow_9_2.reproduce(open_dataset(data), whose, cache, progress)
    _write(outcome, out)


def _write(outcome: Outcome, folder: Path) -> None:
    from earshot_simulations.reproductions.outcome import write

    for path in write(outcome, folder):
        print(path)
