"""A whole phase over HTTP: `earshot bench api` measures it, and slow clients do not disturb it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from support.slow_clients import Behaviour, SlowClients, endless_trailers

from earshot_simulations.benchmarks.api.benchmark import Setup, benchmark

pytestmark = pytest.mark.slow


def undisturbed(figures: dict[str, Any], answered: int) -> dict[str, Any]:
    assert (figures["status"], figures["answered_last"]) == ("published", answered)
    assert (figures["errors"], figures["server_errors"]) == ({}, [])
    return figures


def beside_slow_clients(
    setup: Setup, behaviours: list[Behaviour] | None = None
) -> tuple[dict[str, Any], SlowClients]:
    """Measure a phase while 200 slow clients hold connections to its server."""
    clients = []

    def beside(address: str) -> SlowClients:
        clients.append(SlowClients(address, 200, behaviours))
        return clients[0]

    figures = benchmark(setup, lambda step, answered, phones: None, beside)
    return figures, clients[0]


def test_a_small_phase_is_run_and_measured() -> None:
    # As few phones stay as may. Closing a step takes a busy machine as long as a step: that must
    # not be taken from the phones, or the next step is over when it opens.
    options = "--phones 16 --enrol 10 --dropout 0.125 --processes 1 --step-seconds 8 --json"
    run = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "earshot_client", "bench", "api", *options.split()],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert run.returncode == 0, run.stderr
    figures = undisturbed(json.loads(run.stdout), answered=14)
    assert figures["phones"] == 16
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


def test_two_hundred_slow_clients_do_not_disturb_fifty_phones() -> None:
    """For a minute: some phones vanish, and each of nine steps waits for them.

    Who is held up behind a slow client until that one is cut off, ten seconds and more, misses a
    step. How long a request takes is for `docs/operations.md`, measured on an idle machine: here
    other tests take the cores.
    """
    setup = Setup(
        phones=50, over_http=50, dropout=0.1, step_seconds=15.0, workers=2, processes=2, seed=0,
    )  # fmt: skip
    figures, clients = beside_slow_clients(setup)
    undisturbed(figures, answered=45)
    assert figures["seconds"] >= 60
    assert figures["answer_requests"] >= 9 * 45
    assert clients.made > 200
    assert clients.alive > 0
    assert clients.unanswered == 0


def test_two_hundred_endless_trailers_do_not_disturb_fifty_phones() -> None:
    """Nobody has said who they are when they send them; once, a dozen took half a gibibyte.

    No phone vanishes, so no step waits, and none has to end while the machine does other things.
    """
    setup = Setup(
        phones=50, over_http=50, dropout=0.0, step_seconds=120.0, workers=2, processes=1, seed=1,
    )  # fmt: skip
    alone = undisturbed(benchmark(setup, lambda step, answered, phones: None), answered=50)
    beside, clients = beside_slow_clients(setup, [endless_trailers])
    undisturbed(beside, answered=50)
    assert clients.made > 10 * 200
    assert clients.unanswered == 0
    grown = beside["web_peak_memory_mb"] - alone["web_peak_memory_mb"]
    assert grown < 64
