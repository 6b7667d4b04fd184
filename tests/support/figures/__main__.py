"""Compare figures between two commits: `python -m support.figures BASE [--only PATTERN]`.

Every run of `runs` happens twice at BASE and once at the present work tree, each time in an
interpreter of its own whose draws from the operating system come from one fixed stream. Whatever
differs between the two at BASE (seconds, times of day) is volatile; all else must be the same.
Results of BASE are kept in out/figures; those of the work tree are made anew.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Mapping
from pathlib import Path

from support.figures import material
from support.figures.reading import Facts, by_elements, facts
from support.figures.runs import RUNS

PACKAGES = ("protocol", "client", "server", "models", "simulations")
KEPT = Path("out/figures").resolve()
LONGEST = 900


def command(words: str, small: Mapping[str, str], tree: Path, folder: Path, inputs: Path) -> Facts:
    """Run a command in an empty folder, and read everything that it printed and left there.

    Args:
        words: what stands behind `earshot`.
        small: constants that are replaced.
        tree: the work tree whose code runs.
        folder: where it runs; made anew.
        inputs: the folder of `@` words.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    given = [str(inputs / word[1:]) if word.startswith("@") else word for word in words.split()]
    replaced = {"words": given, "small": dict(small)}
    ran = subprocess.run(  # noqa: S603 - our own commands
        [sys.executable, str(Path(__file__).with_name("runner.py")), json.dumps(replaced)],
        cwd=folder,
        env=environment(tree),
        capture_output=True,
        text=True,
        timeout=LONGEST,
        check=False,
    )
    (folder / "printed.txt").write_text(ran.stdout, encoding="utf-8")
    if ran.returncode:
        (folder / "failed.txt").write_text(f"{ran.returncode}\n{ran.stderr[-2000:]}")
    return facts(folder, {str(folder): "FOLDER", str(inputs): "INPUTS"})


def environment(tree: Path) -> dict[str, str]:
    """Return the variables of a run: one thread, one order of sets, and the tree's packages."""
    return {
        **os.environ,
        "PYTHONPATH": ":".join(str(tree / package) for package in PACKAGES),
        "PYTHONHASHSEED": "0",
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "TF_NUM_INTRAOP_THREADS": "1",
        "TF_NUM_INTEROP_THREADS": "1",
        "COLUMNS": "100",
        "TERM": "dumb",
    }


class Side:
    """One commit's results."""

    def __init__(self, tree: Path, place: Path, base: bool) -> None:
        """Take results of a tree, kept at a place; those of the base stay good."""
        self.tree, self.place, self.base = tree, place, base

    def run(self, name: str, folder: Path, inputs: Path) -> Facts:
        """Do a run as this commit spells it."""
        run = RUNS[name]
        words = run.before if self.base and run.before is not None else run.words
        return command(words, run.small, self.tree, folder, inputs)

    def result(self, name: str, attempt: int) -> Facts:
        """Return what a run gives, from what is kept or by doing it."""
        run = RUNS[name]
        spelled = [
            (each.before or each.words, *each.small.values())
            for each in (run, RUNS.get(run.after or ""))
            if each
        ]
        key = hashlib.sha256(repr(spelled).encode()).hexdigest()[:8]
        kept = self.place / f"{re.sub('[^a-z0-9.]+', '-', name)}.{key}.{attempt}.json"
        if self.base and kept.exists():
            return json.loads(kept.read_text(encoding="utf-8"))
        with tempfile.TemporaryDirectory() as own:
            inputs = Path(own) / "inputs"
            material.write(inputs)
            if run.after is not None:
                self.run(run.after, Path(own) / "first", inputs)
                (inputs / "after").symlink_to(Path(own) / "first" / "out")
            begun = time.monotonic()
            try:
                found = self.run(name, Path(own) / "run", inputs)
            except subprocess.TimeoutExpired:
                found = {"failed.txt:1": f"takes more than {LONGEST} s"}
            spent = time.monotonic() - begun
        if "failed.txt:1" not in found:
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(found, ensure_ascii=False, indent=0), encoding="utf-8")
        print(f"{self.place.name[:12]} {name} {attempt}: {len(found)} facts in {spent:.0f} s")
        return found


def differences(first: Facts, second: Facts, now: Facts) -> tuple[list[str], int, int]:
    """Compare a run with the base.

    Returns:
        Lines that say which figures differ, the number of volatile facts, and the number of lines
        of text that have other words around the same numbers.
    """
    stable = {place for place in first if second.get(place) == first[place]}
    drawn = first.keys() - stable
    texts = {file(place) for place in first.keys() | now.keys()} & texts_among(first, now)
    reworded = {each for each in texts if numbers(each, first, drawn) == numbers(each, now, drawn)}
    others = [
        place
        for place in sorted(stable | (now.keys() - second.keys()))
        if now.get(place) != first.get(place)
    ]
    said = [
        f"    {place}: was {first.get(place, 'missing')!r:.120}, "
        f"is {now.get(place, 'missing')!r:.120}"
        for place in others
        if file(place) not in reworded
        and not (file(place) in texts and place in first and place in now
                 and numbers_in(first[place]) == numbers_in(now[place]))
    ]  # fmt: skip
    return said, len(drawn), len(others) - len(said)


def file(place: str) -> str:
    """Return the file of a fact."""
    return place.partition(":")[0]


def texts_among(*sides: Facts) -> set[str]:
    """Return the files that are read line by line."""
    places = [place for side in sides for place in side if re.search(r":\d+$", place)]
    return {file(place) for place in places}


def numbers(text: str, facts: Facts, drawn: Collection[str]) -> list[str]:
    """Return the numbers of a text, in order, but for those in lines that are volatile."""
    lines = {
        int(place.rpartition(":")[2]): line
        for place, line in facts.items()
        if file(place) == text and place not in drawn
    }
    return numbers_in(" ".join(lines[number] for number in sorted(lines)))


def numbers_in(words: str) -> list[str]:
    """Return the numbers of some words, in order."""
    return re.findall(r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?", words)


def main() -> int:
    """Compare, and return the exit status: 1 where a figure differs."""
    parser = argparse.ArgumentParser(prog="figures", description=__doc__)
    parser.add_argument("base", help="commit whose figures are the measure")
    parser.add_argument("--only", default="", help="pattern of the runs' names")
    parser.add_argument("--slots", type=int, default=2, help="runs at a time")
    parser.add_argument("--most", type=int, default=12, help="differences shown of one run")
    parser.add_argument("--base-only", action="store_true", help="only make the measure")
    given = parser.parse_args()
    commit = subprocess.run(  # noqa: S603
        ["git", "rev-parse", "--verify", f"{given.base}^{{commit}}"],  # noqa: S607
        capture_output=True, text=True, check=True,
    ).stdout.strip()  # fmt: skip
    names = [name for name in RUNS if re.search(given.only, name)]
    with tempfile.TemporaryDirectory() as place:
        tree = Path(place) / "tree"
        subprocess.run(["git", "worktree", "add", "-q", "-f", "--detach", tree, commit], check=True)  # noqa: S603, S607
        try:
            return compared(Side(tree, KEPT / commit, True), names, given)
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], check=True)  # noqa: S603, S607


def compared(base: Side, names: list[str], given: argparse.Namespace) -> int:
    """Say what differs, a run at a time, and return the exit status."""
    shutil.rmtree(KEPT / "now", ignore_errors=True)
    now = Side(Path.cwd(), KEPT / "now", False)
    wrong = volatile = 0
    with concurrent.futures.ThreadPoolExecutor(given.slots) as pool:
        asked = {
            name: [pool.submit(base.result, name, 1), pool.submit(base.result, name, 2)]
            + ([] if given.base_only else [pool.submit(now.result, name, 1)])
            for name in names
        }
        for name, results in asked.items():
            first, second, *last = (by_elements(each.result()) for each in results)
            if "failed.txt:1" in first:
                print(f"FAILS    {name} at the base: {first.get('failed.txt:2', first)}")
                wrong += 1
                continue
            said, drawn, worded = differences(first, second, last[0] if last else first)
            volatile += drawn
            wrong += bool(said)
            counts = f"{len(first)} facts, {drawn} volatile, {worded} reworded"
            print(f"{'DIFFERS' if said else 'same   '}  {name}: {counts}")
            for line in said[: given.most]:
                print(line)
            if len(said) > given.most:
                print(f"    … and {len(said) - given.most} more")
    print(f"{len(names)} runs, {wrong} differ, {volatile} volatile facts")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
