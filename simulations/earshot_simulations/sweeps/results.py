"""A whole sweep: every run that is not done yet, then one table and one page of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from earshot_models.commands.progress import Progress
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_simulations.engine.processes import check_processes
from earshot_simulations.learning.configuration import entries_of
from earshot_simulations.learning.provenance import check_version
from earshot_simulations.learning.settings import Settings
from earshot_simulations.sweeps import table
from earshot_simulations.sweeps.plan import NOT_VARIED, Plan
from earshot_simulations.sweeps.rows import FILE, opened
from earshot_simulations.sweeps.sweep import measured
from earshot_simulations.sweeps.table import Table

PAGE = "sweep.html"
FILES = (FILE, table.CSV, table.PARQUET, PAGE)
"""All that a sweep writes; the first is what an interrupted one goes on from."""


def _no_progress(what: str, done: int, total: int, line: str | None = None) -> None:
    """Tell nobody."""


def sweep(
    base: Settings,
    points: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Any]],
    folder: Path,
    *,
    seeds: int | Sequence[int] = 5,
    processes: int = 1,
    progress: Progress = _no_progress,
) -> Table:
    """Simulate every point with every seed, and keep one table and one page of all.

    Args:
        base: what all runs share; its seed and its processes are not looked at.
        points: `{"epsilon": [2.0, 8.0], "labelled": [0.1, 0.3]}` for all combinations, or a list
            such as `[{"epsilon": 2.0}, {"epsilon": 8.0, "labelled": 0.1}]`. Names are those of
            `Settings`, dotted within one: `heterogeneity.concentration`.
        folder: made if it is not there. Runs that it holds are not done again, so that a sweep that
            was interrupted goes on, and one that has more points or seeds than before adds them.
        seeds: how many, from 0 on; or which.
        processes: runs at a time. The result does not depend on it.
        progress: told how many runs are done.

    Returns:
        All figures, which `table.csv`, `table.parquet` and `sweep.html` in the folder hold, too.

    Raises:
        InvalidParametersError: points, seeds or settings that cannot be simulated; before any work.
        OtherVersionError: the folder holds runs of another version of Earshot.
        InvalidInputError: it holds runs of another sweep, another process is writing it, or the
            disk is full; what is finished is kept.
        KeyboardInterrupt: the sweep was interrupted; what is finished is kept.
    """
    entries = entries_of(base)
    shared = {name: entries[name] for name in entries if name not in NOT_VARIED}
    return done(Plan.of(shared, points, seeds), folder, processes, progress)


def done(plan: Plan, folder: Path, processes: int = 1, progress: Progress = _no_progress) -> Table:
    """The same for a plan, see `sweep`."""
    check_processes("processes", processes)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _refuse_others(plan, folder / FILE)
        found = Table(plan, tuple(measured(plan.arms, folder / FILE, processes, progress)))
        table.write(found, folder)

        from earshot_simulations.sweeps.page import render

        replace_file(folder / PAGE, render(found))
    except OSError as error:
        raise InvalidInputError(
            f"{folder}: this machine has no room for that sweep ({error}); what is finished is in "
            f"{FILE}: make room, and the same command goes on from there"
        ) from error
    return found


def _refuse_others(plan: Plan, file: Path) -> None:
    """Refuse a file with runs that this sweep does not ask for: its table would not be whole."""
    with opened(file) as rows:
        for version in sorted(set(rows.versions.values())):
            check_version(file, version)
        asked = {phase.key for arm in plan.arms for phase in arm.measurements()}
        others = len(rows.versions.keys() - asked)
    if others:
        raise InvalidInputError(
            f"{file}: holds {others} runs that this sweep does not ask for, so they are of another "
            "one; name another folder, or give the sweep file that it was made by (points and "
            "seeds may be added to it, and none taken away)"
        )
