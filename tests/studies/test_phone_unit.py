"""The curve of what a phone's own ε buys, small; and what it is worked out with."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.reproduced import reproduced

from earshot_simulations import Discovery, PolicyChoice, Settings, SummationChoice, simulate
from earshot_simulations.phases.run import NOISELESS
from earshot_simulations.sweeps.phase import ARI_TEST, CLEAR_NAMES, NAMES
from earshot_studies.liebenow import crowds
from earshot_studies.liebenow.at_once.phase import at_once


@pytest.mark.slow
def test_the_command_leaves_a_table_a_picture_and_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowds, "FEW_PHONES", (100, 150))
    monkeypatch.setattr(crowds, "EPSILONS", (1.0, 8.0))
    monkeypatch.setattr(crowds, "ALSO_LOCAL", {150: 8.0})
    sizes = ("--seeds", 2, "--recordings", 10, "--jobs", 1)
    rows = reproduced("phone-unit", tmp_path, *sizes)
    assert [(row["phones"], row["epsilon"], row["mechanism"]) for row in rows] == [
        (phones, epsilon, mechanism)
        for phones in ("100", "150")
        for epsilon, mechanism in (
            ("1.0", "secure-sum"),
            ("1.0", "public centroids only"),
            ("8.0", "secure-sum"),
            ("8.0", "public centroids only"),
            *([("8.0", "local route, same ε per phone")] if phones == "150" else []),
            ("inf", "secure-sum"),
        )
    ]
    spent = {row["mechanism"]: row["epsilon_phone"] for row in rows if row["epsilon_phone"]}
    assert {name: float(epsilon) for name, epsilon in spent.items()} == {
        "local route, same ε per phone": pytest.approx(8, rel=0.01)
    }
    note = (tmp_path / "phone-unit.md").read_text(encoding="utf-8")
    for row in rows:
        assert f"{float(row[ARI_TEST]):.3f}" in note
    by_epsilon = {
        row["epsilon"]: float(row[NAMES]) for row in rows[-6:] if "sum" in row["mechanism"]
    }
    assert by_epsilon["1.0"] < by_epsilon["8.0"] <= by_epsilon["inf"] + 0.1
    assert (tmp_path / "phone-unit.png").stat().st_size > 10_000


def test_without_noise_the_figures_are_those_of_a_simulation() -> None:
    settings = Settings(
        phones=120,
        recordings=12,
        scenes=4,
        dropout=0.1,
        discovery=Discovery.SECURE_SUM,
        summation=SummationChoice.IDEAL,
        policy=PolicyChoice.ANYTHING,
        epsilon=NOISELESS,
        jobs=1,
        seed=3,
    )
    run, figures = simulate(settings), at_once(settings)
    assert figures[ARI_TEST] == pytest.approx(run.found.ari_test)
    assert figures["ari_train"] == pytest.approx(run.found.ari_train)
    assert figures[NAMES] == pytest.approx(run.found.label_accuracy)
    assert figures[CLEAR_NAMES] == pytest.approx(run.found.clear_label_accuracy)
