"""`earshot sweep`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from earshot_models.commands.output import prepare_folder
from earshot_simulations.reporting.resuming import resumable

if TYPE_CHECKING:
    from earshot_simulations.sweeps.estimate import Estimate
    from earshot_simulations.sweeps.table import SweepTable

app = App()


# A single command, not a group, so that options may follow an argument.


@app.default
def sweep(
    file: Path,
    /,
    *,
    out: Path,
    jobs: int = os.cpu_count() or 1,
    overwrite: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Simulate a grid or a list of settings, each under several seeds (docs/research.md).

    Args:
        file: TOML file with seeds, [settings], and [grid] or [[list]].
        out: Folder for the table and the page; an interrupted sweep there continues.
        jobs: Runs at a time.
        overwrite: Write even to a folder that holds other files.
        as_json: Print one JSON object, and nothing else.
    """
    from earshot_simulations.populations.hearing import hearing_kept
    from earshot_simulations.sweeps.plan import read
    from earshot_simulations.sweeps.results import FILES, PAGE, done
    from earshot_simulations.sweeps.table import CSV, PARQUET, SHOWN

    plan = read(file)
    prepare_folder(out, FILES, overwrite, resumes=FILES)
    with hearing_kept(), resumable(out) as progress:
        found = done(plan, out, jobs, progress)
    if as_json:
        print(json.dumps(_plain(found), indent=2, allow_nan=False))
        return
    for place, arm in enumerate(plan.arms):
        print(", ".join(f"{name} {value}" for name, value in arm.labels.items()) or "all runs")
        for metric in SHOWN:
            print(f"  {metric.replace('_', ' '):<22} {found.estimates(metric)[place]}")
    if found.failures:
        print(f"{found.failures} of {plan.runs} runs failed and count as 0")
    for name in (CSV, PARQUET, PAGE):
        print(out / name)


def _plain(found: SweepTable) -> dict[str, Any]:
    from earshot_simulations.phases.run import INFINITE, plain

    columns = {metric: found.estimates(metric) for metric in found.metrics}
    return {
        "runs": found.plan.runs,
        "failures": found.failures,
        "seeds": found.plan.seeds,
        "settings": plain(found.plan.shared, INFINITE),
        "points": [
            {
                "settings": plain(arm.labels, INFINITE),
                "figures": {
                    metric: None if each is None else _interval(each)
                    for metric, column in columns.items()
                    for each in (column[place],)
                },
            }
            for place, arm in enumerate(found.plan.arms)
        ],
    }


def _interval(found: Estimate) -> dict[str, Any]:
    from earshot_simulations.phases.run import plain

    return {"mean": plain(found.mean), "interval_95": found.ends}
