"""`earshot reproduce names` in small, and what it measures with."""

from __future__ import annotations

import dataclasses
import math
import pickle
from pathlib import Path

import numpy as np
import pytest
import soundfile
from support.reproduced import reproduced

from earshot_simulations import (
    Adversary,
    Heterogeneity,
    PolicyChoice,
    Settings,
    SummationChoice,
)
from earshot_simulations.sweeps.phase import ARI_TEST, CLEAR_NAMES, NAMES
from earshot_studies.kit.outcome import Row
from earshot_studies.liebenow import names
from earshot_studies.liebenow.at_once.phase import CELLS_ALONE, at_once
from earshot_studies.liebenow.contenders import ReproductionSetup, SimulationSize

FEW = {
    trouble: names.TROUBLES[trouble]
    for trouble in ("5 % labelled", "40 % wrong labels", "10 % of phones give one label")
}
SETTINGS = Settings(
    phones=100,
    recordings=12,
    scenes=4,
    labelled=0.5,
    dropout=0.0,
    epsilon=8.0,
    policy=PolicyChoice.ANYTHING,
    summation=SummationChoice.IDEAL,
    jobs=1,
    seed=5,
)


@pytest.mark.slow
def test_every_row_of_the_table_is_in_the_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "FEW_CROWDS", ((80, 8.0), (120, 4.0)))
    monkeypatch.setattr(names, "TROUBLES", FEW)
    rows = reproduced("names", tmp_path, "--seeds", 2, "--recordings", 10, "--jobs", 1)
    assert [(row["phones"], row["epsilon"], row["setting"]) for row in rows] == [
        (phones, shown, setting)
        for phones, epsilon in (("80", "8.0"), ("120", "4.0"))
        for shown, setting in (
            (epsilon, names.AS_IS),
            ("inf", names.AS_IS),
            *((epsilon, trouble) for trouble in FEW),
        )
    ]
    note = (tmp_path / "names.md").read_text(encoding="utf-8")
    for row in rows:
        for metric in (ARI_TEST, NAMES, CLEAR_NAMES, CELLS_ALONE):
            assert f"| {float(row[metric]):.3f} ± " in note
        # Cells are found without labels: who labels, and how, changes nothing.
        as_is = next(
            each
            for each in rows
            if (each["phones"], each["epsilon"], each["setting"])
            == (row["phones"], row["epsilon"], names.AS_IS)
        )
        assert row[CELLS_ALONE] == as_is[CELLS_ALONE]
        assert row["setting"] == names.AS_IS or row[NAMES] != as_is[NAMES]
    assert "half of them labelled" in note
    assert "three in ten" not in note
    assert (tmp_path / "names.png").stat().st_size > 10_000


def test_the_picture_shows_a_crowd_that_default_phones_join() -> None:
    crowds = [{"phones": phones, "epsilon": epsilon} for phones, epsilon in names.CROWDS]
    assert names.drawn_crowd(crowds) == names.drawn_crowd(crowds[1:]) == (1_000, 2.0)
    assert names.drawn_crowd(crowds[:1]) == (300, 4.0)


def test_all_that_spoils_names_is_measured_by_its_size(tmp_path: Path) -> None:
    """Three attacks by three shares of the phones, few labels and wrong ones."""
    assert len(names.TROUBLES) == 2 + 3 * 3
    adversaries = [each["adversary"] for each in names.TROUBLES.values() if "adversary" in each]
    for attack in ("swapped_labels", "poisoning", "one_label"):
        shares = sorted(getattr(each, attack) for each in adversaries)
        assert shares == [0.0] * 6 + [0.01, 0.05, 0.1]
    for words, changes in names.TROUBLES.items():
        if "adversary" in changes:
            assert f"{100 * max(vars(changes['adversary']).values()):g} % of phones " in words
    assert {phones for phones, _ in names.CROWDS} > {phones for phones, _ in names.FEW_CROWDS}
    setup = ReproductionSetup(SimulationSize(0, 10, 1), tmp_path / "phases.jsonl")
    rows: list[Row] = []
    for trouble, changes in names.TROUBLES.items():
        arm = setup.arm(names._SUMS, "blobs", {"setting": trouble}, phones=100, **changes)
        rows.append({"settings": str(arm.phases[0].configuration())})
    assert len({row["settings"] for row in rows}) == len(names.TROUBLES)


@pytest.mark.parametrize(
    "changes",
    [
        {"heterogeneity": Heterogeneity(mislabelled=0.8)},
        {"adversary": Adversary(swapped_labels=0.8)},
        {"adversary": Adversary(one_label=0.95)},
    ],
    ids=lambda changes: str(*changes),
)
def test_processes_measure_the_settings_that_they_are_sent(changes: dict[str, object]) -> None:
    spoilt = dataclasses.replace(SETTINGS, **changes)  # type: ignore[arg-type]
    sent = pickle.loads(pickle.dumps(spoilt))  # noqa: S301 - as processes send them
    assert sent == spoilt
    found, usual = at_once(sent), at_once(SETTINGS)
    assert found == at_once(spoilt)
    assert found[CELLS_ALONE] == usual[CELLS_ALONE]
    assert float(found[NAMES] or 0) < float(usual[NAMES] or 0) - 0.1


def test_a_linear_probe_is_right_where_scenes_lie_apart() -> None:
    figures = names.linear_probe(dataclasses.replace(SETTINGS, labelled=0.0, epsilon=math.inf))
    # It has the true labels, whoever labels: of blobs nearly all are named rightly.
    assert float(figures[NAMES] or 0) > 0.97
    assert figures[NAMES] == figures[CLEAR_NAMES]
    assert float(figures[ARI_TEST] or 0) > 0.9


def test_sound_is_named_beside_a_linear_probe_of_whole_embeddings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(names, "FEW_CROWDS", ((80, 8.0),))
    monkeypatch.setattr(names, "TROUBLES", {})
    sound, time = tmp_path / "two tones", np.arange(2 * 16_000) / 16_000
    for pitch in (300, 2_000):
        (sound / str(pitch)).mkdir(parents=True)
        for number in range(4):
            tone = 0.1 * np.sin(2 * np.pi * (pitch + 5 * number) * time)
            soundfile.write(sound / str(pitch) / f"{number}.wav", tone, 16_000)
    setup = ReproductionSetup(SimulationSize(0, 10, 1), tmp_path / "phases.jsonl", sound)
    rows = [row for row in names.names(setup).rows if row["data"] == "two tones"]
    assert [row["mechanism"] for row in rows] == ["secure sums", "secure sums", "linear probe"]
    assert rows[-1][NAMES] == 1.0
