from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import psutil
import pytest
from support.command import earshot

from earshot_protocol.messages import decode_answer, decode_task
from earshot_protocol.phases.labelling import LabelSamples
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.phases.labelling import LabellingPhase
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.benchmarks import closing, closing_stores
from earshot_simulations.benchmarks.closing_phones import CheapPhones

ROUNDS = ("advertise keys", "share keys", "masked input", "unmask")


@pytest.mark.slow
@pytest.mark.parametrize("store", ["memory", "postgres"])
def test_the_command_closes_the_four_steps_and_measures_each(store: str) -> None:
    asked = ["bench", "closing", "--phones", "60", "--length", "9", "--dropout", "0.1", "--json"]
    done = earshot(*asked, *(["--postgres"] if store == "postgres" else []))
    assert done.returncode == 0, done.stderr
    rows = json.loads(done.stdout)["steps"]
    assert [row["step"] for row in rows] == [f"votes: {name}" for name in ROUNDS]
    assert [row["answers"] for row in rows] == [60, 60, 54, 54]
    for row in rows:
        assert row["floor_seconds"] > 0
        assert 0 < row["cpu_seconds"] <= row["seconds"] + 0.1
        assert row["before_mb"] <= row["peak_mb"] < 1000


def test_a_process_of_the_database_that_ends_meanwhile_has_spent_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    gone, own = psutil.Process(ended.pid), psutil.Process()
    ended.wait()
    monkeypatch.setattr(closing_stores, "database_process", lambda url: own.pid)
    monkeypatch.setattr(closing_stores, "family", lambda process: [process, gone])
    before = own.cpu_times()
    found = closing_stores.OnPostgres("").database_cpu_seconds()
    assert found >= before.user + before.system + before.children_user + before.children_system


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_cheap_phones_make_the_total_that_they_say(dropout: float) -> None:
    """Their answers pass every check of the front door, and what is unmasked is their votes."""
    parameters = closing._parameters(60, 9, dropout)
    coordinator = Coordinator.start(MemoryPhaseStore(), Optics(), parameters, 0.0)
    opening = decode_task(coordinator._store.present_step(coordinator.phase).common)
    assert isinstance(opening, LabelSamples)
    phones = CheapPhones(opening, range(60 - round(60 * (1 - dropout))))
    for number in range(4):
        tasks = [
            (phone, task)
            for phone in range(60)
            if (task := coordinator._store.assignment(coordinator.phase, phone).task) is not None
        ]
        for phone, answer in phones.answers(tasks) if number else phones.advertised():
            coordinator.accept(phone, decode_answer(answer))
        assert coordinator.advance(1e9 * (number + 1))
    state = coordinator.state
    assert isinstance(state, LabellingPhase)
    assert np.array_equal(state.label_votes, phones.total())
    assert phones.total().sum() == round(60 * (1 - dropout)) * 3


@pytest.mark.parametrize(
    ("sizes", "length", "dropout", "named"),
    [
        ("2", "10", "0.05", "phones"),
        ("100,x", "10", "0.05", "phones"),
        ("100", "0", "0.05", "length"),
        ("100", "100000", "0.05", "length"),
        ("100", "10", "1", "dropout"),
    ],
)
def test_numbers_out_of_range_are_named_before_any_work(
    sizes: str, length: str, dropout: str, named: str
) -> None:
    asked = ["closing", "--phones", sizes, "--length", length, "--dropout", dropout]
    done = earshot("bench", *asked)
    assert done.returncode == 2
    assert named in done.stderr
