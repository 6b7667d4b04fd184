"""`earshot simulate --repeat`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from earshot_protocol.errors import InvalidInputError
from earshot_server.commands.routes import given
from earshot_simulations.commands.running import print_each, run_and_write, summarize
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
        kept: its `result.json`, or the folder of it; or that of a run of both routes.
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
    from earshot_simulations.learning.written import read_each

    kept_runs = read_each(kept)
    asked = {}
    for route, each in kept_runs.items():
        settings, changed = repeatable(each)
        asked[route] = replace(settings, **where)
        if changed:
            print(f"other than then: {_named(changed)}; figures may differ", file=sys.stderr)
    runs = run_and_write(asked, out, overwrite)
    now = {route: result(run) for route, run in runs.items()}
    differs = {route: outcome(kept_runs[route], figures) for route, figures in now.items()}
    if as_json:
        told = {route: _plain(differs[route], figures) for route, figures in now.items()}
        print_each(told)
    else:
        summarize(now, out)
        same = [_named(pairs) if pairs else "the same, bit for bit" for pairs in differs.values()]
        print(f"{'repeated':<22} {'; '.join(dict.fromkeys(same))}")
    if any(differs.values()) or any(run.interrupted for run in runs.values()):
        raise typer.Exit(1)


def _plain(differs: Mapping[str, Pair], now: Mapping[str, Any]) -> dict[str, Any]:
    pairs = {name: {"then": pair[0], "now": pair[1]} for name, pair in differs.items()}
    return {"same": not differs, "differs": pairs, "result": now}


def _named(pairs: Mapping[str, Pair]) -> str:
    shown = [f"{name} was {then}, is {now}" for name, (then, now) in pairs.items()]
    more = [f"and {len(shown) - _MOST_SHOWN} more"] if len(shown) > _MOST_SHOWN else []
    return "; ".join(shown[:_MOST_SHOWN] + more)
