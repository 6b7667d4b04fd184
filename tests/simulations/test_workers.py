"""Processes that work for this one: order, haste, ends, and who may have none."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import psutil
import pytest
from joblib.externals.loky import process_executor
from support.calls import die, numbered, threads_allowed, wait_for
from support.networked import await_

from earshot_simulations.workers import Workers, in_parallel, own_command, usable


def test_below_two_processes_calls_run_here_when_they_are_asked_for() -> None:
    taken = []

    def tasks() -> Iterator[tuple[int]]:
        for number in range(3):
            taken.append(number)
            yield (number,)

    for processes in (0, 1):
        taken.clear()
        found = in_parallel(numbered, tasks(), processes)
        assert next(found) == (0, os.getpid())
        assert taken == [0]
        assert list(found) == [(1, os.getpid()), (2, os.getpid())]
    assert list(in_parallel(numbered, [], 2)) == []


@pytest.mark.slow
def test_results_come_in_order_or_as_they_are_there_and_few_tasks_are_taken_ahead() -> None:
    taken = []
    others = multiprocessing.active_children()

    def tasks() -> Iterator[tuple[int]]:
        for number in range(12):
            taken.append(number)
            yield (number,)

    found = in_parallel(numbered, tasks(), 2)
    numbers = []
    for number, process in found:
        numbers.append(number)
        assert process != os.getpid()
        assert len(taken) <= len(numbers) + 3
    assert numbers == list(range(12))
    assert set(multiprocessing.active_children()) <= set(others)
    unordered = in_parallel(numbered, tasks(), 2, ordered=False)
    assert sorted(number for number, _ in unordered) == list(range(12))


@pytest.mark.slow
def test_a_slow_call_keeps_no_other_result_waiting(tmp_path: Path) -> None:
    go = tmp_path / "go"
    there = tmp_path / "there"
    there.touch()
    found = in_parallel(wait_for, [(go,), (there,)], 2, ordered=False)
    fast = next(found)
    go.touch()
    assert next(found) != fast
    assert list(found) == []


@pytest.mark.slow
def test_whoever_stops_asking_ends_the_processes(tmp_path: Path) -> None:
    others = multiprocessing.active_children()
    found = in_parallel(wait_for, [(tmp_path,), (tmp_path / "never",)], 2)
    process = psutil.Process(next(found))
    found.close()  # type: ignore[attr-defined]
    assert not process.is_running()
    assert set(multiprocessing.active_children()) <= set(others)


@pytest.mark.slow
def test_processes_share_the_cores_and_a_death_has_a_name() -> None:
    import joblib

    with pytest.raises(BrokenProcessPool):
        list(in_parallel(die, [()], 2))
    fair = str(max(1, joblib.cpu_count() // 2))
    before = dict(os.environ)
    assert list(in_parallel(threads_allowed, [()], 2)) == [fair]
    assert dict(os.environ) == before


@pytest.mark.slow
def test_nothing_is_said_about_a_call_that_the_end_comes_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Loky's thread hears of the call and of the end together."""
    said: list[threading.ExceptHookArgs] = []
    others = multiprocessing.active_children()
    monkeypatch.setattr(threading, "excepthook", said.append)
    manager = process_executor._ExecutorManagerThread
    wait = manager.wait_result_broken_or_wakeup

    def late(self: Any) -> Any:
        woken = wait(self)
        time.sleep(0.5)
        return woken

    monkeypatch.setattr(manager, "wait_result_broken_or_wakeup", late)
    workers = Workers(2, 1)
    workers.submit(wait_for, tmp_path / "never")
    workers.submit(wait_for, tmp_path / "never")
    workers.close()
    assert said == []
    assert set(multiprocessing.active_children()) <= set(others)


PARENT = """
import sys, time
from earshot_simulations.workers import spawned, Workers
import os
if __name__ == "__main__":
    for pool in (spawned(1), Workers(1, 1)):
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 600)
    sys.stdin.readline()
"""


@pytest.mark.slow
def test_processes_of_every_kind_end_with_their_parent(tmp_path: Path) -> None:
    program = tmp_path / "parent.py"
    program.write_text(PARENT)
    with subprocess.Popen(  # noqa: S603 - the program is written above
        [sys.executable, program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as parent:
        assert parent.stdout is not None
        numbers = [int(parent.stdout.readline()) for _ in range(2)]
        assert all(map(psutil.pid_exists, numbers))
        parent.kill()
    await_(lambda: not any(map(psutil.pid_exists, numbers)), "the end of the processes")


@pytest.mark.slow
def test_our_own_command_runs_and_ends_with_its_parent(tmp_path: Path) -> None:
    done = subprocess.run(  # noqa: S603 - our own command
        own_command("helper", "--help"), capture_output=True, text=True, check=True
    )
    assert "earshot helper" in done.stdout
    words = own_command("serve", "--data", str(tmp_path / "data"), "--port", "0", "--workers", "1")
    # An intermediate process, whose number the command is given, starts it and is killed.
    program = (
        "import os, subprocess, sys, time; words = sys.argv[1:]; words[3] = str(os.getpid()); "
        "print(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).pid, "
        "flush=True); time.sleep(600)"
    )
    with subprocess.Popen(  # noqa: S603 - the program is written above
        [sys.executable, "-c", program, *words], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        number = int(parent.stdout.readline())
        await_(lambda: (tmp_path / "data").exists() or not psutil.pid_exists(number), "a start")
        assert psutil.pid_exists(number)
        parent.kill()
    await_(lambda: not psutil.pid_exists(number), "the end of the command")


def test_a_daemonic_process_works_alone() -> None:
    assert usable(2) == 2
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(usable, (2,)) == 1


def test_a_process_whose_parent_is_gone_already_ends_at_once() -> None:
    program = "import time, earshot_server.processes.parent as p; p.end_with(1); time.sleep(600)"
    done = subprocess.run([sys.executable, "-c", program], check=False, timeout=60)  # noqa: S603
    assert done.returncode == 1
