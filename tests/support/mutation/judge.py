"""Runs tests against mutants, each in a process of its own that begins warm."""

from __future__ import annotations

import ctypes
import gc
import os
import pkgutil
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from multiprocessing.connection import Connection
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import psutil
import pytest

SURVIVED, KILLED, CAPPED, TIMED_OUT = "survived", "killed", "capped", "timed out"
_CODES = {0: SURVIVED, 1: KILLED, 2: CAPPED, 3: "fresh"}
_PATIENCE, _LEAST_PATIENCE = 20, 5.0
"""A test that takes so many times its usual time, in seconds of the processor, will not end."""
_FRESH_PATIENCE = 30.0
"""The same where nothing is loaded and compiled before the first test."""
_LONGEST_WAIT = 120.0
"""Seconds after which a process that waits for ever is ended."""
_MEMORY = 16 * 2**30
_SHUTDOWN = 3.0
"""Seconds in which a PostgreSQL shuts down before it is killed."""
_SET_CHILD_SUBREAPER = 36
"""`PR_SET_CHILD_SUBREAPER` of Linux's `prctl`."""
QUIET = ("-q", "-p", "no:cacheprovider", "--hypothesis-profile=quick", "--tb=no", "-m", "not slow")
QUIETER = (*QUIET, "-W", "ignore::pytest.PytestAssertRewriteWarning")


def in_a_fork(run: Callable[[], int]) -> str:
    """What a process of its own comes to: 0 is survived, 1 killed, 2 capped.

    Whatever it has started ends with it, servers in sessions of their own included.
    """
    _adopt_orphans(True)
    others = psutil.Process().children()
    pid = os.fork()
    if pid == 0:
        code = 1  # whatever breaks tests from outside of any breaks them
        try:
            os.setsid()
            resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
            nothing = os.open(os.devnull, os.O_RDWR)
            for each in range(3):
                os.dup2(nothing, each)
            code = run()
        finally:
            os._exit(code)
    end = time.monotonic() + _LONGEST_WAIT
    try:
        while (status := os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)) is None:
            if time.monotonic() > end:
                return TIMED_OUT
            time.sleep(0.005)
    finally:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        while left := [each for each in psutil.Process().children() if each not in others]:
            for each in left:
                each.send_signal(signal.SIGQUIT)
            for each in psutil.wait_procs(left, _SHUTDOWN)[1]:
                each.kill()
        _adopt_orphans(False)
    if status.si_code == os.CLD_EXITED:
        return _CODES.get(status.si_status, KILLED)
    return TIMED_OUT if status.si_status == signal.SIGPROF else KILLED


def _adopt_orphans(whether: bool) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, int(whether), 0, 0, 0)


class Chosen:
    """Runs these tests alone, in this order, until one fails or the time is up.

    Args:
        tests: and the seconds that each takes.
        cap: seconds of the processor, after which no other test begins.
        note: file into which the name of the test that runs is written.
    """

    def __init__(self, tests: Mapping[str, float], cap: float, note: Path) -> None:
        self._tests, self._cap, self._note = tests, cap, note
        self.least_patience = _LEAST_PATIENCE
        self.code = 1

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            raise pytest.exit.Exception("killed")

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        named = {item.nodeid: item for item in session.items}
        items = [named[test] for test in self._tests if test in named]
        start = time.process_time()
        for item, following in zip(items, [*items[1:], None], strict=True):
            if time.process_time() - start > self._cap:
                self.code = 2
                return True
            patience = max(self.least_patience, _PATIENCE * self._tests[item.nodeid])
            self._note.write_text(item.nodeid, "utf-8")
            signal.setitimer(signal.ITIMER_PROF, patience)
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        self.code = 0
        return True


def run_fresh(chosen: Chosen, files: Iterable[str]) -> int:
    """Import everything anew and run the chosen tests of these files."""
    chosen.least_patience = _FRESH_PATIENCE
    pytest.main([*QUIETER, *files], plugins=[chosen])
    return chosen.code


class Warm:
    """A process that has imported and collected everything, and forks for each mutant."""

    def __init__(self, connection: Connection, scratch: Path, first: Iterable[str]) -> None:
        self._connection, self._scratch, self._first = connection, scratch, first

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        for each in self._first:
            pkgutil.resolve_name(each)()
        gc.unfreeze()  # see tests/conftest.py
        functions: dict[CodeType, list[FunctionType]] = {}
        for each in gc.get_objects():
            if type(each) is FunctionType and each.__code__.co_filename.startswith(
                str(self._scratch)
            ):
                functions.setdefault(each.__code__, []).append(each)
        gc.freeze()
        self._connection.send(True)
        while (job := self._connection.recv()) is not None:
            path, before, after, chosen = job
            codes = dict(_changed(compile(before, path, "exec"), compile(after, path, "exec")))

            def run(codes: Any = codes, chosen: Any = chosen) -> int:
                swapped = [
                    (function, codes[old])
                    for old, all_of_it in functions.items()
                    if old in codes
                    for function in all_of_it
                ]
                if not swapped:
                    return 3
                for function, code in swapped:
                    function.__code__ = code
                session.config.pluginmanager.register(chosen)
                try:
                    chosen.pytest_runtestloop(session)
                except pytest.exit.Exception:
                    return 1
                return int(chosen.code)

            self._connection.send(in_a_fork(run))
        return True


def _changed(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """All code in these that is not the same, with what it became."""
    if old != new:
        yield old, new
    inner = ([c for c in code.co_consts if isinstance(c, CodeType)] for code in (old, new))
    for one, other in zip(*inner, strict=False):
        yield from _changed(one, other)


def serve_warm(
    connection: Connection, scratch: Path, places: Iterable[str], first: Iterable[str]
) -> None:
    """Be the process of `Warm`, until it is told to end.

    Args:
        connection: over which jobs come.
        scratch: folder of the packages that are mutated.
        places: files of tests.
        first: functions to call before the first job, as `module:function`.
    """
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - as long as the process lives
    pytest.main([*QUIETER, *places], plugins=[Warm(connection, scratch, first)])
