"""States on the disk: whoever dies, and whatever fills up, costs no bit and no finished step."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from support.deadly import Deadly
from support.networked import await_
from support.simulated import decided

from earshot_simulations import Discovery, PolicyChoice, Settings, SummationChoice, simulate
from earshot_simulations.engine.answers import AnswersOnDisk
from earshot_simulations.engine.states import NEW, NoRoomError, States

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
    return [path.name for path in folder.iterdir() if path.name.startswith("earshot-")]


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


STARTED = """
import sys
from earshot_simulations import PolicyChoice, Settings, SummationChoice, simulate

def wait(what, done, total):
    if done and what != "hear":
        print("begun", flush=True)
        sys.stdin.readline()

options = dict(phones=24, recordings=5, scenes=2, policy=PolicyChoice.ANYTHING)
simulate(Settings(jobs=int(sys.argv[1]), summation=SummationChoice.IDEAL, **options), wait)
"""


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_run_that_is_killed_leaves_neither_processes_nor_states(
    jobs: int, number: signal.Signals, folder: Path
) -> None:
    with subprocess.Popen(  # noqa: S603 - the program is written above
        [sys.executable, "-c", STARTED, str(jobs)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(folder), "NUMBA_DISABLE_JIT": "1"},
    ) as run:
        assert run.stdout is not None
        assert run.stdout.readline() == "begun\n"
        assert len(left_behind(folder)) == 1
        others = psutil.Process(run.pid).children(recursive=True)
        assert len(others) >= jobs  # with one, whoever removes the folder
        run.send_signal(number)
    assert run.returncode == -number
    await_(lambda: not any(map(lives, others)), "the end of all processes")
    assert left_behind(folder) == []


def lives(process: psutil.Process) -> bool:
    try:
        return bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_answers_on_the_disk_are_those_of_a_dictionary_and_leave_nothing_behind(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    chance, opened = random.Random(1), set(os.listdir("/proc/self/fd"))
    plain: dict[int, bytes] = {}
    answers = AnswersOnDisk()
    for _ in range(300):
        phone, answer = chance.randrange(40), chance.randbytes(chance.choice((0, 1, 50_000)))
        plain[phone] = answers[phone] = answer
        if chance.random() < 0.1:
            del plain[phone], answers[phone]
    assert dict(answers) == plain
    assert list(answers) == list(plain)
    assert len(answers) == len(plain)
    assert answers.get(41) is None
    assert left_behind(folder) == []
    del answers
    assert set(os.listdir("/proc/self/fd")) == opened


def test_a_disk_without_room_for_answers_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    answers = AnswersOnDisk()
    answers[1] = b"one"
    with monkeypatch.context() as patched:
        patched.setattr(os, "pwrite", full)
        with pytest.raises(NoRoomError, match=f"{folder}: no room for answers of simulated phones"):
            answers[2] = b"two"
    assert dict(answers) == {1: b"one"}


def test_a_phone_s_state_holds_no_answer() -> None:
    """A report with its proof is as large as all else of a phone together, many times."""
    settings = Settings(
        phones=12,
        recordings=10,
        scenes=3,
        sums=0,
        policy=PolicyChoice.ANYTHING,
        summation=SummationChoice.TWO_OPERATORS,
        jobs=1,
    )
    states: list[int] = []

    class Weighing(States):
        def write(self, shard: int, version: int, states_: Mapping[int, bytes]) -> None:
            states.extend(map(len, states_.values()))
            super().write(shard, version, states_)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("earshot_simulations.engine.local.States", Weighing)
        run = simulate(settings)
    assert run.interrupted is None
    assert len(states) == 12
    assert max(states) < 5_000 < 30_000 < run.steps[1].per_phone(run.steps[1].bytes_up)
