"""States on the disk: whoever dies, and whatever fills up, costs no bit and no finished step."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import pytest
from support.deadly import Deadly
from support.simulated import decided

from earshot_simulations import Discovery, Settings, SummationChoice, simulate
from earshot_simulations.engine.states import NEW, States

SETTINGS = Settings(
    discovery=Discovery.LOCAL,
    summation=SummationChoice.IDEAL,
    phones=120,
    recordings=10,
    scenes=3,
    dropout=0.1,
    jobs=1,
    seed=3,
)


def left_behind(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if path.name.startswith("earshot-phones-")]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_states_are_kept_by_shard_and_version(tmp_path: Path) -> None:
    states = States(tmp_path, 10)
    assert states.read(3, NEW) == {}
    states.write(3, 1, {30: b"first", 31: b""})
    states.write(3, 2, {30: b"second"})
    assert states.read(3, 1) == {30: b"first", 31: b""}
    assert states.read(3, 2) == {30: b"second"}
    states.forget(3, 1)
    states.forget(3, 1)
    assert [path.name for path in tmp_path.iterdir()] == ["3-2"]


def test_a_run_leaves_nothing_on_the_disk(folder: Path) -> None:
    assert simulate(SETTINGS).interrupted is None
    assert left_behind(folder) == []


def test_an_interrupted_run_leaves_nothing_on_the_disk(folder: Path) -> None:
    seen: list[int] = []

    def interrupt(what: str, done: int, total: int) -> None:
        if what == "centroid vote: share keys" and done:
            seen.extend(1 for _ in left_behind(folder))
            raise KeyboardInterrupt

    run = simulate(replace(SETTINGS, jobs=2), interrupt)
    assert run.interrupted == "interrupted in the step 'centroid vote: share keys'"
    assert seen == [1]
    assert left_behind(folder) == []


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["LocalCentroids", "SharedKeys", "MaskedInput"])
def test_a_killed_process_costs_no_bit(
    answer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = replace(SETTINGS, summation=SummationChoice.REAL)
    whole = simulate(settings)
    deadly = Deadly(folder=tmp_path, phone=77, answer=answer, spared=os.getpid())
    monkeypatch.setattr(Settings, "attack", lambda *given: deadly)
    run = simulate(replace(settings, jobs=2))
    assert (tmp_path / "death-0").exists()
    assert decided(run) == decided(whole)
    assert left_behind(tmp_path) == []


@pytest.mark.slow
def test_processes_that_die_without_end_are_an_error_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadly = Deadly(folder=tmp_path, phone=77, answer="SharedKeys", times=100, spared=os.getpid())
    monkeypatch.setattr(Settings, "attack", lambda *given: deadly)
    run = simulate(replace(SETTINGS, jobs=2))
    assert run.interrupted is not None
    assert run.interrupted.startswith("interrupted in the step 'centroid vote: share keys': ")
    assert "died 3 times in a row" in run.interrupted
    assert [step.step for step in run.steps][-1] == "centroid vote: advertise keys"
    assert run.found.global_centroids is not None


FULL = """
import resource, signal, sys
from earshot_client.command import main

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
sys.argv = ["earshot", "simulate", *sys.argv[2:]]
main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_a_disk_that_fills_ends_the_run_by_name_and_keeps_finished_steps(
    jobs: int, folder: Path
) -> None:
    """The first steps' states are small; then they hold what was agreed with each neighbour."""
    options = ("--discovery", "local", "--phones", "200", "--recordings", "5", "--scenes", "3")
    room = 60_000 // jobs  # a shard is half as large in twice as many processes
    # Lines are not counted in these processes: coverage's own file would find no room either.
    uncounted = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
    done = subprocess.run(  # noqa: S603 - the program is written above
        [sys.executable, "-c", FULL, str(room), *options, "--jobs", str(jobs), "--json"],
        capture_output=True,
        text=True,
        check=False,
        env={**uncounted, "TMPDIR": str(folder), "NUMBA_DISABLE_JIT": "1"},
    )
    assert done.returncode == 1, done.stderr
    told = json.loads(done.stdout)
    assert "interrupted in the step 'centroid vote: share keys': " in told["interrupted"]
    assert str(folder / "earshot-phones-") in told["interrupted"]
    assert "no room for the states of simulated phones, which need about" in told["interrupted"]
    assert told["bytes_up_per_phone"]["local centroids"] > 0
    assert told["global_centroids"] > 0  # what was discovered is kept
    assert "Traceback" not in done.stderr
    assert left_behind(folder) == []


KILLED = """
import os, signal
from earshot_simulations import Discovery, Settings, SummationChoice, simulate

def kill(what, done, total):
    if what == "centroid vote: share keys" and done:
        print("killed", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

options = dict(phones=200, recordings=5, scenes=3, jobs=1, summation=SummationChoice.IDEAL)
simulate(Settings(discovery=Discovery.LOCAL, **options), kill)
"""


@pytest.mark.slow
def test_a_run_that_is_killed_leaves_nothing_on_the_disk_for_long(folder: Path) -> None:
    done = subprocess.run(  # noqa: S603 - the program is written above
        [sys.executable, "-c", KILLED],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "TMPDIR": str(folder), "NUMBA_DISABLE_JIT": "1"},
    )
    assert (done.returncode, done.stdout) == (-signal.SIGKILL, "killed\n")
    until = time.monotonic() + 30
    while left_behind(folder) and time.monotonic() < until:
        time.sleep(0.1)
    assert left_behind(folder) == []
