"""`earshot simulate labelling`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from earshot_models.commands.output import prepare_folder
from earshot_models.commands.progress import shown
from earshot_simulations.labelling.settings import Settings


def labelling(
    *,
    settings: Annotated[Settings, Parameter(name="*")] = Settings(),  # noqa: B008 - it is frozen
    out: Path | None = None,
    overwrite: bool = False,
    as_json: Annotated[bool, Parameter(name="--json")] = False,
) -> None:
    """Run one labelling phase over simulated phones: public samples get labels.

    Args:
        out: New folder for result.json and report.html.
        overwrite: Replace these two files where --out has them.
        as_json: Print result.json, and nothing else.
    """
    settings.check()

    from earshot_simulations.labelling.page import figures, headline, write
    from earshot_simulations.labelling.simulation import result, simulate
    from earshot_simulations.phases.report import FILES

    if out is not None:
        prepare_folder(out, FILES, overwrite)
    with shown() as progress:
        run = simulate(settings, progress)
    if out is not None:
        write(run, out)
    if as_json:
        print(json.dumps(result(run), indent=2, allow_nan=False))
        return
    print(headline(run))
    for name, value in figures(run.scores).items() if run.scores else ():
        print(f"{name:<22} {value}")
    if out is not None:
        print(f"{'report':<22} {out / 'report.html'}")
    if run.failure is not None:
        sys.exit(1)
