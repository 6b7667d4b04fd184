"""`earshot simulate --repeat`."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from earshot_protocol.errors import InvalidInputError
from earshot_server.commands.routes import given
from earshot_simulations.commands.running import run_and_write, summarize
from earshot_simulations.learning.differences import WHERE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from earshot_simulations.learning.differences import Pair

_BESIDE = WHERE | {"repeat", "out", "overwrite", "as_json"}
"""What may be given with it: where it runs and what is kept, nothing of what is done."""
_MOST_SHOWN = 10


def repeated(
    context: typer.Context,
    kept: Path,
    where: Mapping[str, Any],
    out: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Do a kept run again, and say whether it came to the same result, bit for bit.

    Args:
        context: of the command.
        kept: its `result.json`, or the folder of it.
        where: it runs this time, by the names of `WHERE`.
        out: as for a run.
        overwrite: as for a run.
        as_json: whether to print JSON, and nothing else.

    Raises:
        InvalidInputError: another option is given, or the run cannot be repeated; see
            `learning.repetition.repeatable`.
        typer.Exit: with 1, the result differs.
    """
    others = given(context) - _BESIDE
    if others:
        written = {str(each.name): each.opts[0] for each in context.command.params}
        raise InvalidInputError(
            f"{', '.join(sorted(written[name] for name in others))}: not with --repeat, which "
            f"takes all settings from {kept}; leave it out, or run without --repeat"
        )
    from earshot_simulations.learning.repetition import outcome, repeatable
    from earshot_simulations.learning.run import result
    from earshot_simulations.learning.written import read

    then = read(kept)
    settings, changed = repeatable(then)
    if changed:
        print(f"other than then: {_named(changed)}; figures may differ", file=sys.stderr)
    run = run_and_write(replace(settings, **where), out, overwrite)
    now = result(run)
    differs = outcome(then, now)
    if as_json:
        pairs = {name: {"then": pair[0], "now": pair[1]} for name, pair in differs.items()}
        told = {"same": not differs, "differs": pairs, "result": now}
        print(json.dumps(told, indent=2, allow_nan=False))
    else:
        summarize(now, out)
        print(f"{'repeated':<22} {_named(differs) if differs else 'the same, bit for bit'}")
    if differs or run.interrupted:
        raise typer.Exit(1)


def _named(pairs: Mapping[str, Pair]) -> str:
    shown = [f"{name} was {then}, is {now}" for name, (then, now) in pairs.items()]
    more = [f"and {len(shown) - _MOST_SHOWN} more"] if len(shown) > _MOST_SHOWN else []
    return "; ".join(shown[:_MOST_SHOWN] + more)
