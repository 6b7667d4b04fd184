"""`make mutants`: how many mutants of the code that decides on privacy the tests kill."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from mutation.operators import Kind, Mutant, mutants
from mutation.running import OVER, Child, Reach, Runner, Settings, digest, sources

REACH = 0.95
KEPT = Path("out/mutants")
_SECOND_LOOK = 60.0
"""Seconds of tests."""
_CONTROLS = 3
"""Files of which nothing is broken at first, to see that no test fails for that."""
EQUIVALENT = Path("tests/mutation/equivalent.toml")

Key = tuple[str, str, str, str]


def main() -> int:
    """Try mutants, print what became of them, and return the status."""
    options, settings = _options(), Settings.read()
    began = time.monotonic()
    files = _files(options.files or settings.files)
    every = [each for path in files for each in mutants(path, _read(path))]
    listed = _equivalent()
    stale = set(listed) - {each.key for each in every} if not options.files else set()
    tried = [each for each in _order(every, options, settings.sampled) if each.key not in listed]
    folders = {Path(each).parts[0] for each in (*settings.files, *settings.tests)}
    state = digest([path for path in sources(*folders) if "mutation" not in path.parts])
    reach = Reach(settings, KEPT / state)
    results = Results(KEPT / "results.jsonl", state)
    runner = Runner(settings, reach)
    until = began + 60 * options.minutes if options.minutes else float("inf")
    for mutant, killer, capped in _run(runner, results, tried, options.jobs, until):
        results.add(mutant, killer, capped)
        if not killer:
            print(f"alive: {_said(mutant)}", flush=True)
    return _report(tried, results, stale, time.monotonic() - began, whole=not options.minutes)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make mutants", description=__doc__)
    parser.add_argument("files", nargs="*", help="files or folders; by default all that matter")
    parser.add_argument("--minutes", type=float, default=0.0, help="after which no more are tried")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    return parser.parse_args()


def _files(given: Iterable[str]) -> list[str]:
    found = [path for each in given for path in (Path(each), *sources(each))]
    return sorted({str(path) for path in found if path.is_file()})


def _read(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def _equivalent() -> dict[Key, str]:
    """Mutants that change nothing anybody could see, with the reason."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    found = {(e["path"], e["function"], e["line"], e["change"]): e["reason"] for e in entries}
    assert len(found) == len(entries), "a mutant is listed twice"
    assert all(reason.strip() for reason in found.values()), "a mutant is listed without a reason"
    return found


def _order(every: list[Mutant], options: argparse.Namespace, sampled: int) -> list[Mutant]:
    """Lines that were changed last, then what matters most; of the rest a sample.

    The sample is the same as long as the lines are, so that what is known stays known. Where time
    is short, its order follows from the commit.
    """
    changed = _changed() if options.minutes else {}
    commit = _git("rev-parse", "HEAD") if options.minutes else ""

    def drawn(mutant: Mutant, seed: str = "") -> int:
        return int(hashlib.sha256(repr((seed, mutant.key)).encode()).hexdigest()[:8], 16)

    def is_changed(mutant: Mutant) -> bool:
        first, last = mutant.lines
        return any(first <= line <= last for line in changed.get(mutant.path, ()))

    chosen = [
        each
        for each in every
        if each.kind is not Kind.ORDINARY or is_changed(each) or drawn(each) % 100 < sampled
    ]
    return sorted(
        chosen,
        key=lambda each: (
            *(not is_changed(each), each.kind is Kind.ORDINARY),
            drawn(each, commit) if options.minutes else 0,
        ),
    )


def _changed() -> dict[str, set[int]]:
    """The lines of the newest commit, by file."""
    found: dict[str, set[int]] = {}
    path = ""
    for line in _git("diff", "--unified=0", "HEAD~1").splitlines():
        if line.startswith("+++ b/"):
            path = line.removeprefix("+++ b/")
        elif hunk := re.match(r"@@ .* \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(hunk[1]), int(hunk[2] or 1)
            found.setdefault(path, set()).update(range(first, first + count))
    return found


def _git(*words: str) -> str:
    run = subprocess.run(["git", *words], capture_output=True, text=True, check=False)  # noqa: S603, S607
    return run.stdout


class Results:
    """What became of mutants: one line each in a file, so that an interrupted run goes on.

    What killed a mutant is believed as long as neither its file nor the killer's changes; that
    nothing did, as long as nothing changes at all.
    """

    def __init__(self, file: Path, state: str) -> None:
        self._file, self._state = file, state
        self._known: dict[str, dict[str, str]] = {}
        file.parent.mkdir(parents=True, exist_ok=True)
        if file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                kept = json.loads(line)
                self._known[kept["mutant"]] = kept

    def add(self, mutant: Mutant, killer: str, capped: bool) -> None:
        """Keep what became of a mutant."""
        kept = {
            "mutant": repr(mutant.key),
            "file": digest([Path(mutant.path)]),
            "killer": killer,
            "capped": "capped" if capped else "",
            "tests": self._tests(killer),
        }
        self._known[kept["mutant"]] = kept
        with self._file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(kept) + "\n")

    def of(self, mutant: Mutant) -> dict[str, str] | None:
        """What became of it, if that is still known."""
        kept = self._known.get(repr(mutant.key))
        if kept is None or kept["file"] != digest([Path(mutant.path)]):
            return None
        return kept if kept["tests"] == self._tests(kept["killer"]) else None

    def _tests(self, killer: str) -> str:
        path = Path(killer.partition("::")[0])
        return digest([path]) if "::" in killer and path.exists() else self._state


def _run(
    runner: Runner, results: Results, tried: list[Mutant], jobs: int, until: float
) -> Iterator[tuple[Mutant, str, bool]]:
    """Each mutant of which nothing is known, with what killed it.

    What must die and lives gets a second look, by more tests. A test that fails
    where nothing is broken kills nothing: the mutant is tried again without it.
    """
    waiting = [each for each in reversed(tried) if results.of(each) is None]
    for path in sorted({each.path for each in waiting})[:_CONTROLS]:
        runner.check(next(each for each in waiting if each.path == path))
    running: list[tuple[Mutant, Child, bool]] = []
    while running or (waiting and time.monotonic() < until):
        while waiting and len(running) < jobs and time.monotonic() < until:
            mutant = waiting.pop()
            running.append((mutant, *runner.start(mutant)))
        time.sleep(0.02)
        for each in list(running):
            mutant, child, capped = each
            outcome = child.outcome()
            if outcome is None:
                continue
            running.remove(each)
            killer = outcome["failed"]
            if "::" in killer and not runner.is_sound(killer):
                print(f"fails by itself, without any mutant: {killer}", flush=True)
                running.append((mutant, *runner.start(mutant)))
            elif capped and not killer and mutant.kind is not Kind.ORDINARY:
                running.append((mutant, runner.start(mutant, _SECOND_LOOK)[0], False))
            else:
                yield mutant, killer, capped and not killer


def _said(mutant: Mutant) -> str:
    place = f"{mutant.path}:{mutant.lines[0]}"
    return f"{place} [{mutant.kind}] {mutant.function} | {mutant.text} | {mutant.change}"


def _report(
    tried: list[Mutant], results: Results, stale: set[Key], seconds: float, *, whole: bool
) -> int:
    """Print the table; the status of the command."""
    table: Counter[tuple[str, str]] = Counter()
    alive: list[Mutant] = []
    for mutant in tried:
        kept = results.of(mutant)
        if kept is None:
            continue
        module = str(Path(mutant.path).parent if "/" in mutant.path else mutant.path)
        died = "killed" if kept["killer"] else "alive"
        marks = [died, *(["endless"] if kept["killer"] == OVER else []), kept["capped"]]
        for row in (module, mutant.kind.value, "all"):
            table.update((row, mark) for mark in ("tried", *marks) if mark)
        if not kept["killer"]:
            alive.append(mutant)
    rows = sorted({row for row, _ in table} - {"all"} - {kind.value for kind in Kind})
    print(f"{'':<44}{'tried':>7}{'killed':>8}{'endless':>9}{'alive':>7}{'capped':>8}{'%':>8}")
    for row in (*rows, *(kind.value for kind in Kind), "all"):
        numbers = [table[row, mark] for mark in ("tried", "killed", "endless", "alive", "capped")]
        share = 100 * numbers[1] / numbers[0] if numbers[0] else 100.0
        tried_, killed, endless, living, capped = numbers
        print(f"{row:<44}{tried_:>7}{killed:>8}{endless:>9}{living:>7}{capped:>8}{share:>8.1f}")
    print(f"{seconds / 60:.1f} minutes")
    must_die = [each for each in alive if each.kind is not Kind.ORDINARY]
    for mutant in alive:
        print(f"alive: {_said(mutant)}")
    for key in sorted(stale):
        print(f"listed as equivalent, and not there: {key}")
    share = 1 - len(alive) / max(1, table["all", "tried"])
    return int(bool(must_die or stale or (whole and share < REACH)))


sys.exit(main())
