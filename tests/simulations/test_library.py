"""The library: what docs/simulating.md shows runs, it prints nothing, and it exports little."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.documented import blocks

import earshot_simulations
from earshot_client.encoder import default_encoder, encoder_path
from earshot_protocol.encoder_file import DamagedEncoderError
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_simulations import PolicyChoice, Settings, SummationChoice, result, simulate

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "simulating.md").read_text(encoding="utf-8")
SMALL = Settings(
    phones=24,
    recordings=10,
    scenes=2,
    data="soundscapes",
    corrupted=0.0,
    policy=PolicyChoice.ANYTHING,
    summation=SummationChoice.IDEAL,
    jobs=1,
)
SHIPPED = encoder_path()


def output_of(example: str, folder: Path) -> list[str]:
    run = subprocess.run(  # noqa: S603 - our own documentation
        [sys.executable, "-c", example], cwd=folder, capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    return run.stdout.splitlines()


VECTORS, OWN, ONE_PHASE, SWEEP, WEEK = blocks(TEXT, "python")
MADE = """
import numpy as np
scenes = np.arange(1800) % 3
vectors, labels, phone = np.eye(3, 4)[scenes], scenes, np.arange(1800) // 9
"""


@pytest.mark.slow
def test_the_example_of_a_sweep_runs_and_goes_on(tmp_path: Path) -> None:
    lines = output_of(SWEEP, tmp_path)
    assert [line.split("}")[0] for line in lines[:2]] == ["{'epsilon': 2.0", "{'epsilon': 8.0"]
    rows = (tmp_path / "phases.jsonl").read_text().splitlines()
    assert len(rows) == 6
    # A second run takes what is there, and does what is missing.
    (tmp_path / "phases.jsonl").write_text("".join(f"{row}\n" for row in rows[1:]))
    assert output_of(SWEEP, tmp_path) == lines
    again = (tmp_path / "phases.jsonl").read_text().splitlines()
    assert again[:5] == rows[1:]
    assert again[5] == rows[0]


@pytest.mark.slow
def test_the_example_of_a_week_runs(tmp_path: Path) -> None:
    (line,) = output_of(WEEK, tmp_path)
    assert line.startswith("CountScores(")


@pytest.mark.slow
def test_the_example_of_the_documentation_runs(tmp_path: Path) -> None:
    lines = output_of(ONE_PHASE, tmp_path)
    assert [line.split()[0] for line in lines[:3]] == ["base", "skewed", "attacked"]
    assert lines[3].startswith("True votes: ")
    assert len(lines) > 5
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_example_of_vectors_makes_a_file_that_is_simulated(tmp_path: Path) -> None:
    assert output_of(MADE + VECTORS, tmp_path) == []
    run = simulate(Settings(data=str(tmp_path / "mine.npz"), jobs=1, summation="ideal"))
    assert run.phones == 150
    assert run.found.label_accuracy == 1


@pytest.mark.slow
def test_the_example_of_things_of_one_s_own_runs(tmp_path: Path) -> None:
    text = " ".join(output_of(OWN, tmp_path))
    assert "learning phase over MyCrowd, seed 0" in text
    assert "300 of 300" in text


def test_every_name_that_is_exported_is_explained() -> None:
    for name in earshot_simulations.__all__:
        assert hasattr(earshot_simulations, name)
        assert re.search(rf"`{name}\b", TEXT), name


@pytest.mark.slow
def test_simulating_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    seen = []
    simulate(SMALL, lambda what, done, total: seen.append(what))
    assert capfd.readouterr() == ("", "")
    assert "hear" in seen


@pytest.mark.slow
def test_the_phase_asks_for_the_encoder_that_is_given(tmp_path: Path) -> None:
    copy = tmp_path / "mine.tflite"
    copy.write_bytes(SHIPPED.read_bytes())
    shipped = simulate(SMALL)
    given = simulate(Settings(**{**vars(SMALL), "encoder": str(copy)}))
    named = simulate(Settings(**{**vars(SMALL), "encoder": DEFAULT_ENCODER}))
    # The same encoder, so the same run, but for what is said of it.
    assert (
        given.found.points.tobytes()
        == shipped.found.points.tobytes()
        == named.found.points.tobytes()
    )
    assert named.notes == shipped.notes
    assert given.configuration["encoder"] == str(copy)
    assert any("shipped encoder was trained on such" in note for note in shipped.notes)
    assert any(f"encoder '{default_encoder().name}'" in note for note in given.notes)


def test_an_encoder_is_checked_before_any_work(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.tflite"
    damaged.write_bytes(SHIPPED.read_bytes()[:-1000])

    def work(what: str, done: int, total: int) -> None:
        raise AssertionError("work began")

    for path in (damaged, tmp_path / "nowhere.tflite"):
        with pytest.raises(DamagedEncoderError):
            simulate(Settings(**{**vars(SMALL), "encoder": str(path)}), work)
    with pytest.raises(InvalidParametersError, match="dimensions=129: must be"):
        simulate(Settings(**{**vars(SMALL), "encoder": str(SHIPPED), "dimensions": 129}), work)


def test_what_was_published_is_in_the_result() -> None:
    run = simulate(SMALL)
    centroids = result(run)["centroids"]
    assert isinstance(centroids, list)
    assert [each["index"] for each in centroids] == run.found.top.tolist()
    assert run.found.global_centroids is not None
    for each in centroids:
        assert each["centroid"] == run.found.global_centroids[each["index"]].tolist()
        assert set(each) == {"index", "label", "p_value", "length", "centroid"}
