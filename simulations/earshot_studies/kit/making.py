"""The making of a study's outcome: a folder for its files, and one from which a run resumes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_protocol.progress import Progress
from earshot_simulations.reporting.resuming import resumable

if TYPE_CHECKING:
    from earshot_studies.kit.outcome import Reproduction

WORK = "work"
"""Name of the folder, in --out, from which an interrupted run goes on."""


def make(
    name: str,
    out: Path,
    overwrite: bool,
    outcome: Callable[[Progress], Reproduction],
    *,
    keeps: Path | None = None,
    resumes: Sequence[str] = (WORK,),
) -> None:
    """Make an outcome, or go on with it, write its files and say where they are.

    Args:
        name: Name of the study; its files are called by it.
        out: Folder of these files.
        overwrite: Whether they may be replaced there.
        outcome: Function that makes the outcome.
        keeps: Folder from which an interrupted run goes on; None where nothing is kept.
        resumes: Names in `out` of what such a run leaves there.
    """
    from earshot_studies.kit.outcome import files_of, write

    prepare_folder(out, files_of(name), overwrite, resumes=resumes)
    with shown() if keeps is None else resumable(keeps) as progress:
        found = outcome(progress)
    for path in write(found, out):
        print(path)
