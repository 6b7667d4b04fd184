"""A labelling that is killed at every call that changes the disk, and goes on each time.

`python -m support.killed_labelling central|federated FOLDER` prints what it saw as JSON. It forks,
so it is a process of its own.
"""

from __future__ import annotations

import json
import shutil
import sys
from functools import partial
from pathlib import Path
from statistics import mode
from typing import Any

import numpy as np

from earshot_models.votes.electorate import Electorate
from earshot_models.votes.tally import journal, secure_sums
from earshot_models.votes.tally.budgets import QueryBudget
from earshot_models.votes.tally.interface import Sight
from earshot_models.votes.tally.labelling import LabellingRequest, run
from earshot_models.votes.tally.result import LabellingResult
from earshot_models.votes.tally.tallies import Counter, SumSettings
from earshot_protocol.privacy.mechanisms import Unit
from support.kills import dying, in_child, moments
from support.vote_rules import rule

TEACHERS, QUERIES, CLASSES = 6, 9, 3
REQUESTS = {
    counter.value: LabellingRequest(
        rule("confident", 2.0, (3.0, 2.0)),
        QueryBudget(14.0, 1e-3, Unit.REPLACED_PHONE, TEACHERS),
        counter,
        SumSettings(dropout=0.2, corrupted=0.0, vanishing=0.17, at_once=3),
    )
    for counter in Counter
}
VOTERS = Electorate(np.random.default_rng(5).integers(0, CLASSES, (TEACHERS, QUERIES)), CLASSES)


def main(counter: str, folder: Path) -> None:
    request, kills, wrong = REQUESTS[counter], 0, []
    every = _usual_moments(request, folder)
    for number, moment in every:
        place = folder / f"{number}-{moment}"
        place.mkdir()
        shown = _killed(request, place, number, moment)
        kept = _lines(place)
        outcome = run(request, VOTERS, place)
        again = _lines(place)
        if again[: len(kept)] != kept:
            wrong.append(f"{place.name}: what had been written changed")
        if _totals(outcome.labelled.sights) != _totals(_sights(place)):
            wrong.append(f"{place.name}: the journal has other sums")
        if counter == Counter.FEDERATED and not _all_in(shown, outcome):
            wrong.append(f"{place.name}: a sum was opened once more with other noise")
        if (place / "teachers.key").exists():
            wrong.append(f"{place.name}: the key is still there")
        wrong += [f"{place.name}: {each}" for each in _spent(request, outcome)]
        kills += 1
        shutil.rmtree(place)
    print(json.dumps({"kills": kills, "moments": len(every), "wrong": wrong}))


def _usual_moments(request: LabellingRequest, folder: Path) -> list[tuple[int, str]]:
    """The moments of a run with the usual number of calls: noise makes some runs longer.

    At a moment that few runs have, hardly anybody could be killed.
    """
    tried = []
    for number in range(5):
        whole = folder / f"whole-{number}"
        whole.mkdir()
        tried.append(moments(partial(run, request, VOTERS, whole)))
    usual = mode(map(len, tried))
    return next(each for each in tried if len(each) == usual)


def _spent(request: LabellingRequest, outcome: LabellingResult) -> list[str]:
    """What should not be: more is paid for than was asked, or than the budget has."""
    asked = len(outcome.labelled.outcomes)
    checked = sum(each.queries for each in outcome.labelled.bought if each.kind == "check")
    epsilon = request.budget.spent(outcome.tally, outcome.labelled.bought, request.budget.unit)
    wrong = [] if checked == asked else [f"{checked} checks are paid for, of {asked} queries"]
    return wrong if epsilon <= request.budget.epsilon else [*wrong, f"ε = {epsilon}"]


def _all_in(shown: list[Any], outcome: LabellingResult) -> bool:
    """Whether every total that a killed server had seen is the one that is in the journal."""
    seen = _totals(outcome.labelled.sights)
    return all(total in seen for total in shown)


def _totals(sights: tuple[Sight, ...]) -> list[Any]:
    return [each.total.tolist() for each in sights]


def _lines(folder: Path) -> list[bytes]:
    """The whole lines of a journal."""
    path = folder / journal.FILE
    content = path.read_bytes() if path.exists() else b""
    return content[: content.rfind(b"\n") + 1].splitlines()


def _sights(folder: Path) -> tuple[Sight, ...]:
    with journal.opened(folder / journal.FILE, _identity(folder)) as written:
        return tuple(each for block in written.blocks for each in block.sights)


def _identity(folder: Path) -> dict[str, Any]:
    return dict(json.loads(_lines(folder)[0])["labelling"])


def _killed(request: LabellingRequest, folder: Path, number: int, moment: str) -> list[Any]:
    """The totals that were opened in a process that is killed at this moment.

    How many calls there are depends on the noise, so a run may end before: then another is killed.
    """
    shown = folder.with_name(f"{folder.name}.shown")

    def doomed() -> None:
        _watch(shown)
        with dying(number, moment):
            run(request, VOTERS, folder)

    for _ in range(50):
        shown.write_text("")
        if in_child(doomed)[0]:
            return [json.loads(line) for line in shown.read_text().splitlines()]
        shutil.rmtree(folder)
        folder.mkdir()
    raise AssertionError(f"nobody was killed at call {number}, {moment}")


def _watch(shown: Path) -> None:
    """Have every total that is opened written to a file before anybody else sees it."""
    summed = secure_sums.SecureSums.run

    def watched(self: Any, *given: Any) -> secure_sums.Opened:
        opened = summed(self, *given)
        with shown.open("a") as file:
            file.write(f"{json.dumps(opened.total.tolist())}\n")
        return opened

    secure_sums.SecureSums.run = watched  # type: ignore[method-assign]


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
