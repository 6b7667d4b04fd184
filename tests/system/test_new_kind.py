"""A kind of phase is added with one file a side, and nothing is touched but the lists of kinds."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.unsafe_postgres import UNSAFE

from earshot_server.processes.embedded import embedded
from earshot_server.store.database import Database

FOLDER = Path(__file__).parent
STEPS = [f"number: {name}" for name in ("advertise keys", "share keys", "masked input", "unmask")]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("mean")
    with embedded(folder / "database", UNSAFE) as postgres:
        database = Database(postgres.url)
        database.migrate()
        database.close()
        # S603: the program is ours.
        run = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "mean_phase.program", postgres.url, str(folder)],
            cwd=FOLDER,
            env={**os.environ, "PYTHONPATH": os.pathsep.join([str(FOLDER), *sys.path])},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert run.returncode == 0, run.stderr
        with psycopg.connect(postgres.url) as connection:
            kinds = connection.execute("SELECT kind FROM gatherings").fetchall()
        return json.loads(run.stdout) | {"kinds": kinds}


def test_it_is_three_small_files() -> None:
    lines = {
        name: len((FOLDER / "mean_phase" / name).read_text(encoding="utf-8").splitlines())
        for name in ("shared.py", "phone.py", "server.py")
    }
    assert max(lines.values()) <= 90, lines


@pytest.mark.parametrize("run", ["exact", "noisy"])
def test_the_simulator_runs_it_with_dropouts(ran: Any, run: str) -> None:
    course = ran[run]
    assert course["steps"] == STEPS
    assert course["notes"] == []
    assert course["answered"] == course["phones"] < 200
    assert course["released"] == [["number", "recording"], ["number", "phone"]]
    if run == "exact":
        assert course["total"] == course["expected"]
    else:
        # Discrete Laplace noise of scale 24 at most doubled: ten scales are e^-10.
        assert course["total"] != course["expected"]
        assert abs(course["total"] - course["expected"]) < 480


def test_it_runs_over_http(ran: Any) -> None:
    over_http = ran["http"]
    assert (over_http["status"], over_http["failure"]) == ("published", "")
    assert over_http["total"] == 10 + 11 + 8 * 12
    assert over_http["steps"] == STEPS
    assert ran["kinds"] == [("mean",)]
    for ledger in over_http["ledgers"]:
        assert [(entry["step"], entry["unit"]) for entry in ledger] == [
            ("number", "recording"),
            ("number", "phone"),
        ]


def test_the_dashboard_shows_it(ran: Any) -> None:
    overview, page = ran["http"]["pages"]
    assert "Mean phase" in overview
    assert "10 of 10 phones stayed to the end" in page
    assert "<td>117</td>" in page
    for step in STEPS:
        assert step.capitalize() in page
    assert "clipped sum with discrete Laplace noise" in page
    assert "Largest" in page
