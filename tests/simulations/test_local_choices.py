"""`earshot bench local-choices`: tables, and the gains that decision 27 reports."""

from __future__ import annotations

import json

import pytest
from support.command import earshot

from earshot_protocol.privacy.local_mechanisms import SelectionMethod
from earshot_simulations.benchmarks import local_choices


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_choices, "SELECTION_EPSILONS", (0.05,))
    monkeypatch.setattr(local_choices, "CLUSTERING_EPSILONS", (1.0, 32.0))
    monkeypatch.setattr(local_choices, "RUNS", (1, 8))


@pytest.mark.slow
def test_what_the_choices_are_worth() -> None:
    shown = earshot("bench", "local-choices", "--seeds", "4", "--json")
    assert shown.returncode == 0, shown.stderr
    tables = json.loads(shown.stdout[shown.stdout.index("{") :])
    right = {row["method"]: row["the largest two"] for row in tables["selection"]}
    assert set(right) == set(SelectionMethod)
    assert right["permute-and-flip"] > max(right["noisy-max"], right["gumbel"])
    found = {(row["geometry"], row["epsilon"], row["runs"]): row["ari"] for row in tables["runs"]}
    assert len(found) == 2 * 2 * 2
    for geometry in ("euclidean", "spherical"):
        # A third of little is too little; of plenty it is enough, and the best of many pays.
        assert found[geometry, 1.0, 8] < found[geometry, 1.0, 1]
        assert found[geometry, 32.0, 8] > found[geometry, 32.0, 1]


def test_tables_in_markdown() -> None:
    shown = earshot("bench", "local-choices", "--seeds", "2")
    assert shown.returncode == 0, shown.stderr
    assert "| epsilon | method | the largest two | the largest two ± |" in shown.stdout
    refused = earshot("bench", "local-choices", "--seeds", "1")
    assert "seeds=1" in refused.stderr
