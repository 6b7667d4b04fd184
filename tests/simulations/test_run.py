from __future__ import annotations

import json
import math
import os
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.steps import Step

from earshot_protocol.errors import InvalidInputError
from earshot_simulations.engine.course import SimulatedStep
from earshot_simulations.phases.run import Run, plain, result

MakeRun = Callable[..., Run]

FIELDS = {
    # What the design promises of result.json …
    "phones",
    "survivors",
    "seed",
    "ari_train",
    "ari_test",
    "label_accuracy",
    "cell_ari",
    "unknown",
    "global_centroids",
    "top_global_centroids",
    "privacy",
    "seconds",
    "refused_by_step",
    "bytes_up_per_phone",
    "bytes_down_per_phone",
    "peak_memory_mb",
    "version",
    # … and what a run that was less than perfect adds.
    "adversary",
    "skipped",
    "interrupted",
    "centroids",
    "clear_label_accuracy",
    "local_centroids",
    "clustered_centroids",
    "environments",
    "named",
    "configuration",
    "notes",
    # … and what it takes to repeat it.
    "provenance",
    "digest",
}


def through_json(run: Run) -> dict[str, object]:
    figures: dict[str, object] = json.loads(json.dumps(result(run), allow_nan=False))
    return figures


def test_result_has_the_promised_fields_and_survives_json(make_run: MakeRun) -> None:
    figures = result(make_run())
    assert set(figures) == FIELDS
    assert (figures["local_centroids"], figures["clustered_centroids"]) == (7, 7), "none left out"
    assert json.loads(json.dumps(figures, allow_nan=False)) == figures


def test_result_says_what_happened(make_run: MakeRun) -> None:
    figures = through_json(make_run())
    assert (figures["phones"], figures["survivors"], figures["seed"]) == (100, 92, 5)
    assert (figures["global_centroids"], figures["top_global_centroids"]) == (4, 3)
    # One ε: what the releases cost together. Their sum is for whoever adds them up.
    assert set(figures["privacy"]) == {"releases", "together"}
    assert figures["privacy"]["releases"][0] == {
        "step": "clustering",
        "unit": "recording",
        "epsilon": 1.5,
        "delta": 0.0,
        "mechanism": "Lloyd",
    }
    assert figures["seconds"]["total"] == 6.5
    assert figures["seconds"]["steps"]["discover"] == 2.0
    assert figures["bytes_up_per_phone"][Step.CENTROID_VOTE_MASK] == 1000.0
    assert figures["bytes_down_per_phone"][Step.CENTROID_VOTE_MASK] == 2000.0
    assert figures["bytes_up_per_phone"]["discover"] == 0.0
    assert figures["skipped"]["count"] == 3
    assert figures["skipped"]["reasons"] == {"short": 2, "silent": 1}
    assert figures["skipped"]["list"][0] == {
        "recording": "a.wav",
        "reason": "silent",
        "detail": "",
    }


def test_labels_follow_the_kept_centroids(make_run: MakeRun) -> None:
    first, second, third = through_json(make_run())["centroids"]
    assert [entry["index"] for entry in (first, second, third)] == [1, 0, 2]
    assert first["label"] == "park"
    assert first["votes"] == {"bus": 1, "park": 30, "office": -4}
    assert (first["p_value"], third["p_value"]) == (0.004, 1.0)
    assert (first["centroid_votes"], first["centroid_p_value"]) == (50, 0.0)
    assert first["centroid"] == [0.0, 10.0]
    assert second["label"] == "bus"
    assert third["label"] is None
    assert through_json(make_run())["named"] == 2


@pytest.mark.parametrize("stage", range(5))
def test_result_of_a_run_that_ended_early(cut_short: Callable[[int], Run], stage: int) -> None:
    figures = through_json(cut_short(stage))
    assert set(figures) == FIELDS
    assert figures["interrupted"] == "too few phones stayed"
    assert figures["label_accuracy"] is None
    assert (figures["global_centroids"] is None) == (stage < 3)
    assert (figures["top_global_centroids"] is None) == (stage < 4)
    assert all(entry["label"] is None for entry in figures["centroids"])


def test_a_repeated_step_counts_as_one(make_run: MakeRun) -> None:
    twice = (
        SimulatedStep(step="sum", asked=4, answered=4, seconds=1.0, bytes_up=40, bytes_down=8),
        SimulatedStep(step="sum", asked=4, answered=2, seconds=2.0, bytes_up=40, bytes_down=8),
    )
    figures = through_json(make_run(steps=twice))
    assert figures["seconds"]["steps"] == {"sum": 3.0}
    assert figures["bytes_up_per_phone"] == {"sum": 10.0 + 20.0}


def test_what_is_not_finite_is_null_and_an_infinite_setting_a_word(make_run: MakeRun) -> None:
    run = make_run(ari_test=math.nan, ari_train=math.inf, configuration={"epsilon": math.inf})
    figures = through_json(run)
    assert (figures["ari_test"], figures["ari_train"]) == (None, None)
    assert figures["configuration"] == {"epsilon": "inf"}
    frame = run.to_frame()
    for column in ("configuration.epsilon", "ari_train"):
        assert (frame[column].dtype, frame[column][0]) == (np.float64, math.inf)


def test_plain_knows_the_types_that_configurations_hold() -> None:
    mixed = MappingProxyType(
        {
            "path": Path("x/y"),
            "step": Step.PUBLISHED,
            "count": np.int64(3),
            "share": np.float32(0.5),
            "flag": np.True_,
            "array": np.arange(2),
            "pair": (1, None),
            "name": "caf\udce9",
        }
    )
    assert plain(mixed) == {
        "path": "x/y",
        "step": "published",
        "count": 3,
        "share": 0.5,
        "flag": True,
        "array": [0, 1],
        "pair": [1, None],
        "name": "caf?",
    }


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(st.characters(codec=None)),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_plain_is_always_json_that_can_be_stored(value: object) -> None:
    assert json.dumps(plain(value), allow_nan=False, ensure_ascii=False).encode("utf-8")


@pytest.mark.usefixtures("no_pictures")
def test_write_leaves_two_whole_files(make_run: MakeRun, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    make_run().write(folder)
    assert sorted(path.name for path in folder.iterdir()) == ["report.html", "result.json"]
    assert json.loads((folder / "result.json").read_text()) == result(make_run())
    assert (folder / "report.html").read_text(encoding="utf-8").endswith("</html>\n")
    with pytest.raises(InvalidInputError, match=r"result\.json and report\.html: name another"):
        make_run(seconds=7.5).write(str(folder))
    assert json.loads((folder / "result.json").read_text()) == result(make_run())
    make_run(seconds=7.5).write(str(folder), overwrite=True)
    assert json.loads((folder / "result.json").read_text())["seconds"]["total"] == 7.5


@pytest.mark.parametrize("place", ["taken", "taken/new"])
def test_a_place_that_can_be_no_folder_is_named(
    make_run: MakeRun, place: str, tmp_path: Path
) -> None:
    (tmp_path / "taken").touch()
    with pytest.raises(InvalidInputError, match=f"{place}: no folder can be made there"):
        make_run().write(tmp_path / place)


@pytest.mark.usefixtures("no_pictures")
@pytest.mark.parametrize("stage", range(5))
def test_write_takes_a_run_that_ended_early(
    cut_short: Callable[[int], Run], stage: int, tmp_path: Path
) -> None:
    cut_short(stage).write(tmp_path)
    assert "too few phones stayed" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("no_pictures")
def test_a_failed_write_keeps_the_old_file(
    make_run: MakeRun, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run().write(tmp_path)
    before = (tmp_path / "result.json").read_bytes()

    def full(_: int) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        make_run(seconds=9.0).write(tmp_path, overwrite=True)
    assert (tmp_path / "result.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "result.json"]
