"""A run of tests prints what they cost, lists slow ones, and stops between files."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from support import timing

CONFTEST = Path(__file__).parents[1] / "conftest.py"
SPENDING = """\
import subprocess
import sys
import time
from pathlib import Path

import pytest


def spend():
    end = time.process_time() + 0.15
    while time.process_time() < end:
        pass


@pytest.fixture(scope="module")
def shared():
    spend()
    yield
    spend()


@pytest.fixture
def own():
    spend()
    yield


def test_that_shares(shared): ...
def test_that_imports():
    import heavy
def test_that_calls():
    spend()
def test_that_prepares(own): ...
def test_that_starts_a_process():
    subprocess.run([sys.executable, Path(__file__).with_name("heavy.py")], check=True)
@pytest.mark.slow
def test_that_is_marked():
    spend()
"""
WAITING = """\
import clock
def test_first():
    clock.now += 100
def test_second(): ...
"""


def run(folder: Path, *words: str, **files: str) -> int:
    """The exit status of a run of these files, with our own conftest.py beside them."""
    (folder / "conftest.py").write_text(CONFTEST.read_text("utf-8"), "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow\npythonpath = .\n", "utf-8")
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, "utf-8")
    quiet = ("-q", "-p", "no:cacheprovider", "--import-mode=importlib", f"--rootdir={folder}")
    return pytest.main([*quiet, *words, str(folder)])


@pytest.mark.parametrize("workers", [(), pytest.param(("-n", "1"), marks=pytest.mark.slow)])
def test_unmarked_tests_that_take_long_themselves_are_listed(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    workers: tuple[str, ...],
) -> None:
    """What the first test of a file pays for all, setting up and importing, is not its own."""
    monkeypatch.setattr(timing, "USUAL", 0.1)
    heavy = "import time\nend = time.process_time() + 0.15\nwhile time.process_time() < end: pass\n"
    costs = tmp_path / "costs"
    name = f"test_costs_{len(workers)}"  # one process imports a name once
    assert run(tmp_path, *workers, f"--costs={costs}", **{name: SPENDING}, heavy=heavy) == 0
    printed = capsys.readouterr().out
    listed = {line.split("::")[1].split()[0] for line in printed.splitlines() if " s  " in line}
    assert listed == {"test_that_calls", "test_that_prepares", "test_that_starts_a_process"}
    kept = [timing.Cost(*json.loads(line)) for line in costs.read_text("utf-8").splitlines()]
    assert [each.slow for each in kept] == [False] * 5 + [True]
    assert {each.file for each in kept} == {f"{name}.py"}
    assert min(each.cpu for each in kept) > 0.14
    command = [sys.executable, timing.__file__, str(costs), f"--begun={time.time() - 61}"]
    shown = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603
    assert f"6  {name}.py" in shown
    assert "6 tests" in shown
    assert "1 min " in shown or "2 min " in shown  # a busy machine is slow to start it


def test_no_file_is_begun_when_the_time_is_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setitem(sys.modules, "clock", clock)  # type: ignore[arg-type]
    monkeypatch.setattr(timing, "time", clock)
    costs = tmp_path / "costs"
    words = ("--begin-within=50", f"--costs={costs}")
    assert run(tmp_path, *words, test_early=WAITING, test_late=WAITING) == 0
    printed = capsys.readouterr().out
    assert "2 passed" in printed
    assert "not run, for want of time: 1 files" in printed
    assert "\ntest_late.py\n" in printed
    assert len(costs.read_text("utf-8").splitlines()) == 2


@pytest.mark.slow
def test_files_that_no_worker_began_are_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tests = "def test_it(): ...\n"
    words = ("-n", "2", "--dist=loadfile", "--begin-within=-1")
    assert run(tmp_path, *words, test_a=tests, test_b=tests) == 0
    printed = capsys.readouterr().out
    assert "not run, for want of time: 2 files\n" in printed.replace("=", "").replace(" \n", "\n")
