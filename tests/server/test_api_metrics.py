"""Figures for Prometheus, of one process and of several together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.api_caller import Server, problem_of

from earshot_protocol.api import ENROL, RESULTS, TASK
from earshot_protocol.errors import WrongStateError
from earshot_server.api.figures import StoredFigures
from earshot_server.api.metrics import Metrics
from earshot_server.store.database import Database

Name = tuple[str, tuple[tuple[str, str], ...]]

WORKER = """
import sys
from pathlib import Path
from flask import Flask
from earshot_server.api.metrics import Metrics

class Stored:
    def describe(self):
        return ()

    def collect(self):
        from prometheus_client.core import GaugeMetricFamily
        yield GaugeMetricFamily("earshot_phones", "Phones enrolled", 7)

metrics = Metrics(Stored(), Path(sys.argv[1]))
for _ in range(int(sys.argv[2])):
    with Flask("worker").test_request_context("/"):
        metrics.count(200, 0.5)
print(metrics.respond().get_data(as_text=True))
"""


def figures(text: str) -> dict[Name, float]:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def requests(endpoint: str, method: str, status: int) -> Name:
    labels = (("endpoint", endpoint), ("method", method), ("status", str(status)))
    return "earshot_requests_total", labels


def test_requests_problems_and_phones_are_counted(database: Database, tmp_path: Path) -> None:
    server = Server.over(database, tmp_path)
    for _ in range(3):
        server.phone()
    for _ in range(2):
        server.get(RESULTS)
    server.get(TASK)
    problem_of(server.get("/v1/made/up/by/a/stranger"), 404, "unknown-path")
    server.app.test_client().open("/v1/task", method="MADEUP")
    found = figures(server.read("/metrics").text)
    assert found[requests(RESULTS, "GET", 200)] == 2
    assert found[requests(ENROL, "POST", 200)] == 3
    assert found[requests("none", "none", 404)] == 1
    assert found[requests("none", "none", 405)] == 2
    assert found["earshot_phones", ()] == 3
    assert found["earshot_database_bytes", ()] > 1e6
    assert found["earshot_problems_total", (("kind", "method"),)] == 2
    assert found["earshot_problems_total", (("kind", "unknown-path"),)] == 1
    assert found["earshot_request_seconds_count", (("endpoint", RESULTS),)] == 2
    assert not any("made" in str(labels).lower() for _, labels in found)


def test_workers_are_counted_together(tmp_path: Path) -> None:
    def work(times: int) -> dict[Name, float]:
        # S603: the program is written a few lines from here.
        run = subprocess.run(  # noqa: S603
            [sys.executable, "-c", WORKER, str(tmp_path), str(times)],
            capture_output=True,
            check=True,
            text=True,
        )
        return figures(run.stdout)

    assert work(3)[requests("none", "none", 200)] == 3
    found = work(4)
    assert found[requests("none", "none", 200)] == 7
    assert found["earshot_request_seconds_sum", (("endpoint", "none"),)] == 3.5
    # What all of them read in one place is not added up.
    assert found["earshot_phones", ()] == 7


def test_a_folder_that_comes_too_late_is_refused(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "")  # so that it is put back afterwards
    Metrics(StoredFigures(database))
    with pytest.raises(WrongStateError, match="before its folder was known"):
        Metrics(StoredFigures(database), tmp_path)
