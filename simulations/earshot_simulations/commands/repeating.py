"""`earshot simulate --repeat`."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earshot_protocol.errors import InvalidInputError
from earshot_simulations.commands.running import print_each, run_and_write, summarize

if TYPE_CHECKING:
    from collections.abc import Mapping
    from collections.abc import Set as AbstractSet

    from earshot_simulations.phases.kept import Pair

_MOST_SHOWN = 10


def repeated(
    kept: Path,
    others: AbstractSet[str],
    where: Mapping[str, Any],
    out: Path | None,
    overwrite: bool,
    as_json: bool,
) -> None:
    """Do a kept run again, and say whether it came to the same result, bit for bit.

    Args:
        kept: the run's `result.json`, or its folder; or that of a run of both routes.
        others: names of settings that are given beside it, which it does not take.
        where: engine, address and jobs of the repetition, by the names of `WHERE`.
        out: folder of the repetition's files; None to keep nothing.
        overwrite: whether these may be replaced.
        as_json: whether to print JSON, and nothing else.

    Raises:
        InvalidInputError: another setting is given, or the run cannot be repeated; see
            `learning.repetition.repeatable`.
        SystemExit: with 1, the result differs.
    """
    if others:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in sorted(others))
        raise InvalidInputError(
            f"{named}: not with --repeat, which "
            f"takes all settings from {kept}; leave it out, or run without --repeat"
        )
    from earshot_simulations.phases.kept import outcome, read_each, repeatable
    from earshot_simulations.phases.run import result

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
        sys.exit(1)


def _plain(differs: Mapping[str, Pair], now: Mapping[str, Any]) -> dict[str, Any]:
    pairs = {name: {"then": pair[0], "now": pair[1]} for name, pair in differs.items()}
    return {"same": not differs, "differs": pairs, "result": now}


def _named(pairs: Mapping[str, Pair]) -> str:
    shown = [f"{name} was {then}, is {now}" for name, (then, now) in pairs.items()]
    more = [f"and {len(shown) - _MOST_SHOWN} more"] if len(shown) > _MOST_SHOWN else []
    return "; ".join(shown[:_MOST_SHOWN] + more)
