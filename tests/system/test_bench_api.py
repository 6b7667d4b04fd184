"""`earshot bench api`: a whole phase over HTTP, measured."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from earshot_simulations.benchmarks.api.benchmark import Setup, benchmark
from earshot_simulations.benchmarks.slow_clients import SlowClients, endless_trailers

pytestmark = pytest.mark.slow


def measured(*options: str) -> dict[str, Any]:
    run = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "earshot_client", "bench", "api", "--json", *options],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert run.returncode == 0, run.stderr
    figures: dict[str, Any] = json.loads(run.stdout)
    assert figures["status"] == "published"
    assert figures["errors"] == {}
    assert figures["server_errors"] == []
    return figures


def test_a_small_phase_is_run_and_measured_beside_clients_that_are_slow() -> None:
    # As few phones stay as may. Closing a step takes a busy machine as long as a step: that must
    # not be taken from the phones, or the next step is over when it opens.
    phones = ("--phones", "16", "--enrol", "10", "--dropout", "0.125", "--processes", "1")
    figures = measured(*phones, "--step-seconds", "8", "--slow", "60")
    assert (figures["phones"], figures["answered_last"]) == (16, 14)
    # Six are in the registry before; who stays answers nine steps, having asked at least as often.
    assert figures["enrol_requests"] == 10
    assert figures["answer_requests"] >= 9 * 14
    assert figures["task_requests"] >= 9 * 14
    for name in ("enrol", "task", "answer"):
        p50, p95, p99 = (figures[f"{name}_p{percent}_ms"] for percent in (50, 95, 99))
        assert 0 < p50 <= p95 <= p99
    assert figures["request_p99_ms"] <= figures["request_longest_ms"]
    assert figures["floor_request_p95_ms"] > 0
    assert figures["floor_commit_p95_ms"] > 0
    for name in ("driver", "web", "postgresql", "phones"):
        assert figures[f"{name}_cpu_seconds"] > 0
        assert 20 < figures[f"{name}_peak_memory_mb"] < 2000
    # What fourteen phones sent, of which each seals a share for at least thirteen neighbours.
    assert figures["answers_bytes"] > 14 * 13 * 100
    assert figures["slow_connections_made"] > 60  # some were cut off and came again
    assert figures["live_unanswered"] == 0
    assert figures["live_p50_ms"] > 0


def test_two_hundred_slow_clients_do_not_disturb_fifty_phones() -> None:
    """For a minute: some phones vanish, and each of nine steps waits for them.

    Who is held up behind a slow client until that one is cut off, ten seconds and more, misses a
    step. How long a request takes is for `docs/operations.md`, measured on an idle machine: here
    other tests take the cores.
    """
    phones = ("--phones", "50", "--dropout", "0.1", "--step-seconds", "15")
    figures = measured(*phones, "--slow", "200")
    assert figures["seconds"] >= 60
    assert figures["slow_connections_made"] > 200
    assert figures["answered_last"] == 45
    assert figures["answer_requests"] >= 9 * 45
    assert figures["live_unanswered"] == 0


def test_two_hundred_endless_trailers_do_not_disturb_fifty_phones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nobody has said who they are when they send them; once, a dozen took half a gibibyte.

    No phone vanishes, so no step waits, and none has to end while the machine does other things.
    """
    setup = Setup(
        phones=50, over_http=50, dropout=0.0, step_seconds=120.0, workers=2, processes=1, slow=0,
        seed=1,
    )  # fmt: skip
    alone = benchmark(setup, lambda step, answered, phones: None)
    hostile = partial(SlowClients, behaviours=[endless_trailers])
    monkeypatch.setattr("earshot_simulations.benchmarks.api.benchmark.SlowClients", hostile)
    beside = benchmark(replace(setup, slow=200), lambda step, answered, phones: None)
    for figures in (alone, beside):
        assert (figures["status"], figures["answered_last"]) == ("published", 50)
        assert (figures["errors"], figures["server_errors"]) == ({}, [])
    assert beside["slow_connections_made"] > 10 * 200
    assert beside["live_unanswered"] == 0
    grown = beside["web_peak_memory_mb"] - alone["web_peak_memory_mb"]
    assert grown < 64
