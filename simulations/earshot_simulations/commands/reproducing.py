"""What the commands of `earshot reproduce` share: options, and runs that go on where they ended."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from earshot_models.commands.progress import shown
from earshot_protocol.progress import Progress

if TYPE_CHECKING:
    from earshot_simulations.reproductions.outcome import Outcome

WORK = "work"
"""Folder, in --out, of what an interrupted run goes on from."""
SHARED = Path("../shared/data")
"""Where a checkout of ours has data sets beside it."""

Out = Annotated[
    Path, typer.Option(help="New folder for the CSV, the picture and the Markdown note.")
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace these files where --out has them.")
]
Sounds = Annotated[
    Path, typer.Option(help="Folder that holds esc10, fsdd and perhaps free_sounds.")
]


@contextmanager
def resumable(folder: Path) -> Iterator[Progress]:
    """Progress of a run whose interruption is no failure.

    Args:
        folder: of what is done; made if it is not there, named when the run is interrupted.

    Raises:
        SystemExit: with 130, the run was interrupted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with shown() as progress:
            yield progress
    except KeyboardInterrupt:
        print(f"what is done is in {folder}; the same command goes on from there")
        sys.exit(130)


def written(outcome: Outcome, folder: Path) -> None:
    """Write an outcome's files and say where they are."""
    from earshot_simulations.reproductions.outcome import write

    for path in write(outcome, folder):
        print(path)
