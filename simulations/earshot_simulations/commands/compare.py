"""`earshot compare`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from earshot_simulations.phases.kept import Pair, RunComparison

app = App()

_WIDE = 24
_NOTHING = "–"

Run = Annotated[Path, Parameter(help="File result.json of a run, or its folder.")]


# A single command, not a group, so that options may follow an argument.


@app.default
def compare(
    a: Run, b: Run, /, *, as_json: Annotated[bool, Parameter(name="--json")] = False
) -> None:
    """Compare two simulated phases: what differs in their settings, then their figures.

    Args:
        as_json: Print one JSON object, and nothing else.
    """
    from earshot_simulations.phases.kept import compare as compared
    from earshot_simulations.phases.kept import read

    found = compared(read(a), read(b))
    if as_json:
        print(json.dumps(found.plain(), indent=2, allow_nan=False))
        return
    for line in _lines(found, a, b):
        print(line.rstrip())


def _lines(found: RunComparison, a: Path, b: Path) -> Iterable[str]:
    yield f"A is {a}"
    yield f"B is {b}"
    yield from _differing("settings", found.settings)
    yield from _differing("versions and files", found.provenance)
    yield ""
    yield _row("figures", "A", "B", "B − A")
    for name, pair in found.figures.items():
        less = found.difference(name)
        shown = _NOTHING if less is None else f"{less:+.4g}" if less else "0"
        yield _row(name.replace("_", " "), *map(_short, pair), shown)
    for run, ended in zip("AB", found.ended, strict=True):
        if ended is not None:
            yield f"{run} ended early: {ended}"
    if found.across:
        yield "different routes: local protects a recording, secure-sum a phone; places are counted"
        yield "as centroids by one, as labels and prototypes by the other: no difference is taken"
    if found.same:
        yield "nothing differs, bit for bit, but time and memory"
    elif found.settings:
        yield "one run each: a difference may be chance; earshot sweep gives intervals over seeds"


def _differing(what: str, pairs: Mapping[str, Pair]) -> Iterable[str]:
    yield ""
    if not pairs:
        yield f"{what}: nothing differs"
        return
    yield _row(what, "A", "B")
    for name, pair in pairs.items():
        yield _row(name, *map(_short, pair))


def _row(name: str, *cells: str) -> str:
    return f"{name:<28}" + "".join(f"{cell:<{_WIDE}}" for cell in cells)


def _short(value: Any) -> str:
    if value is None:
        return _NOTHING
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return text if len(text) < _WIDE else text[: _WIDE - 2] + "…"
