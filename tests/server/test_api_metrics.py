"""Figures for Prometheus, of one process and of several together."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from support.api_caller import Server, problem_of

from earshot_protocol.api import ENROL, RESULTS, TASK
from earshot_server.api.metrics import Metrics
from earshot_server.api.shared_counts import PART, SharedCounts
from earshot_server.store.database import Database

Name = tuple[str, tuple[tuple[str, str], ...]]

WORKERS = """
import os, signal, sys
from flask import Flask
from earshot_server.api.metrics import Metrics
from earshot_server.api.shared_counts import SharedCounts

class Stored:
    def describe(self):
        return ()

    def collect(self):
        from prometheus_client.core import GaugeMetricFamily
        yield GaugeMetricFamily("earshot_phones", "Phones enrolled", 7)

counts = SharedCounts(2)

def work(part, times):
    worker = os.fork()
    if worker:
        os.waitpid(worker, 0)
        return
    counts.take(part)
    metrics = Metrics(Stored(), counts)
    for _ in range(times):
        with Flask("worker").test_request_context("/"):
            metrics.count(200, 0.5)
    if part is None:
        print(metrics.respond().get_data(as_text=True))
        sys.stdout.flush()
    os.kill(os.getpid(), signal.SIGKILL)

for part, times in ((0, 3), (1, 4), (0, 10), (None, 100)):
    work(part, times)
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


def test_workers_are_counted_together_and_what_killed_ones_counted_stays() -> None:
    # S603: the program is written a few lines from here.
    run = subprocess.run(  # noqa: S603
        [sys.executable, "-c", WORKERS], capture_output=True, check=True, text=True
    )
    found = figures(run.stdout)
    assert found[requests("none", "none", 200)] == 3 + 4 + 10  # nobody sees those without a part
    assert found["earshot_request_seconds_sum", (("endpoint", "none"),)] == 17 * 0.5
    # What all of them read in one place is not added up.
    assert found["earshot_phones", ()] == 7


def test_seconds_are_in_classes_as_prometheus_counts_them(
    database: Database, tmp_path: Path
) -> None:
    """The same as its own client's histogram, from which the words for bounds come, too."""
    from prometheus_client import CollectorRegistry, Histogram, generate_latest

    server, registry = Server.over(database, tmp_path), CollectorRegistry()
    oracle = Histogram("earshot_request_seconds", "x", ("endpoint",), registry=registry)
    counts = SharedCounts()
    metrics = Metrics(registry, counts)
    took = (0.0, 0.004, 0.005, 0.00501, 0.3, 0.3, 9.9, 10.0, 10.1, 1e6)
    for seconds in took:
        oracle.labels("none").observe(seconds)
        with server.app.test_request_context("/nothing"):
            metrics.count(200, seconds)
    expected = {
        key: value
        for key, value in figures(generate_latest(registry).decode()).items()
        if not key[0].endswith("_created")
    }
    ours = CollectorRegistry()
    ours.register(metrics)
    found = figures(generate_latest(ours).decode())
    assert len(expected) == len(oracle.DEFAULT_BUCKETS) + 2
    assert {key: found[key] for key in expected} == pytest.approx(expected)


def test_counts_that_find_no_room_are_lost_and_nothing_else() -> None:
    counts = SharedCounts()
    names = [("x" * 1000, str(number)) for number in range(2 * PART // 1000)]
    for name in names:
        counts.add(name, (1.0, 2.0))
    for name in (names[0], names[-1]):
        counts.add(name, (1.0, 2.0))
    kept = counts.totals()
    assert PART * 0.9 < 1000 * len(kept) < PART
    assert kept == {name: [2.0, 4.0] if name == names[0] else [1.0, 2.0] for name in kept}


def test_those_who_come_one_after_the_other_take_the_room_of_one() -> None:
    counts, name = SharedCounts(), ("x" * 1000,)
    for _ in range(2 * PART // 1000):
        counts.take(0)
        counts.add(name, (1.0,))
    assert counts.totals() == {name: [2 * PART // 1000]}


def test_a_request_is_answered_even_if_it_cannot_be_counted(
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(*arguments: object) -> None:
        raise OSError("no such folder")

    server = Server.over(database, tmp_path)
    monkeypatch.setattr(SharedCounts, "add", fail)
    for _ in range(3):
        assert server.get("/health/live").status_code == 200
        assert server.get(RESULTS).status_code == 200
        assert server.read("/metrics").status_code == 200
    (line,) = (each for each in caplog.records if each.exc_info)
    assert "neither counted nor logged" in line.message
