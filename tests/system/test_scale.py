"""What a whole phase reaches at full size; for the scheduled run (`make test-all`)."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

import pytest
from support.steps import STEPS

from earshot_simulations.benchmarks.secure_sum import benchmark
from earshot_simulations.engine.course import DISCOVER
from earshot_simulations.phases.settings import Discovery, Settings
from earshot_simulations.phases.simulation import simulate

pytestmark = pytest.mark.slow


def test_ten_scenes_are_found_and_named_for_five_seeds() -> None:
    runs = [
        simulate(Settings(discovery=Discovery.LOCAL, dropout=0.1, seed=seed))
        for seed in range(1, 6)
    ]
    assert statistics.median(run.found.ari_test or 0.0 for run in runs) >= 0.95
    assert statistics.median(run.found.label_accuracy or 0.0 for run in runs) >= 0.95


def test_ten_thousand_phones_with_their_real_cryptography() -> None:
    options = "--discovery local --phones 10000 --recordings 50 --dropout 0.05 --seed 1 --json"
    command = [sys.executable, "-m", "earshot_client", "simulate", *options.split()]
    # A process of its own: what tests before this one took is no business of the run.
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    run = json.loads(done.stdout)
    assert run["interrupted"] is None
    assert run["survivors"] == 9500
    assert len([step for step in run["seconds"]["steps"] if step != DISCOVER]) == len(STEPS)
    assert run["peak_memory_mb"] < 1024
    assert run["ari_test"] > 0.7


def test_a_sum_of_ten_thousand_phones_is_exact() -> None:
    figures = benchmark(10_000, None, 100, 0.05, 0.05)
    assert figures["exact"] is True
    assert figures["neighbours"] == 38
    bytes_up, formula = figures["bytes_up"], figures["bytes_up_formula"]
    assert isinstance(bytes_up, float)
    assert isinstance(formula, int)
    assert bytes_up <= 1.1 * formula
