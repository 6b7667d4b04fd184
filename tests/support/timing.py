"""What tests cost: prints the slowest files, and the slow tests that are not marked.

A test's cost is processor time, its own and that of the children it has waited for, because a
loaded machine stretches every other clock. Fixtures of wider scope and first imports are counted
for the file alone: they are paid by whichever test comes first in its process.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable
from importlib import _bootstrap  # type: ignore[attr-defined]
from pathlib import Path
from typing import Any, NamedTuple

import pytest

USUAL = 1.0
"""Seconds of the processor that an unmarked test should stay below; those above are listed.

They do not fail the run, because a processor that is slower than ours would fail right tests.
"""
SLOWEST = 10


class Cost(NamedTuple):
    """Of one test.

    Attributes:
        test: its identifier.
        slow: whether it is marked.
        own: seconds of the processor that are its own.
        cpu: seconds of the processor, shared fixtures and first imports included.
        wall: seconds of the clock, the same included.
    """

    test: str
    slow: bool
    own: float
    cpu: float
    wall: float

    @property
    def file(self) -> str:
        """The path of its file."""
        return self.test.partition("::")[0]


def cpu_seconds() -> float:
    """Processor time of this process and of the children it has waited for."""
    spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in spent)


class Apart:
    """Adds up processor time that is no test's own, however deeply what takes it is nested."""

    def __init__(self) -> None:
        self._depth, self._begun, self._before = 0, 0.0, 0.0

    @property
    def seconds(self) -> float:
        """Up to now."""
        return self._before

    def begin(self) -> None:
        """Count what follows."""
        if self._depth == 0:
            self._begun = cpu_seconds()
        self._depth += 1

    def end(self) -> None:
        """Count no longer."""
        self._depth -= 1
        if self._depth == 0:
            self._before += cpu_seconds() - self._begun


class Timing:
    """Measures the tests of a process; without workers, or beside them, it also reports.

    Args:
        config: of the run.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._worker: dict[str, Any] | None = getattr(config, "workeroutput", None)
        self._into: Path | None = config.option.costs
        self._costs: list[Cost] = []
        self._apart = Apart()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        find, apart = _bootstrap._find_and_load, self._apart

        def timed(*given: Any) -> Any:  # called for what is not imported yet
            apart.begin()
            try:
                return find(*given)
            finally:
                apart.end()

        _bootstrap._find_and_load = timed
        try:
            return (yield)
        finally:
            _bootstrap._find_and_load = find

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, object, object]:
        if fixturedef.scope == "function":
            return (yield)
        fixturedef.addfinalizer(self._apart.end)  # the last that runs
        self._apart.begin()
        try:
            return (yield)
        finally:
            self._apart.end()
            fixturedef.addfinalizer(self._apart.begin)  # the first

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        cpu, wall, apart = cpu_seconds(), time.monotonic(), self._apart.seconds
        result = yield
        if result is _LATE:
            return result
        cpu, wall = cpu_seconds() - cpu, time.monotonic() - wall
        own = cpu - (self._apart.seconds - apart)
        slow = item.get_closest_marker("slow") is not None
        self._costs.append(Cost(item.nodeid, slow, own, cpu, wall))
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        costs = getattr(node, "workeroutput", {}).get("costs", ())
        self._costs += [Cost(*each) for each in costs]

    def pytest_sessionfinish(self) -> None:
        if self._worker is not None:
            self._worker["costs"] = [tuple(each) for each in self._costs]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._worker is not None:
            return
        if self._into is not None:
            with self._into.open("a", encoding="utf-8") as file:
                file.writelines(f"{json.dumps(each)}\n" for each in self._costs)
        elif len(self._costs) >= SLOWEST:
            terminalreporter.section("slowest files")
            terminalreporter.write("".join(f"{line}\n" for line in slowest(self._costs)))
        if slow := [each for each in self._costs if not each.slow and each.own > USUAL]:
            terminalreporter.section(f"unmarked tests above {USUAL:g} s of the processor")
            for each in sorted(slow, key=lambda each: each.own):  # the slowest nearest to the end
                terminalreporter.write(f"{each.own:6.1f} s  {each.test}\n")


class Deadline:
    """Begins no file of tests after so many seconds, and names those that were not begun.

    Args:
        config: of the run, which gives each file to one worker.
        seconds: from now on.
    """

    def __init__(self, config: pytest.Config, seconds: float) -> None:
        self._worker: dict[str, Any] | None = getattr(config, "workeroutput", None)
        self._end = time.monotonic() + seconds
        self._begun = ""
        self._late: set[str] = set()

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> object:
        file = item.nodeid.partition("::")[0]
        if file != self._begun and time.monotonic() > self._end:
            self._late.add(file)
            return _LATE
        self._begun = file
        return None

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self._late.update(getattr(node, "workeroutput", {}).get("late", ()))

    def pytest_sessionfinish(self) -> None:
        if self._worker is not None:
            self._worker["late"] = sorted(self._late)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self._late:
            terminalreporter.section(f"not run, for want of time: {len(self._late)} files")
            terminalreporter.write("".join(f"{file}\n" for file in sorted(self._late)))


_LATE = object()
"""What stands for the outcome of a test that was not begun."""


def slowest(costs: Iterable[Cost]) -> list[str]:
    """The files that took most, as lines to print."""
    by_file: defaultdict[str, list[Cost]] = defaultdict(list)
    for each in costs:
        by_file[each.file].append(each)
    cpu: Callable[[str], float] = lambda file: sum(each.cpu for each in by_file[file])  # noqa: E731
    lines = ["   CPU s  wall s  tests"]
    for file in sorted(by_file, key=cpu, reverse=True)[:SLOWEST]:
        wall = sum(each.wall for each in by_file[file])
        lines.append(f"{cpu(file):8.1f}{wall:8.1f}{len(by_file[file]):7}  {file}")
    return lines


def main() -> None:
    """Print the slowest files of runs that have kept their costs."""
    parser = argparse.ArgumentParser(prog="timing", description=main.__doc__)
    parser.add_argument("costs", type=Path, help="what `pytest --costs` has written")
    parser.add_argument("--begun", type=float, required=True, help="when: seconds since 1970")
    given = parser.parse_args()
    costs = [Cost(*json.loads(line)) for line in given.costs.read_text("utf-8").splitlines()]
    minutes, seconds = divmod(round(time.time() - given.begun), 60)
    print("The slowest files:", *slowest(costs), sep="\n")
    print(
        f"{len(costs)} tests, {sum(each.cpu for each in costs):.0f} s of the processor;"
        f" {minutes} min {seconds:02} s in all."
    )


if __name__ == "__main__":
    main()
