"""Chooses mutants, has them judged side by side, and says whether enough of them die."""

from __future__ import annotations

import ast
import functools
import hashlib
import json
import os
import re
import shutil
import struct
import sys
import time
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from multiprocessing import Pipe
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from support.changed import imports
from support.mutation import judge
from support.mutation.baseline import Baseline
from support.mutation.operators import NAMED, Mutant, mutants_of

REACH = 0.95
CAP, NAMED_CAP = 10.0, 60.0
"""Seconds of tests for a survivor."""


class Places(NamedTuple):
    """Where things are, from the root.

    Attributes:
        packages: folders to import from, of which copies are mutated.
        mutated: files and folders whose files are.
        tests: folders of the tests, and files of others.
        listed: file of the equivalent mutants.
        first: functions, as `module:function`, that compile what many tests use. A test that had to
            wait for that would seem not to end.
    """

    packages: Sequence[str]
    mutated: Sequence[str]
    tests: Sequence[str]
    listed: str
    first: Sequence[str] = ()


PLACES = Places(
    packages=("protocol", "client"),
    mutated=(
        *(
            f"protocol/earshot_protocol/{room}"
            for room in ("files.py", "privacy", "prio3", "secure_sum", "two_operators", "phases")
        ),
        *(f"client/earshot_client/{room}" for room in ("phone.py", "policy.py", "phases", "store")),
    ),
    tests=(
        *("tests/protocol", "tests/client", "tests/server/sums", "tests/server/phones"),
        *("tests/models/phones", "tests/simulations/test_vote_costs.py"),
        "tests/system/test_two_operator_vectors.py",
        *(
            f"tests/server/test_{name}.py"  # those that neither begin a database nor listen
            for name in (
                *("accountant", "budget", "coordinator", "coordinator_answers", "deviations"),
                *("discovery_phase", "forecast", "labelling_phase", "merging", "phase_places"),
                *("statistics", "statistics_phase"),
            )
        ),
        *(
            f"tests/models/votes/test_{name}.py"
            for name in (
                *("threshold_releases", "bits", "dependent", "cost_of_multi_winner"),
                *("outcomes", "personal", "powerset", "smooth", "cost_of_thresholds"),
                *("winners", "label_voting", "thresholds", "output_ballots"),
            )
        ),
    ),
    listed="tests/support/mutation/equivalent.toml",
    first=("earshot_server.proofs.engine:fastest",),
)


class Mutation:
    """All of it.

    Attributes:
        texts: of the files that are mutated, by their paths from the root.

    Args:
        root: of the repository, and the folder that one is in.
        places: what is mutated, and what it is tested by.
        out: folder of results and of the copies that are mutated.
        slots: mutants that are judged at a time.
    """

    def __init__(self, root: Path, places: Places, out: Path, slots: int) -> None:
        self._root, self._places, self._out, self._slots = root, places, out.absolute(), slots
        self.texts = {
            path.relative_to(root).as_posix(): path.read_text("utf-8")
            for place in places.mutated
            for path in _files(root / place)
        }
        tests = [one for place in places.tests for one in _files(root / place)]
        shared = (root / "tests").rglob("conftest.py"), (root / "tests/support").glob("*.py")
        tests += sorted(one for each in shared for one in each if one not in tests)
        self._tests = {one.relative_to(root).as_posix(): one.read_bytes() for one in tests}
        self._killers: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._kills: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._results = self._out / "results.jsonl"

    def run(
        self,
        minutes: float | None,
        count: int,
        only: str = "",
        kinds: str = "",
        changed: Mapping[str, set[int]] | None = None,
    ) -> int:
        """Judge and print; the exit status.

        Args:
            minutes: how long mutants are judged at most; tests without a mutant come on top.
            count: mutants at most, of the named kinds all.
            only: pattern of the paths to look at.
            kinds: pattern of the names of kinds to look at.
            changed: numbers of the lines to look at, by path; without them, all lines.
        """
        start = time.monotonic()
        end = start + 60 * (minutes or 1e6)
        self._out.mkdir(parents=True, exist_ok=True)
        mutants, listed = self._mutants, set(self.listed)
        stale = self.gone()
        chosen = [
            each
            for each in self._chosen(mutants, count, listed)
            if re.search(only, each.path) and re.search(kinds, each.kind)
            if changed is None or changed.get(each.path, set()) & each.numbers
        ]
        known = self._known(chosen)
        for files in self._rounds(changed):
            if not (left := [each for each in chosen if each.key not in known]):
                break
            begun = time.monotonic()
            self._baseline(files)
            end += time.monotonic() - begun
            self._judge(left, end, files)
            known = self._known(chosen)
            if time.monotonic() >= end:
                break
        # One that only takes longer is not found by any test.
        stale += [key for key in listed & known.keys() if known[key] == judge.KILLED]
        ok = self._print(
            chosen, known, listed, stale, judge_reach=not (minutes or changed or only + kinds)
        )
        print(f"{time.monotonic() - start:.0f} s, of which the last line of {self._results} tells")
        return 0 if ok else 1

    # ------------------------------------------------------------------ which, in which order

    @functools.cached_property
    def _mutants(self) -> list[Mutant]:
        return [each for path, text in self.texts.items() for each in mutants_of(path, text)]

    @functools.cached_property
    def listed(self) -> list[str]:
        """Keys of the mutants that are listed as equivalent, in order."""
        entries = tomllib.loads((self._root / self._places.listed).read_text("utf-8"))
        return [_key(entry) for entry in entries.get("mutant", ())]

    def gone(self) -> list[str]:
        """Keys of listed mutants that are in no file any more."""
        there = {each.key for each in self._mutants}
        return [key for key in self.listed if key not in there]

    def _chosen(self, mutants: Sequence[Mutant], count: int, listed: set[str]) -> list[Mutant]:
        """Those of the named kinds first; the others by chance, but the same ones every time."""

        def rank(mutant: Mutant) -> tuple[bool, str]:
            return mutant.kind not in NAMED, hashlib.sha256(mutant.key.encode()).hexdigest()

        ordered = sorted(mutants, key=rank)
        left = count - sum(mutant.kind in NAMED for mutant in mutants)
        ordinary = [mutant.key for mutant in ordered if mutant.kind not in NAMED][: max(0, left)]
        kept = set(ordinary) | listed
        return [mutant for mutant in ordered if mutant.kind in NAMED or mutant.key in kept]

    def _rounds(self, changed: Mapping[str, set[int]] | None) -> list[list[str]]:
        """Test files to judge by; where few lines changed, first those that import the modules.

        Running all without a mutant takes longer than all else, and most mutants die near them.
        """
        every = [path for path in self._tests if _is_test(path)]
        if changed is None:
            return [every]
        importing = {file for path in changed for file in self._importing(path)}
        near = [file for file in every if file in importing]
        return [near, every] if near else [every]

    # ------------------------------------------------------------------ results

    def _state(self, mutant: Mutant, killer: str) -> str:
        """The text that a result holds for: with a test that killed its own, or that of all."""
        if killer:
            file, _, name = killer.partition("::")
            text = _functions(self._tests.get(file, b"")).get(name.partition("[")[0], "")
            tests = [text.encode()]
        else:
            tests = list(self._tests.values())
        return hashlib.sha256(b"".join((self.texts[mutant.path].encode(), *tests))).hexdigest()[:16]

    def _known(self, mutants: Sequence[Mutant]) -> dict[str, str]:
        """Verdicts by key, of those that still hold."""
        by_key, known = {mutant.key: mutant for mutant in mutants}, {}
        for line in self._results.read_text("utf-8").splitlines() if self._results.exists() else ():
            result = json.loads(line)
            mutant = by_key.get(result["key"])
            if mutant and result["state"] == self._state(mutant, result["killer"]):
                known[mutant.key] = result["verdict"]
                self._kills[mutant.path][_file(result["killer"])] += bool(result["killer"])
        return known

    def _print(
        self,
        chosen: Sequence[Mutant],
        known: dict[str, str],
        listed: set[str],
        stale: Sequence[str],
        judge_reach: bool,
    ) -> bool:
        rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
        living = []
        for mutant in chosen:
            verdict = known.get(mutant.key)
            said = "not reached" if verdict is None else verdict
            if verdict is not None and verdict not in _DEAD:
                said = "listed" if mutant.key in listed else verdict
                living += [mutant] if said != "listed" else []
            for name in (str(Path(mutant.path).with_suffix("")), "in all"):
                rows[name][said] += 1
        columns = ("killed", "timed out", "listed", "capped", "survived", "untested", "not reached")
        print("module".ljust(52), *columns, "reach")
        for name, row in sorted(rows.items()):
            dead = row["killed"] + row["timed out"]
            judged = dead + row["survived"] + row["capped"] + row["untested"]
            share = f"{dead / judged:.1%}" if judged else ""
            print(name.ljust(52), *(str(row[each]).rjust(len(each)) for each in columns), share)
        named = [mutant for mutant in living if mutant.kind in NAMED]
        for mutant in sorted(living, key=lambda each: (each.kind, each.path, each.lines)):
            print(
                f"lives, {mutant.kind}: {mutant.path}:{mutant.lines[0]} in {mutant.function}: ",
                end="",
            )
            print(f"{mutant.line} | {mutant.change} #{mutant.nth}")
        for key in stale:
            print(f"listed, and is not there or dies: {key}")
        dead = rows["in all"]["killed"] + rows["in all"]["timed out"]
        enough = not judge_reach or dead >= REACH * (dead + len(living))
        return enough and not named and not stale

    # ------------------------------------------------------------------ judging

    def _scratch(self, slot: int) -> Path:
        """A copy of the packages, which is what is imported from here on."""
        scratch = self._out / f"copy{slot}"
        shutil.rmtree(scratch, ignore_errors=True)
        leave = shutil.ignore_patterns("__pycache__")
        for package in self._places.packages:
            shutil.copytree(self._root / package, scratch / package, ignore=leave)
        paths = [str(scratch / package) for package in self._places.packages]
        sys.path[:0] = paths
        before = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join([*paths, *([before] if before else [])])
        return scratch

    def _fork_slots(self, run: Any) -> None:
        sys.stdout.flush()
        children = []
        for slot in range(self._slots):
            pid = os.fork()
            if pid == 0:
                code = 1
                try:
                    run(slot)
                    code = 0
                finally:
                    os._exit(code)
            children.append(pid)
        statuses = [os.waitpid(pid, 0)[1] for pid in children]
        if any(statuses):
            raise SystemExit("mutants: a process of ours failed")

    def _baseline(self, files: Sequence[str]) -> None:
        """Run the tests of each of these files that was not run as it is now."""
        package_texts = [
            path.read_bytes()
            for package in self._places.packages
            for path in sorted((self._root / package).rglob("*.py"))
        ]
        shared = [text for path, text in self._tests.items() if not _is_test(path)]
        common = hashlib.sha256(b"".join([*package_texts, *shared])).digest()
        into = {
            path: self._out / f"baseline-{hashlib.sha256(common + text).hexdigest()[:16]}.json"
            for path, text in self._tests.items()
            if path in files
        }
        new = [path for path, found in into.items() if not found.exists()]

        def run(slot: int) -> None:
            mine = new[slot :: self._slots]
            baseline = Baseline(self._scratch(slot), {path: into[path] for path in mine})
            if mine:
                pytest.main([*judge.QUIETER, *mine], plugins=[baseline])

        if new:
            self._fork_slots(run)
        self._seconds: dict[str, float] = {}
        self._lines: defaultdict[str, defaultdict[int, set[str]]]
        self._lines = defaultdict(lambda: defaultdict(set))
        self._touched: defaultdict[str, Counter[str]] = defaultdict(Counter)
        modules: dict[str, None] = {}
        for file, found in (
            (file, json.loads(path.read_text("utf-8"))) for file, path in into.items()
        ):
            self._seconds |= {f"{file}::{test}": taken for test, taken in found["seconds"].items()}
            for path, lines in found["lines"].items():
                for line, tests in lines.items():
                    named = {f"{file}::{test}" for test in tests}
                    self._lines[path][int(line)] |= named
                    self._touched[path].update(named)
            modules |= dict.fromkeys(found["modules"])
            if found["failed"]:
                print("fail without a mutant and count for nothing:", *found["failed"], sep="\n  ")
        self._touched_in_all = sum(self._touched.values(), Counter[str]())
        for module in modules:
            try:
                import_module(module)
            except Exception:  # noqa: S112 - it is only meant to be there already
                continue

    def _covering(self, mutant: Mutant) -> dict[str, float]:
        """Tests that meet a mutant, likely killers first, and the seconds that they take.

        Those are fast, most of what they touch is in its file, and tests beside them have killed
        others there.
        """
        lines, importing = self._lines[mutant.path], self._importing(mutant.path)
        if mutant.at_import and mutant.kind in NAMED:  # some tests look at what modules hold
            found = set(self._seconds)
        elif mutant.at_import:  # in force for whatever runs in the module or imports from it
            found = set(self._touched[mutant.path])
            for path in self._lines:
                if imports((self._root / path).read_text("utf-8"), mutant.path):
                    found |= set(self._touched[path])
            found |= {test for test in self._seconds if _file(test) in importing}
        else:
            found = {test for line in mutant.numbers for test in lines[line]}

        def slowness(test: str) -> float:
            share = self._touched[mutant.path][test] / max(1, self._touched_in_all[test])
            share = max(share, 0.1 if _file(test) in importing else 1e-3)
            return self._seconds[test] / share / (1 + self._kills[mutant.path][_file(test)])

        return {test: self._seconds[test] for test in sorted(found, key=slowness)}

    def _importing(self, path: str) -> set[str]:
        """Files of tests that import a module, and may look at what it holds."""
        return {each for each, text in self._tests.items() if imports(text.decode(), path)}

    def _judge(self, mutants: Sequence[Mutant], end: float, files: Sequence[str]) -> None:
        """Judge them by these test files, each slot taking the next as soon as it is free.

        A mutant that survives some of the files is not judged yet.
        """
        if not mutants or time.monotonic() >= end:  # collecting all tests takes a while
            return
        every = sum(map(_is_test, self._tests))
        take, put = os.pipe()
        os.set_blocking(put, False)
        os.write(put, b"".join(struct.pack("i", at) for at in range(len(mutants))))
        os.close(put)

        def run(slot: int) -> None:
            scratch = self._scratch(slot)
            ours, theirs = Pipe()
            if os.fork() == 0:
                judge.serve_warm(theirs, scratch, files, self._places.first)
                os._exit(0)
            theirs.close()
            ours.recv()
            with self._results.open("a", encoding="utf-8") as results:
                while time.monotonic() < end and (token := os.read(take, 4)):
                    mutant = mutants[struct.unpack("i", token)[0]]
                    begun = time.monotonic()
                    verdict, killer = self._verdict(mutant, scratch, ours)
                    if verdict not in _DEAD and len(files) < every:
                        continue
                    state, took = self._state(mutant, killer), round(time.monotonic() - begun, 2)
                    line = {"key": mutant.key, "verdict": verdict, "killer": killer, "state": state}
                    results.write(json.dumps(line | {"seconds": took}) + "\n")
                    results.flush()
            ours.send(None)
            os.wait()

        self._fork_slots(run)

    def _verdict(self, mutant: Mutant, scratch: Path, warm: Any) -> tuple[str, str]:
        """What becomes of a mutant, and the test that killed it."""
        tests = self._covering(mutant)
        if not tests:
            return "untested", ""
        before = self.texts[mutant.path]
        after, note, path = mutant.applied(before), scratch / "killer", scratch / mutant.path
        note.unlink(missing_ok=True)
        for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
            compiled.unlink()  # a change within a second may leave the size as it was
        path.write_text(after, "utf-8")
        verdict = "fresh"
        try:
            cap = NAMED_CAP if mutant.kind in NAMED else CAP
            if not mutant.at_import:
                warm.send((str(path), before, after, judge.Chosen(tests, cap, note)))
                verdict = warm.recv()
            for mine in self._stages(mutant, tests) if verdict == "fresh" else ():
                chosen = judge.Chosen(mine, cap, note)
                files = sorted({_file(test) for test in mine})
                verdict = judge.in_a_fork(functools.partial(judge.run_fresh, chosen, files))
                if verdict in _DEAD:
                    break
        finally:
            path.write_text(before, "utf-8")
            for compiled in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
                compiled.unlink()
        killer = note.read_text("utf-8") if verdict in _DEAD and note.exists() else ""
        if killer:
            self._kills[mutant.path][_file(killer)] += 1
        if killer and mutant.at_import:
            self._killers[mutant.kind][killer] += 1
        return verdict, killer

    def _stages(self, mutant: Mutant, tests: dict[str, float]) -> Iterator[dict[str, float]]:
        """Tests by how likely they see it, because importing all takes seconds.

        What saw most of the same kind; then the files that touch most of the module, or import it
        where that matters; then the rest.
        """
        first = [test for test, _ in self._killers[mutant.kind].most_common(1) if test in tests]
        touched = Counter({_file(test): 0 for test in tests})
        for found in self._lines[mutant.path].values():
            touched.update({_file(test) for test in found})
        near = {file for file, _ in touched.most_common(3)}
        if mutant.at_import:  # such as those that look at constants
            near |= touched.keys() & self._importing(mutant.path)
        yield from ({test: tests[test]} for test in first)
        yield {test: taken for test, taken in tests.items() if _file(test) in near}
        if len(touched) > len(near):
            yield {test: taken for test, taken in tests.items() if _file(test) not in near}


_DEAD = {judge.KILLED, judge.TIMED_OUT}


@functools.cache
def _functions(source: bytes) -> dict[str, str]:
    """The text of every test in a file, by its name."""
    text = source.decode()
    return {
        node.name: ast.unparse(node)
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
    }


def _files(place: Path) -> list[Path]:
    return [place] if place.suffix else sorted(place.rglob("*.py"))


def _is_test(path: str) -> bool:
    return Path(path).name.startswith("test_")


def _file(test: str) -> str:
    return test.partition("::")[0]


def _key(entry: dict[str, Any]) -> str:
    nth = str(entry.get("nth", 0))
    return "\t".join((entry["path"], entry["function"], entry["line"], entry["change"], nth))
