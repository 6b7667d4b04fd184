"""What `earshot bench api` counts, without a server: tests/system/test_bench_api.py has one."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_simulations.benchmarks.api import benchmark, phones, usage
from earshot_simulations.benchmarks.api.benchmark import Setup
from earshot_simulations.benchmarks.api.report import table
from earshot_simulations.benchmarks.api.server import complaints, enrol

SETUP = Setup(
    phones=100,
    over_http=100,
    dropout=0.1,
    step_seconds=10.0,
    workers=1,
    processes=1,
    seed=3,
)
NOWHERE = "http://127.0.0.1:9"


def test_as_many_vanish_as_are_asked_for_and_a_few_more_may() -> None:
    members = SETUP.members("")
    steps = len(SETUP.parameters().plan().steps)
    gone = [member for member in members if member.answers < steps]
    assert (steps, len(gone)) == (9, 10)
    assert sorted(member.number for member in members) == list(range(100))
    assert len({member.key for member in members}) == 100
    assert {member.name for member in members} == {""}
    assert SETUP.parameters().least_survivors == 89
    # Nobody vanishes: nobody may.
    assert replace(SETUP, dropout=0.0).parameters().least_survivors == 100


def test_phones_with_one_key_are_not_enrolled_together() -> None:
    with pytest.raises(InvalidInputError, match="the same key"):
        enrol("postgresql://nobody@127.0.0.1:9/none", [bytes(32), bytes(32)])


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("workers", {"workers": 0}),
        ("processes", {"processes": 0}),
        ("seed", {"seed": -1}),
        ("enrol", {"over_http": -1}),
        ("dropout", {"dropout": 0.6}),
    ],
)
def test_numbers_that_cannot_be_measured_are_named(name: str, wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidParametersError, match=name):
        replace(SETUP, **wrong).check()


def figures(seconds: dict[str, list[float]], late: list[float]) -> phones.Figures:
    return phones.Figures(seconds, late, Counter(), 300, 200, 4.0, 2**20)


def test_percentiles_are_over_all_processes_and_kinds_are_apart() -> None:
    hundred = [n / 1000 for n in range(1, 101)]
    both = [
        figures({"task": hundred[::2], "answer": [2.0]}, hundred[::2]),
        figures({"task": hundred[1::2], "answer": [4.0]}, hundred[1::2]),
    ]
    found = benchmark._requests(both, 51.0)
    assert (found["requests"], found["requests_per_second"]) == (102, 2.0)
    # Between the 99 gaps of 1 to 100 lies each percentile at 1 + 99 · p.
    assert found["task_p50_ms"] == pytest.approx(50.5)
    assert found["task_p95_ms"] == pytest.approx(95.05)
    assert found["task_p99_ms"] == pytest.approx(99.01)
    assert (found["answer_p50_ms"], found["request_longest_ms"]) == (pytest.approx(3e3), 4e3)
    assert found["enrol_requests"] == 0
    assert "enrol_p50_ms" not in found
    spent = benchmark._generator(both, 16.0)
    assert spent["phones_cpu_seconds"] == 8.0
    assert spent["phones_peak_memory_mb"] == 2.0
    assert (spent["answers_bytes"], spent["tasks_bytes"]) == (600, 400)
    assert spent["phones_late_p95_ms"] == pytest.approx(95.05)


def test_the_table_says_what_failed() -> None:
    kept = Path(__file__).resolve().parents[2] / "docs" / "scale-api.json"
    found = json.loads(kept.read_text())
    assert "No request failed." in table(found)
    failed = found | {"status": "failed", "failure": "too few", "errors": {"E: no": 1234}}
    assert "It failed: too few." in table(failed)
    assert "Errors: 1,234 × E: no" in table(failed)
    # Nobody enrolled over HTTP.
    assert "| enrol |" not in table(found | {"enrol_requests": 0})


def test_what_the_server_logged_as_errors_is_told(tmp_path: Path) -> None:
    lines = [
        "not JSON, but a warning of a library",
        json.dumps({"level": "INFO", "message": "step closed"}),
        json.dumps({"level": "ERROR", "message": "internal error", "exc_info": "KeyError: 3"}),
        *[json.dumps({"level": "CRITICAL", "message": f"no {n}"}) for n in range(20)],
    ]
    (tmp_path / "server.log").write_text("\n".join(lines))
    found = complaints(tmp_path)
    assert found[:2] == ["internal error: KeyError: 3", "no 0"]
    assert len(found) == 10


def test_a_fault_of_ours_ends_the_phones_and_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: object, one: object) -> float:
        raise ValueError("a mistake")

    monkeypatch.setattr(phones._Process, "_turn", broken)
    with pytest.raises(ValueError, match="a mistake"):
        phones.run_phones(NOWHERE, "", 100, SETUP.members(""), 3)


def test_every_phone_takes_its_turns_until_it_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: Counter[int] = Counter()

    def turn(self: object, one: phones._Phone) -> float | None:
        turns[id(one)] += 1
        return None if turns[id(one)] == 3 else 0.001

    monkeypatch.setattr(phones._Process, "_turn", turn)
    found = phones.run_phones(NOWHERE, "", 100, SETUP.members(""), 3)
    assert len(turns) == 100
    assert set(turns.values()) == {3}
    assert len(found.late) == 300
    assert min(found.late) >= 0
    assert found.errors == Counter()


def test_the_peak_of_a_process_is_what_it_held_and_not_what_it_holds() -> None:
    held = np.ones(8 * 2**20)  # 64 MiB
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    del held
    found = usage.peak_memory(psutil.Process())
    assert found == pytest.approx(before, rel=0.05)


SUPERVISOR = """
import multiprocessing, subprocess, sys, time
def driver(): time.sleep(600)
def web():
    worker = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    time.sleep(600)
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    for target in (driver, web):
        context.Process(target=target, daemon=True).start()
    print("there", flush=True)
    time.sleep(600)
"""


def test_a_server_s_processes_are_told_apart(tmp_path: Path) -> None:
    script = tmp_path / "supervisor.py"
    script.write_text(SUPERVISOR)
    # S603: our own script.
    server = subprocess.Popen(  # noqa: S603
        [sys.executable, str(script)], stdout=subprocess.PIPE, start_new_session=True
    )
    process = psutil.Process(server.pid)
    try:
        while sum(len(members) for members in usage.roles(process).values()) < 3:
            assert server.poll() is None
        found = usage.roles(process)
        assert {name: len(members) for name, members in found.items()} == {"driver": 1, "web": 2}
        assert found["web"][1] in found["web"][0].children()
    finally:
        for each in reversed(usage.family(process)):
            each.kill()
        server.communicate()
    assert usage.family(process) == []
    assert usage.roles(process) == {"driver": [], "web": []}
    assert usage.cpu_seconds(process) == 0
    assert usage.peak_memory(process) == 0
