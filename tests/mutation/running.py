"""Which tests reach a line, and what they make of a mutant: a process of its own for each.

The process is forked from one that has imported what others wrote and nothing of ours. The mutant
is what it imports in the place of the file, so constants, defaults, decorators and what modules
work out when they are imported are broken like everything else. A test that starts a process of its
own starts the original: that may let a mutant live, and never kills one.
"""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
import traceback
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from itertools import pairwise
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import coverage
import pytest

from mutation.operators import Mutant

OVER = "time is over"
"""In the place of a test that failed."""
OPTIONS = (
    *("-q", "-x", "-p", "no:cacheprovider", "-p", "no:cov", "--hypothesis-profile=quick"),
    *("--tb=no", "-W", "ignore::pytest.PytestAssertRewriteWarning"),  # of what is imported already
)
SURVIVES_AFTER = 10.0
"""Seconds of tests; what is alive then is taken for alive."""
_BATCHES = (40, 400)
"""Tests that are collected at first, and then: most mutants die early."""


@dataclass(frozen=True)
class Settings:
    """What is broken, and by which tests that should be noticed; of `pyproject.toml`.

    Attributes:
        packages: that tests import; nothing of them may be imported before it is broken.
        files: files and folders whose lines are broken.
        tests: that may notice. None that needs a server: it would be started for every mutant.
        walkers: those that look at all code without running it: at defaults, say.
        sampled: percent of the mutants that are neither randomness, nor checks, nor limits.
    """

    packages: tuple[str, ...]
    files: tuple[str, ...]
    tests: tuple[str, ...]
    walkers: tuple[str, ...]
    sampled: int

    @classmethod
    def read(cls) -> Settings:
        """Those of the project in the present folder."""
        project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
        given = project["tool"]["earshot-mutants"]
        lists = {name: tuple(given[name]) for name in ("packages", "files", "tests", "walkers")}
        return cls(**lists, sampled=given["sampled"])


class Reach:
    """Which tests run which lines, and how long each takes.

    Args:
        settings: which tests there are.
        folder: keeps what is found out, as long as neither code nor tests change.
    """

    def __init__(self, settings: Settings, folder: Path) -> None:
        self._walkers = settings.walkers
        times, data = folder / "times.json", folder / "coverage"
        if not times.exists():
            _measure(settings, folder, times, data)
        measured = json.loads(times.read_text())
        if measured["failed"]:
            raise SystemExit(f"without any mutant these fail: {measured['failed']}")
        self.seconds: dict[str, float] = measured["seconds"]
        self._data = coverage.CoverageData(str(data))
        self._data.read()
        self._by_file = {
            os.path.relpath(file): self._data.contexts_by_lineno(file)
            for file in self._data.measured_files()
        }
        self._texts = {path: Path(path).read_text(encoding="utf-8") for path in self._by_file}

    def of(self, mutant: Mutant) -> list[str]:
        """The tests that may notice a mutant: those named after its file first, then the fastest.

        Those that run its lines; where they are run when a module is imported, those of its
        function; and of what is outside of functions, all that run anything of the file, or of
        files that have the name, and those that have the name themselves.
        """
        found = self._running(mutant.path, mutant.lines)
        if mutant.function and mutant.around != mutant.lines:
            found = found or self._running(mutant.path, mutant.around)
        if not found:
            found = self._running(mutant.path)
            if mutant.assigns:
                named = re.compile(rf"\b{mutant.assigns}\b")
                others = [path for path in self._by_file if named.search(self._texts[path])]
                found = found.union(*map(self._running, others))
                found |= {test for test in self.seconds if named.search(self._test(test))}
        if not mutant.function or mutant.around == mutant.lines:
            found |= {test for test in self.seconds if test.startswith(self._walkers)}
        own = f"_{Path(mutant.path).stem}"
        return sorted(
            found,
            key=lambda test: (
                own not in test.partition("::")[0] and not test.startswith(self._walkers),
                self.seconds[test],
            ),
        )

    def _test(self, test: str) -> str:
        path = test.partition("::")[0]
        if path not in self._texts:
            self._texts[path] = Path(path).read_text(encoding="utf-8")
        return self._texts[path]

    def _running(self, path: str, lines: tuple[int, int] = (1, 10**6)) -> set[str]:
        contexts = self._by_file.get(path, {})
        first, last = lines
        tests = (each for line in contexts if first <= line <= last for each in contexts[line])
        return {name for test in tests if (name := test.partition("|")[0]) in self.seconds}


def _measure(settings: Settings, folder: Path, times: Path, data: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    command = (
        *(sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", "-m", "not slow"),
        *(f"--cov={package}" for package in sorted({Path(f).parts[1] for f in settings.files})),
        *("--cov-context=test", "--cov-report=", "-q", "-p", "no:cacheprovider"),
        *("--hypothesis-profile=quick", "-p", "mutation.timing", *settings.tests),
    )
    places = {"COVERAGE_FILE": str(data), "EARSHOT_TIMES": str(times)}
    subprocess.run(command, env=os.environ | places, check=False)  # noqa: S603
    if not times.exists():
        raise SystemExit("the tests did not run to their end")


class Runner:
    """Runs tests in forked processes.

    Args:
        settings: which tests there are.
        reach: what they reach.
    """

    def __init__(self, settings: Settings, reach: Reach) -> None:
        self._settings, self._reach = settings, reach
        self._sound: dict[str, bool] = {}
        self._import_what_others_wrote()

    def check(self, mutant: Mutant) -> None:
        """Run the tests of a mutant on its file as it is: nothing may fail.

        Raises:
            SystemExit: a test does, and so would be taken for one that kills mutants.
        """
        child, _ = self.start(Unbroken(**vars(mutant)))
        if failed := _finished(child)["failed"]:
            raise SystemExit(f"nothing is broken in {mutant.path}, and {failed}")

    def _import_what_others_wrote(self) -> None:
        """Everything that a collection imports, but for what may be broken and what tests it."""
        outcome = _finished(Child(None, [[*self._settings.tests, "--collect-only"]], _soon()))
        ours = {*self._settings.packages, "tests", "support", "conftest", "__main__"}
        for name in outcome["modules"]:
            if name.partition(".")[0] in ours:
                continue
            try:
                importlib.import_module(name)
            except Exception:  # noqa: S112 - it is only for speed
                continue
        assert ours.isdisjoint(sys.modules.keys() - {"__main__"})

    def start(self, mutant: Mutant, most: float = SURVIVES_AFTER) -> tuple[Child, bool]:
        """Begin to run on a mutant the tests that reach it.

        Args:
            mutant: the mutant.
            most: seconds of tests, as they were measured, that run.

        Returns:
            The process, and whether more tests reach the mutant than run.
        """
        tests: list[str] = []
        spent = 0.0
        for test in (reached := self._reach.of(mutant)):
            if not self._sound.get(test, True):
                continue
            spent += self._reach.seconds[test]
            if spent > most and tests:
                break
            tests.append(test)
        edges = [0, *(edge for edge in _BATCHES if edge < len(tests)), len(tests)]
        batches = [tests[a:b] for a, b in pairwise(edges)] if tests else []
        until = time.monotonic() + 60.0 + 6 * spent
        return Child(mutant, batches, until), len(tests) < len(reached)

    def is_sound(self, test: str) -> bool:
        """Whether a test passes by itself where nothing is broken."""
        if test not in self._sound:
            self._sound[test] = _finished(Child(None, [[test]], _soon()))["failed"] == ""
        return self._sound[test]


def _soon() -> float:
    return time.monotonic() + 300.0


def _finished(child: Child) -> dict[str, Any]:
    while (outcome := child.outcome()) is None:
        time.sleep(0.02)
    return outcome


class Unbroken(Mutant):
    """A mutant without its change, by which tests are tried themselves."""

    def source(self, original: str) -> str:
        """See `Mutant.source`: the file, written anew."""
        return ast.unparse(ast.parse(original))


class Child:
    """A process of its own that runs batches of tests until one fails.

    Args:
        mutant: what it imports in the place of the file; None: nothing is broken.
        batches: of tests, and of options of pytest.
        until: when it is killed, by `time.monotonic`.
    """

    def __init__(self, mutant: Mutant | None, batches: list[list[str]], until: float) -> None:
        self._written = tempfile.TemporaryFile()  # noqa: SIM115 - it is read when the process ends
        self._until = until
        self._pid = os.fork()
        if self._pid:
            return
        try:
            os.setsid()
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            if mutant is not None:
                sys.meta_path.insert(0, _Broken(mutant))
            outcome: dict[str, Any] = _run(batches)
            outcome["modules"] = [] if mutant else sorted(sys.modules)
        except BaseException:  # it must not go on where the other process stands
            outcome = {"wrong": traceback.format_exc()}
        os.write(self._written.fileno(), json.dumps(outcome).encode())
        os._exit(0)

    def outcome(self) -> dict[str, Any] | None:
        """What came of it: the test that failed, or nothing in its place; None while it runs."""
        late = time.monotonic() > self._until
        if not late and os.waitpid(self._pid, os.WNOHANG)[0] == 0:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)  # with whatever its tests have left behind
        if late:
            os.waitpid(self._pid, 0)
            return {"failed": OVER}
        with self._written:
            self._written.seek(0)
            written = self._written.read()
        found: dict[str, Any] = json.loads(written) if written else {"failed": "the process ended"}
        if "wrong" in found:
            raise SystemExit(found["wrong"])
        return found


def _run(batches: list[list[str]]) -> dict[str, Any]:
    watched = _Watch()
    for batch in batches:
        code = pytest.main([*OPTIONS, *batch], plugins=[watched])
        if code not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            return {"failed": watched.failed or "it cannot be imported"}
    return {"failed": ""}


class _Watch:
    failed = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed = self.failed or report.nodeid


class _Broken(SourceFileLoader):
    """Imports the mutant in the place of its file."""

    def __init__(self, mutant: Mutant) -> None:
        place = Path(mutant.path)
        parts = place.with_suffix("").parts[1:]
        super().__init__(".".join(part for part in parts if part != "__init__"), str(place))
        self._source = mutant.source(place.read_text())

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != self.name:
            return None
        return importlib.util.spec_from_file_location(name, self.path, loader=self)

    def get_code(self, fullname: str) -> CodeType:
        return compile(self._source, self.path, "exec", dont_inherit=True)


def digest(paths: Collection[Path]) -> str:
    """Of the contents of files."""
    total = hashlib.sha256()
    for path in sorted(paths):
        total.update(str(path).encode() + b"\0" + path.read_bytes() + b"\0")
    return total.hexdigest()[:16]


def sources(*folders: str) -> Iterator[Path]:
    """The Python files under some folders."""
    for folder in folders:
        yield from Path(folder).rglob("*.py")
