"""A whole sweep: the missing runs, then one table and one page of all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from earshot_client.encoder import Encoder
from earshot_protocol import distribution
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import replace_file
from earshot_protocol.progress import Progress, silent
from earshot_server.discovery.interface import CentroidDiscovery
from earshot_simulations.adversary.attack import Attack
from earshot_simulations.engine.processes import check_processes
from earshot_simulations.engine.states import NO_ROOM
from earshot_simulations.own_code import OwnCodeError
from earshot_simulations.phases.own import Own
from earshot_simulations.phases.settings import Settings, entries_of
from earshot_simulations.populations import Population
from earshot_simulations.sweeps import table
from earshot_simulations.sweeps.plan import NOT_VARIED, SweepPlan
from earshot_simulations.sweeps.rows import FILE, opened
from earshot_simulations.sweeps.sweep import measured
from earshot_simulations.sweeps.table import SweepTable
from earshot_simulations.versions import check_version

PAGE = "sweep.html"
FILES = (FILE, table.CSV, table.PARQUET, PAGE)
"""All files of a sweep; an interrupted sweep continues from the first."""


def sweep(
    base: Settings,
    points: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]],
    folder: str | os.PathLike[str],
    *,
    seeds: int | Iterable[int] = 5,
    processes: int = 1,
    progress: Progress = silent,
    population: Population | None = None,
    clustering: CentroidDiscovery | None = None,
    attack: Attack | None = None,
    encoder: Encoder | None = None,
) -> SweepTable:
    """Simulate every point with every seed, and write one table and one page of all.

    Args:
        base: Settings that all runs share; its seed and its processes are ignored.
        points: `{"epsilon": [2.0, 8.0], "labelled": [0.1, 0.3]}` for all combinations, or a list
            such as `[{"epsilon": 2.0}, {"epsilon": 8.0, "labelled": 0.1}]`. Values may also be an
            array, a column of a data frame or a range. Names are those of
            `Settings`, dotted within one: `heterogeneity.concentration`.
        folder: Folder, created if it does not exist. Runs that it holds are not repeated, so an
            interrupted sweep continues, and one with more points or seeds than before adds them.
        seeds: Number of seeds, from 0 on; or the seeds.
        processes: Number of runs at a time. The result does not depend on it.
        progress: Callback that receives the number of finished runs.
        population: Population of one's own of every run, as in `simulate`. This and the following
            need a `key`, by which finished runs are known.
        clustering: Clustering of one's own, as in `simulate`.
        attack: Attack of one's own, as in `simulate`.
        encoder: Encoder of one's own, as in `simulate`.

    Returns:
        All figures, which `table.csv`, `table.parquet` and `sweep.html` in the folder also hold.

    Raises:
        MissingExtraError: The extra `tables` is not installed; raised before any work.
        InvalidParametersError: Points, seeds or settings cannot be simulated; raised before any
            work.
        OtherVersionError: The folder holds runs of another version of Earshot.
        InvalidInputError: The folder holds runs of another sweep, another process is writing it,
            or the disk is full; finished runs are kept.
        OwnCodeError: Something of one's own raised, or returned what cannot be used; finished runs
            are kept, and the same call continues.
        KeyboardInterrupt: The sweep was interrupted; finished runs are kept.
    """
    distribution.require("sweep", ("tables",))
    base.check_types()
    own = Own(population, clustering, attack, encoder)
    own.check_copies(check_processes("processes", processes), own.given)
    entries = entries_of(base)
    shared = {name: entries[name] for name in entries if name not in NOT_VARIED}
    return done(SweepPlan.of(shared, points, seeds, own), folder, processes, progress)


def done(
    plan: SweepPlan,
    folder: str | os.PathLike[str],
    processes: int = 1,
    progress: Progress = silent,
) -> SweepTable:
    """Run a planned sweep, as `sweep`."""
    folder, processes = Path(folder), check_processes("processes", processes)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _refuse_others(plan, folder / FILE)
        found = SweepTable(plan, tuple(measured(plan.arms, folder / FILE, processes, progress)))
        table.write(found, folder)

        from earshot_simulations.sweeps.page import render

        replace_file(folder / PAGE, render(found))
    except OwnCodeError as error:
        error.add_note(
            f"{folder / FILE} keeps the runs that had finished, and the same sweep continues from "
            "there. If your change alters them, too, change the key."
        )
        raise
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise InvalidInputError(
                f"{folder}: that sweep has failed ({error}); finished runs are in {FILE}, and the "
                "same command continues from there"
            ) from error
        raise InvalidInputError(
            f"{folder}: this machine has no room for that sweep ({error}); finished runs are in "
            f"{FILE}: make room, and the same command continues from there"
        ) from error
    return found


def _refuse_others(plan: SweepPlan, file: Path) -> None:
    """Refuse a file with runs outside this sweep, whose table would be incomplete."""
    with opened(file) as rows:
        for version in sorted(set(rows.versions.values())):
            check_version(file, version)
        asked = {phase.key for arm in plan.arms for phase in arm.measurements()}
        others = len(rows.versions.keys() - asked)
    if others:
        raise InvalidInputError(
            f"{file}: holds {others} runs that are not in this sweep; name another folder, or give "
            "the sweep file that it was made by (points and seeds may be added to it, but not "
            "removed)"
        )
