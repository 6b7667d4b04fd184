"""The study of what each setting does, small."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.reproduced import reproduced

from earshot_simulations.sweeps.phase import ARI_TEST
from earshot_studies.liebenow import section_10_1 as study


@pytest.mark.slow
def test_every_setting_is_set_beside_all_as_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(study, "FEW_CROWDS", ((100, 8.0),))
    monkeypatch.setattr(
        study, "SECURE_SUM", (study._of("label_share", 0.01, 0.3), study._of("cells", 20))
    )
    monkeypatch.setattr(study, "LOCAL_ROUTE", (study._of("local_centroids", 4, 6),))
    monkeypatch.setattr(study, "SCALES", (1.0, 0.5))
    sizes = ("--seeds", 2, "--phones", 24, "--recordings", 20, "--jobs", 1)
    rows = reproduced(study.NAME, tmp_path, *sizes)
    assert [(row["setting"], row["value"]) for row in rows] == [
        *((study.USUAL, study.USUAL), ("label_share", "0.01"), ("label_share", "0.3")),
        ("cells", "20"),
        *((study.USUAL, study.USUAL), ("local_centroids", "4"), ("local_centroids", "6")),
        *(("scale of embeddings", "1"), ("scale of embeddings", "0.5")),
    ]
    as_usual = [row for row in rows if row["value"] in ("0.3", "20", "6", "1")]
    assert [float(row[f"{ARI_TEST}_minus_as_usual"]) for row in as_usual] == [0.0] * 4
    assert float(rows[1][f"{ARI_TEST}_minus_as_usual"]) != 0.0
    assert (tmp_path / f"{study.NAME}.png").stat().st_size > 10_000
    note = (tmp_path / f"{study.NAME}.md").read_text(encoding="utf-8")
    assert "against as usual" in note


def test_numbers_stand_by_size_and_names_as_they_come() -> None:
    assert study._in_order(["16", "8", "0.5"]) == ["0.5", "8", "16"]
    assert study._in_order(["noisy-max", "gumbel"]) == ["noisy-max", "gumbel"]
