"""Run a study: prepare its folder, resume what an earlier run kept, and write its files."""

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
"""Name of the folder in --out from which an interrupted run resumes."""


def make(
    name: str,
    out: Path,
    overwrite: bool,
    outcome: Callable[[Progress], Reproduction],
    *,
    keeps: Path | None = None,
    resumes: Sequence[str] = (WORK,),
) -> None:
    """Run or resume a study, write its files and print their paths.

    Args:
        name: Name of the study and of its files.
        out: Folder of these files.
        overwrite: Whether to replace existing files.
        outcome: Function that runs the study.
        keeps: Folder from which an interrupted run resumes; None if nothing is kept.
        resumes: Names in `out` that an interrupted run may leave there.
    """
    from earshot_studies.kit.outcome import files_of, write

    prepare_folder(out, files_of(name), overwrite, resumes=resumes)
    with shown() if keeps is None else resumable(keeps) as progress:
        found = outcome(progress)
    for path in write(found, out):
        print(path)
