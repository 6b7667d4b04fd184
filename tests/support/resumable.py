"""Everything that resumes, behind one function each, and a process that is killed everywhere.

`python -m support.resumable FOLDER` prints how often each owner was killed, and what was wrong
after that, as JSON. It forks, so it is a process of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

import numpy as np

from earshot_models.votes.tally import journal as labellings
from earshot_models.votes.tally.interface import Answers
from earshot_protocol import journal
from earshot_simulations.phases.settings import Settings
from earshot_simulations.sweeps import rows
from earshot_simulations.sweeps.rows import Figures
from earshot_simulations.sweeps.sweep import Arm, Measure, measured
from earshot_studies.kit.kept import Kept
from earshot_studies.pate_aae.generators.checkpoint import Checkpoint
from support.kills import dying, in_child, moments

Make = Callable[[int], int]
Run = Callable[[Path, str, int, Make], list[int]]
"""Make some first items of an identity, except those that a folder holds, and return them all."""

ITEMS = 3


def _lines(folder: Path, identity: str, items: int, make: Make) -> list[int]:
    with journal.opened(folder / FILES["lines"]) as kept:
        found = [line.read(int, "not a number") for line in kept.lines]
        for item in range(len(found), items):
            made = make(item)
            kept.append(str(made))
            found.append(made)
    return found


def _sweep(folder: Path, identity: str, items: int, make: Make) -> list[int]:
    def measure(settings: Settings) -> Figures:
        return {"value": make(settings.seed)}

    seeds = tuple(replace(Settings(), seed=item) for item in range(items))
    (found,) = measured([Arm({}, Measure(identity, measure), seeds)], folder / FILES["sweep"])
    return [int(each["value"] or 0) for each in found]


def _labelling(folder: Path, identity: str, items: int, make: Make) -> list[int]:
    with labellings.opened(folder / FILES["labelling"], {"name": identity}) as kept:
        while kept.asked < items:
            kept.append(Answers(np.array([make(kept.asked)]), ()))
        return [int(each) for block in kept.blocks for each in block.outcomes]


def _kept_rows(folder: Path, identity: str, items: int, make: Make) -> list[int]:
    def kept(item: int) -> int:
        settings = [identity, item]
        (row,) = Kept(folder).rows("item", settings, lambda: [{"value": make(item)}])
        return int(row["value"])

    return [kept(item) for item in range(items)]


def _kept_arrays(folder: Path, identity: str, items: int, make: Make) -> list[int]:
    def kept(item: int) -> int:
        settings = [identity, item]
        arrays = Kept(folder).arrays("item", settings, lambda: {"value": np.array(make(item))})
        return int(arrays["value"])

    return [kept(item) for item in range(items)]


def _checkpoint(folder: Path, identity: str, items: int, make: Make) -> list[int]:
    kept = Checkpoint(folder / FILES["checkpoint"], {"name": identity}, 1)
    state, done = kept.restored(np.zeros(items, np.int32))
    found = np.array(state)
    for item in range(done, items):
        found[item] = make(item)
        kept.save(found, item + 1)
    return found.tolist()


FILES = {
    "lines": "lines",
    "sweep": rows.FILE,
    "labelling": labellings.FILE,
    "checkpoint": "checkpoint",
}
"""Files of owners that have one."""
RUNS: dict[str, Run] = {
    "lines": _lines,
    "sweep": _sweep,
    "labelling": _labelling,
    "kept rows": _kept_rows,
    "kept arrays": _kept_arrays,
    "checkpoint": _checkpoint,
}
JOURNALS = ("lines", "sweep", "labelling")
SEVERAL = ("sweep", "kept rows", "kept arrays")
"""Owners that keep several identities side by side."""


def made(item: int) -> int:
    """Return what an item should be."""
    return 7 * item + 100


def refused(item: int) -> int:
    """Fail, since an item that is kept is made again."""
    raise AssertionError(f"item {item} is made again")


class Making:
    """Makes items and remembers which, in a file where a killed process left some."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __call__(self, item: int) -> int:
        with self.path.open("a") as file:
            file.write(f"{item}\n")
        return made(item)

    @property
    def items(self) -> list[int]:
        """Items that were made, in order."""
        return [int(each) for each in self.path.read_text().split()] if self.path.exists() else []


class Seen(TypedDict):
    """What became of an owner that was killed at each moment.

    Attributes:
        kills: Their number.
        wrong: What should not have been.
    """

    kills: int
    wrong: list[str]


def _seen(run: Run, folder: Path) -> Seen:
    whole = folder / "whole"
    whole.mkdir(parents=True)
    _, every = in_child(lambda: moments(lambda: run(whole, "a", ITEMS, made)))
    wrong = [
        f"{number}-{moment}: {each}"
        for number, moment in every
        for each in _wrong(run, folder / f"{number}-{moment}", number, moment, _contents(whole))
    ]
    return {"kills": len(every), "wrong": wrong}


def _wrong(
    run: Run, folder: Path, number: int, moment: str, whole: dict[str, bytes]
) -> Iterator[str]:
    """Kill a run at a moment, go on with it, and yield what should not be."""
    folder.mkdir()
    making = Making(folder.with_name(f"{folder.name}.made"))

    def killed() -> None:
        with dying(number, moment):
            run(folder, "a", ITEMS, making)

    if not in_child(killed)[0]:
        yield "it lived"
    before = making.items
    _, found = in_child(lambda: run(folder, "a", ITEMS, making))
    after = making.items[len(before) :]
    if found != [made(item) for item in range(ITEMS)]:
        yield f"found {found}"
    again = len(before) + len(after) - ITEMS
    if [*before, *after[again:]] != list(range(ITEMS)) or after[:again] not in ([], before[-1:]):
        yield f"made {before} and then {after}"
    if _contents(folder) != whole:
        yield "other files than without a kill"


def _contents(folder: Path) -> dict[str, bytes]:
    """Contents of all files but the drafts that killed processes left."""
    return {
        path.name: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")
    }


if __name__ == "__main__":
    print(json.dumps({owner: _seen(run, Path(sys.argv[1], owner)) for owner, run in RUNS.items()}))
