"""`earshot bench api`: a whole phase over HTTP, measured."""

from __future__ import annotations

import json
import subprocess
import sys


def test_a_small_phase_is_run_and_measured() -> None:
    # As few phones stay as may: one that a busy machine makes late for a step ends the phase.
    run = subprocess.run(  # noqa: S603 - our own command
        [
            *(sys.executable, "-m", "earshot_client", "bench", "api", "--json"),
            *("--phones", "16", "--dropout", "0.125", "--step-seconds", "8", "--processes", "1"),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stderr
    figures = json.loads(run.stdout)
    assert figures["status"] == "published"
    assert (figures["phones"], figures["answered_last"]) == (16, 14)
    assert figures["errors"] == {}
    # Everybody enrols; who stays answers nine steps, having asked at least as often.
    assert figures["requests"] >= 16 + 2 * 9 * 14
    for name in ("phones", "task", "answer"):
        assert 0 < figures[f"{name}_p50_ms"] <= figures[f"{name}_p95_ms"]
    assert figures["floor_request_p95_ms"] > 0
    assert figures["floor_commit_p95_ms"] > 0
    assert figures["server_cpu_seconds"] > 0
