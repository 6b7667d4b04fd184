"""Commands of the figures of the thesis, and of three figures of our own."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from earshot_studies.kit.making import make
from earshot_studies.kit.options import described

if TYPE_CHECKING:
    from earshot_protocol.progress import Progress
    from earshot_studies.kit.outcome import Reproduction

_ENCODERS = "encoders"


def linear_accuracy(
    *,
    data: Path,
    out: Path,
    other: list[Path] | None = None,
    steps: int | None = None,
    overwrite: bool = False,
    cache: Path | None = None,
) -> None:
    """Compare linear accuracy by training set, and by pre-processing. Trains many encoders.

    Args:
        data: Folder of the labelled data set that is measured.
        out: New folder for the CSV, the picture and the Markdown note.
        other: Folder of other sound to train on; may be repeated.
        steps: Number of batches for which each encoder is trained.
        overwrite: Replace these files where --out has them.
        cache: Folder that keeps decoded sound between runs.
    """
    from earshot_models.datasets.opening import open_dataset
    from earshot_models.recipe import Recipe
    from earshot_studies.liebenow import encoders

    dataset = open_dataset(data)
    others = [open_dataset(folder) for folder in other or ()]
    recipe = Recipe()
    if steps is not None:
        recipe = replace(recipe, schedule=replace(recipe.schedule, steps=steps))
    folder = out / _ENCODERS

    def outcome(progress: Progress) -> Reproduction:
        return encoders.linear_accuracy(dataset, others, folder, recipe, cache, progress)

    make(encoders.LINEAR_ACCURACY, out, overwrite, outcome, keeps=folder, resumes=[_ENCODERS])


def embedding_space(
    *,
    data: Path,
    out: Path,
    encoder: str | None = None,
    overwrite: bool = False,
    cache: Path | None = None,
) -> None:
    """Show an embedding space by PCA and t-SNE.

    Args:
        data: Folder of the labelled data set that is shown.
        out: New folder for the CSV, the picture and the Markdown note.
        encoder: Encoder file, or the name of a shipped encoder; by default the shipped default.
        overwrite: Replace these files where --out has them.
        cache: Folder that keeps decoded sound between runs.
    """
    from earshot_client.encoder import open_encoder
    from earshot_models.datasets.opening import open_dataset
    from earshot_studies.liebenow import encoders

    dataset, whose = open_dataset(data), open_encoder(encoder)

    def outcome(progress: Progress) -> Reproduction:
        return encoders.embedding_space(dataset, whose, cache, progress)

    make(encoders.EMBEDDING_SPACE, out, overwrite, outcome, resumes=())


def _figure(name: str, shown: str, *without: str) -> Callable[..., None]:
    """Return the command that makes a figure by simulating whole phases.

    Args:
        name: Name of the figure.
        shown: Help text of the command.
        without: Options that the figure does not take, such as the size along its axis.
    """

    def figure(
        *,
        out: Path,
        data: Path | None = None,
        encoder: str | None = None,
        phones: int | None = None,
        recordings: int | None = None,
        seeds: int | None = None,
        full: bool = False,
        jobs: int = os.cpu_count() or 1,
        overwrite: bool = False,
    ) -> None:
        from earshot_protocol.errors import InvalidInputError
        from earshot_simulations.engine.processes import check_processes
        from earshot_simulations.sweeps.rows import FILE
        from earshot_studies.liebenow.contenders import ReproductionSetup
        from earshot_studies.liebenow.figures import FIGURES

        figure = FIGURES[name]
        given = {"phones": phones, "recordings": recordings, "seeds": seeds}
        chosen = {size: value for size, value in given.items() if value is not None}
        if encoder is not None and data is None:
            raise InvalidInputError("--encoder: there is no sound; name its folder with --data")
        size = replace(figure.full if full else figure.soon, **chosen)
        processes = check_processes("jobs", jobs)

        def outcome(progress: Progress) -> Reproduction:
            setup = ReproductionSetup(size, out / FILE, data, encoder, processes, progress)
            return figure.make(setup, full)

        make(name, out, overwrite, outcome, keeps=out, resumes=[FILE])

    described(figure, shown, _OPTIONS, *without)
    return figure


_OPTIONS = """
    Args:
        out: New folder for the CSV, the picture and the Markdown note.
        data: Folder of sound that phones hear, beside blobs; by default no sound.
        encoder: Encoder of that sound: a file, or the name of a shipped encoder.
        phones: Number of phones in every phase.
        recordings: Average number of recordings of a phone.
        seeds: Number of phases of every kind, each with its own seed.
        full: Simulate large crowds, many seeds and many points, which takes hours.
        jobs: Number of phases at a time.
        overwrite: Replace these files where --out has them.
    """
_TIMED = ("phones", "jobs")  # one phase at a time, so that no other disturbs its timing
FIGURES = {
    name: _figure(name, *told)
    for name, told in {
        "liebenow-9.3a": ("Compare clustering of heard and of unheard recordings.",),
        "liebenow-9.3b": (
            "Show clustering by the number of recordings of a phone.",
            "recordings",
        ),
        "liebenow-9.4": ("Show right names by the fraction of recordings that are labelled.",),
        "liebenow-9.5a": ("Time every operation by phones, with real cryptography.", *_TIMED),
        "liebenow-9.5b": (
            "Show incoming traffic of the server by phones: measured, computed, the thesis's.",
            *_TIMED,
        ),
        "liebenow-9.6": ("Show privacy and utility by the ε of each operation.",),
        "liebenow-10.1": ("Show the effect of each setting of both routes, one at a time.",),
        "growing-crowd": (
            "Show the accuracy of both routes by the number of phones.",
            "phones",
        ),
        "phone-unit": (
            "Show the accuracy of discovery by secure sum, by ε per phone and number of phones.",
            "phones",
        ),
        "names": (
            "Show how well a discovery phase names sound, also under wrong labels and attacks.",
            "phones",
        ),
    }.items()
}
"""Commands by name, for the figures of `figures.FIGURES`."""
