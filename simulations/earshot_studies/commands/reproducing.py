"""What the commands of `earshot reproduce` share: options, and files that are written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from earshot_studies.kit.outcome import Outcome

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


def written(outcome: Outcome, folder: Path) -> None:
    """Write an outcome's files and say where they are."""
    from earshot_studies.kit.outcome import write

    for path in write(outcome, folder):
        print(path)
