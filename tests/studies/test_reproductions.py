"""Reproductions: who hears what, what is written, and one run in earnest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from matplotlib.figure import Figure
from support.esc_folder import write_esc_folder
from support.reproduced import rows_of

from earshot_client.encoder import default_encoder, encoder_path, rate_of
from earshot_models import origins
from earshot_models.datasets.opening import open_dataset
from earshot_models.recipe import Recipe, SoundSource, Trained
from earshot_models.soundscapes import SCENES
from earshot_models.training_schedule import Schedule
from earshot_simulations.reporting.tables import markdown_table
from earshot_studies.kit.outcome import Reproduction, Row, write
from earshot_studies.kit.pictures import bars, curve
from earshot_studies.liebenow import encoders
from earshot_studies.liebenow.pictures import draw_embedding, projections

TINY = Recipe(width=0.25, batch=8, schedule=Schedule(steps=2, warm_up=1))
SHIPPED = encoder_path()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_esc_folder(tmp_path_factory.mktemp("esc"), SCENES[:4], clips=8, seconds=10)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("other")
    (root / "hum").mkdir()
    rate = rate_of(default_encoder())
    hum = 0.1 * np.sin(np.arange(10 * rate) / 9)
    for clip in range(20):
        soundfile.write(root / "hum" / f"{clip}.wav", hum, rate)
    return root


@pytest.mark.slow
def test_no_encoder_hears_the_fold_that_it_is_measured_on(
    folder: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[list[SoundSource], Path, Recipe]] = []

    def instead(
        sources: list[SoundSource], out: Path, recipe: Recipe, name: str, **more: Any
    ) -> Trained:
        calls.append((list(sources), out, recipe))
        return Trained(SHIPPED, SHIPPED, [])

    monkeypatch.setattr(encoders, "train_encoder", instead)
    dataset, sound = open_dataset(folder), open_dataset(other)
    outcome = encoders.linear_accuracy(dataset, [sound], tmp_path / "encoders", TINY)
    assert [(row["figure"], row["encoder"]) for row in outcome.rows] == [
        ("training set", "none: log-mel statistics"),
        ("training set", "synthesized"),
        ("training set", sound.name),
        ("training set", dataset.name),
        ("training set", "all"),
        ("pre-processing", "as is"),
        ("pre-processing", "noise added"),
        ("pre-processing", "voice removed"),
        ("pre-processing", "masks"),
    ]
    assert len({out for _, out, _ in calls}) == len(calls) == 2 + 2 * 6
    for sources, out, recipe in calls:
        own = [clip for source in sources for clip in source.dataset.clips if clip.fold]
        assert bool(own) == (out.name != "all")
        assert {str(clip.fold) for clip in own} == {"1", "2"} - {out.name} or not own
        kind = out.parent.name
        assert (recipe.synthesized > 0) == (
            kind in ("training-set-synthesized", "training-set-all")
        )
        assert recipe.voice_removed == ("voice" in kind)
        if kind.startswith("pre-processing"):
            assert (recipe.mask > 0) == ("masks" in kind)
            assert recipe.augmentations.noise == (1 if "noise" in kind else 0)
    # The same encoder throughout: only the statistics may differ.
    assert len({row["folds"] for row in outcome.rows[1:]}) == 1
    paths = write(outcome, tmp_path / "out")
    assert [path.suffix for path in paths] == [".csv", ".md", ".png"]
    table = rows_of(paths[0])
    assert [row["encoder"] for row in table] == [row["encoder"] for row in outcome.rows]
    assert float(table[0]["second_accuracy"]) == outcome.rows[0]["second_accuracy"]
    assert "voice removed" in paths[1].read_text()
    assert paths[2].read_bytes().startswith(b"\x89PNG")
    assert len(list((tmp_path / "out").iterdir())) == 3


@pytest.mark.slow
def test_every_encoder_of_9_1_can_be_trained(
    folder: Path, other: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(origins, "_SYNTHESIZED", 25)
    train, trained = encoders.train_encoder, dict[str, Trained]()

    def of_one_fold(*given: Any, **more: Any) -> Trained:
        """Train of each kind what comes first: what another fold hears, the test above checks."""
        kind = given[1].parent.name
        if kind not in trained:
            trained[kind] = train(*given, **more)
        return trained[kind]

    monkeypatch.setattr(encoders, "train_encoder", of_one_fold)
    dataset, sound = open_dataset(folder), open_dataset(other)
    outcome = encoders.linear_accuracy(dataset, [sound], tmp_path, TINY)
    assert len(list(tmp_path.rglob("encoder.tflite"))) == len(trained) == 8
    assert all(0 <= float(row["second_accuracy"]) <= 1 for row in outcome.rows)


@pytest.mark.slow
def test_the_embedding_space_is_laid_out(folder: Path, tmp_path: Path) -> None:
    outcome = encoders.embedding_space(open_dataset(folder), default_encoder())
    assert len(outcome.rows) == 320
    assert {row["label"] for row in outcome.rows} == set(SCENES[:4])
    assert list(outcome.rows[0]) == [
        "label", "PCA x", "PCA y", "t-SNE 2D x", "t-SNE 2D y",
        "t-SNE 3D x", "t-SNE 3D y", "t-SNE 3D z",
    ]  # fmt: skip
    for path in write(outcome, tmp_path / "deep" / "out"):
        assert path.stem == "liebenow-9.2"
        assert path.stat().st_size > 500


def test_few_points_can_be_laid_out(tmp_path: Path) -> None:
    points = np.random.default_rng(0).normal(size=(12, 128))
    placed = projections(points)
    assert [each.points.shape for each in placed] == [(12, 2), (12, 2), (12, 3)]
    # Two principal components carry what singular values say.
    values = np.linalg.svd(points - points.mean(axis=0), compute_uv=False) ** 2
    assert placed[0].explained == pytest.approx(values[:2].sum() / values.sum())
    draw_embedding(placed, np.arange(12) % 3, ("a", "b", "c"), tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 1000


def test_nothing_is_left_of_a_picture_that_fails(tmp_path: Path) -> None:
    def draw(path: Path) -> None:
        path.write_bytes(b"half a pict")
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        write(Reproduction("x", [{"a": 1}], draw, "note"), tmp_path)
    assert {path.name for path in tmp_path.iterdir() if not path.name.startswith(".")} == {
        "x.csv",
        "x.md",
    }


def test_a_single_run_is_drawn_without_an_interval() -> None:
    rows: list[Row] = [
        {"x": 0.5, "x_interval_95": ""},
        {"x": 0.4, "x_interval_95": 0.1},
        {"x": "", "x_interval_95": ""},
    ]
    axis = Figure().subplots()
    curve(axis, range(3), rows, "x")
    bars(axis, range(3), rows, "x", 0.8)
    for drawn in axis.containers[:2]:
        *_, (whiskers,) = drawn
        single, several, nothing = whiskers.get_segments()
        assert (len(single), len(nothing)) == (0, 0)
        np.testing.assert_allclose(several, [(1, 0.3), (1, 0.5)])


def test_a_markdown_table() -> None:
    rows = [{"a": "x", "b": 0.12345}, {"a": None, "b": 2}]
    assert markdown_table(rows, ["b", "a"]).splitlines() == [
        "| b | a |", "|---|---|", "| 0.123 | x |", "| 2 |  |",
    ]  # fmt: skip
