"""`earshot reproduce growing-crowd` in small."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.reproduced import reproduced

from earshot_studies.liebenow import crowds


@pytest.mark.slow
def test_both_routes_are_measured_in_crowds_of_every_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crowds, "FEW", (100, 160))
    monkeypatch.setattr(crowds, "FEWER_SEEDS", 1)
    monkeypatch.setattr(crowds, "_LARGE", 120)
    sizes = ("--seeds", 2, "--recordings", 20, "--jobs", 1)
    rows = reproduced("growing-crowd", tmp_path, *sizes)
    shapes = {(row["data"], row["mechanism"], row["phones"]): row["seeds"] for row in rows}
    assert len(shapes) == len(rows) == 8
    for (_, route, phones), seeds in shapes.items():
        assert route in ("local", "secure-sum")
        assert seeds == {"100": "2", "160": "1"}[phones]
    points = [float(row["ari_test"]) for row in rows if row["data"] == "blobs"]
    assert min(points) > 0.3
    note = (tmp_path / "growing-crowd.md").read_text(encoding="utf-8")
    assert "| blobs | local | 100 |" in note
    assert "|  |" not in note
    assert " 0 phones" not in note
    assert (tmp_path / "growing-crowd.png").stat().st_size > 10_000
