"""Which tests touch which lines, and how long they take: what the tests are chosen by."""

from __future__ import annotations

import functools
import gc
import json
import site
import sys
import time
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import coverage
import pytest


def third_party() -> list[str]:
    """Modules that are imported by now, but for ours: those may be mutated, or import what is."""
    theirs = (sys.base_prefix, *site.getsitepackages())
    return [
        name
        for name, module in sys.modules.items()
        if (getattr(module, "__file__", None) or theirs[0]).startswith(theirs)
    ]


class Baseline:
    """Runs tests as they are; of those that pass, keeps lines and seconds.

    Lines that a fixture of wider scope runs count for every test that uses it, and those that a
    test file runs when it is imported for every test in it.
    """

    def __init__(self, scratch: Path, into: Mapping[str, Path]) -> None:
        self._coverage = coverage.Coverage(
            data_file=None, config_file=False, source=[str(scratch)], messages=False
        )
        self._scratch, self._into = scratch, into
        self._users: defaultdict[str, set[str]] = defaultdict(set)
        self._seconds: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()
        self._modules: list[str] = []
        self._running = ""
        self._caches: list[Any] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: Any) -> Generator[None, Any, Any]:
        if isinstance(collector, pytest.Module):
            self._coverage.switch_context(f"file {collector.nodeid}")
        return (yield)

    def pytest_sessionstart(self) -> None:
        self._coverage.start()

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        gc.unfreeze()  # see tests/conftest.py
        every = gc.get_objects()
        # Asking a weak proxy what it is an instance of asks what it stands for, which may be gone.
        self._caches = [one for one in every if type(one) is functools._lru_cache_wrapper]
        self._modules = third_party()
        for item in session.items:
            self._users[f"file {item.location[0]}"].add(item.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        for cache in self._caches:
            cache.cache_clear()
        self._running = item.nodeid
        self._coverage.switch_context(item.nodeid)
        start = time.perf_counter()
        result = yield
        self._seconds[item.nodeid] = time.perf_counter() - start
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function":
            return (yield)
        context = f"fixture {fixturedef.baseid}::{fixturedef.argname}"
        self._coverage.switch_context(context)
        try:
            return (yield)
        finally:
            self._coverage.switch_context(self._running)

    def pytest_runtest_setup(self, item: Any) -> None:
        for definitions in item._fixtureinfo.name2fixturedefs.values():
            for one in definitions:
                if one.scope != "function":
                    self._users[f"fixture {one.baseid}::{one.argname}"].add(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.outcome != "passed":
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        data = self._coverage.get_data()
        lines: defaultdict[str, dict[str, dict[int, list[str]]]]
        lines = defaultdict(lambda: defaultdict(dict))
        for name in data.measured_files():
            path = Path(name).relative_to(self._scratch).as_posix()
            for line, contexts in data.contexts_by_lineno(name).items():
                tests = {one for each in contexts for one in self._users.get(each, {each})}
                for test in sorted(tests & self._seconds.keys() - self._failed):
                    touched = lines[test.partition("::")[0]][path]
                    touched.setdefault(line, []).append(test.partition("::")[2])
        for file, into in self._into.items():
            seconds = {
                test.partition("::")[2]: taken
                for test, taken in self._seconds.items()
                if test.partition("::")[0] == file and test not in self._failed
            }
            failed = sorted(test for test in self._failed if test.partition("::")[0] == file)
            found = {"seconds": seconds, "lines": lines[file], "failed": failed}
            into.write_text(json.dumps(found | {"modules": self._modules}), "utf-8")
