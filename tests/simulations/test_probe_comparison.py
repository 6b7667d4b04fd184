"""Several encoders side by side: opened before any work, told apart, compared by fold."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats
from support.command import earshot
from support.esc_folder import write_esc_folder
from threadpoolctl import threadpool_info

from earshot_client.encoder import encoder_path
from earshot_models.datasets.dataset import Dataset
from earshot_models.datasets.opening import open_dataset
from earshot_models.soundscapes import SCENES
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_simulations.probing import degradations, probe, robustness
from earshot_simulations.probing.baseline import LogMelStatistics
from earshot_simulations.probing.contenders import open_contenders
from earshot_simulations.probing.degradations import CONDITIONS
from earshot_simulations.probing.figures import differences
from earshot_simulations.probing.measures import fit, interval
from earshot_simulations.probing.seconds import cut, embed, side_names
from earshot_simulations.probing.table import difference_lines, measure_lines, sound_lines


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_esc_folder(tmp_path_factory.mktemp("esc"), SCENES[:4], clips=8, seconds=3)


@pytest.fixture(scope="module")
def dataset(folder: Path) -> Dataset:
    return open_dataset(folder)


# ----------------------------------------------------------------------------------- opening


def test_encoders_of_one_name_are_told_apart(tmp_path: Path) -> None:
    shipped = encoder_path(DEFAULT_ENCODER)
    for side in "12":
        shutil.copy(shipped, tmp_path / f"mine-{side}.tflite")
    pattern = str(tmp_path / "mine-{held}.tflite")
    found = open_contenders([DEFAULT_ENCODER, pattern], True, ["1", "2"])
    assert [each.label for each in found] == [
        DEFAULT_ENCODER,
        f"{DEFAULT_ENCODER} (2)",
        "log-mel statistics",
    ]
    assert [each.given for each in found] == [DEFAULT_ENCODER, pattern, "--raw"]
    assert found[1].paths == {side: tmp_path / f"mine-{side}.tflite" for side in "12"}
    # One file is opened once, two files are two encoders.
    assert found[0].encoders["1"] is found[0].encoders["2"]
    assert found[1].encoders["1"] is not found[1].encoders["2"]
    assert found[2].paths == {}


def test_every_file_that_is_missing_or_wrong_is_named_before_any_work(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def work(*unused: object, **more: object) -> None:
        raise AssertionError("it began to work")

    monkeypatch.setattr(probe, "cut_at", work)
    shutil.copy(encoder_path(DEFAULT_ENCODER), tmp_path / "mine-1.tflite")
    (tmp_path / "other").write_bytes(b"no encoder")
    words = ["--data", str(folder), "--encoder", str(tmp_path / "mine-{held}.tflite")]
    result = earshot("probe", *words, "--encoder", tmp_path / "other")
    assert result.returncode == 2
    assert "mine-2.tflite" in result.stderr
    assert "other" in result.stderr
    assert "mine-1.tflite" not in result.stderr


def test_an_encoder_is_not_compared_to_itself() -> None:
    with pytest.raises(InvalidInputError, match="given twice"):
        open_contenders([DEFAULT_ENCODER, "a", DEFAULT_ENCODER], False, ["1"])


# --------------------------------------------------------------------------------- comparing


def test_differences_are_paired_by_fold() -> None:
    first = {"a": np.array([0.5, 0.7, 0.9]), "b": np.array([0.1, 0.2, 0.3]), "c": np.zeros(3)}
    other = {"a": first["a"] + [0.01, 0.02, 0.03], "b": first["b"][::-1], "d": np.zeros(3)}
    found = differences(other, first)
    assert list(found) == ["a", "b"]
    # By the paired t-test: its interval leaves out 0 where p is below 5 %.
    for name, of in found.items():
        test = stats.ttest_rel(other[name], first[name])
        low, high = test.confidence_interval(0.95)
        assert (of.mean - of.wide, of.mean + of.wide) == pytest.approx((low, high))
        assert of.clear == (test.pvalue < 0.05)
    assert not found["b"].clear
    # What is the same in every fold differs by nothing.
    assert not differences(first, first)["a"].clear


class Deaf:
    """Hears as the statistics do, and every pocket as silence."""

    name, dimensions = "deaf", 192

    def __init__(self) -> None:
        self._statistics = LogMelStatistics()

    def embed(self, samples: np.ndarray) -> np.ndarray:
        rows = self._statistics.embed(samples)
        return np.where(np.abs(samples).max(axis=1, keepdims=True) > 0, rows, 0.0)

    def project(self, embeddings: np.ndarray, dimensions: int) -> np.ndarray:
        return embeddings[:, :dimensions]


@pytest.mark.slow
def test_the_held_out_side_alone_is_heard_worse(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = []

    def silence(sound: np.ndarray, generator: np.random.Generator) -> np.ndarray:
        heard.append(len(sound))
        return np.zeros_like(sound)

    conditions = tuple(
        degradations.SoundCondition(
            each.name, each.title, silence if each.name == "pocket" else keep
        )
        for each in CONDITIONS
    )
    monkeypatch.setattr(robustness, "CONDITIONS", conditions)
    found = probe.probe(dataset, lambda held: Deaf())
    values = found.values()
    # Each clip is three seconds, and is held out once.
    assert heard == [3] * 32
    # A condition that changes nothing changes no measure: the probe is the same.
    np.testing.assert_allclose(
        values["robustness.noise_0.second_accuracy"], values["second_accuracy"]
    )
    np.testing.assert_allclose(values["robustness.noise_0.same_place"], values["places.halves"])
    assert values["second_accuracy"].min() > 0.8
    # Silence says nothing: one class is said of all, of which a quarter are.
    assert values["robustness.pocket.second_accuracy"] == pytest.approx([0.25, 0.25], abs=0.01)
    assert values["robustness.pocket.same_place"].max() < 0.2


def keep(sound: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    return sound


def test_statistics_hear_what_comes_later_on_the_scale_of_what_came_first(
    dataset: Dataset,
) -> None:
    seconds = cut(dataset)
    statistics = LogMelStatistics()
    every = embed(statistics, seconds.sound)
    np.testing.assert_allclose(embed(statistics, seconds.sound[5:9]), every[5:9], atol=1e-5)


@pytest.mark.slow
def test_each_encoder_is_measured_as_if_it_were_alone(dataset: Dataset) -> None:
    encoders = [lambda held: Deaf(), lambda held: LogMelStatistics()]
    several = probe.probe_several(dataset, encoders)
    for found, encoder_for in zip(several, encoders, strict=True):
        alone = probe.probe(dataset, encoder_for).values()
        for name, values in found.values().items():
            np.testing.assert_allclose(values, alone[name], err_msg=name)
    # Both hear the same of clean sound, and the table says so.
    shown = [line.split() for line in measure_lines(["deaf", "statistics"], several)]
    mean, wide = interval(several[0].values()["second_accuracy"])
    cell = [f"{mean:.3f}", "±", f"{wide:.3f}"]
    chance = f"{several[0].chance()['second_accuracy']:.3f}"
    assert ["second", "accuracy", *cell, *cell, "chance", chance] in shown
    compared = [line.split() for line in difference_lines(["deaf", "statistics"], several)]
    assert ["second", "accuracy", "+0.000", "±", "0.000"] in compared


def test_the_probe_itself_is_fitted_without_the_side(dataset: Dataset) -> None:
    seconds = cut(dataset)
    rows = embed(LogMelStatistics(), seconds.sound)
    other = rows.copy()
    other[seconds.sides[seconds.clip] == 0] = 0
    np.testing.assert_array_equal(
        fit(seconds, rows, 0).log_odds(rows), fit(seconds, other, 0).log_odds(rows)
    )


def test_what_has_no_label_is_said_to_be_missing(dataset: Dataset) -> None:
    bare = Dataset(
        "bare", tuple(type(c)(c.path, None, c.group, fold=c.fold) for c in dataset.clips)
    )
    found = probe.probe(bare, lambda held: LogMelStatistics())
    assert "there are fewer than two labels: kinds of sound are not measured" in list(
        sound_lines(found)
    )
    assert "Kinds of sound" not in list(measure_lines(["a"], [found]))


@pytest.mark.slow
def test_a_probe_works_on_one_thread(dataset: Dataset) -> None:
    threads: list[int] = []

    class Counting(Deaf):
        def project(self, embeddings: np.ndarray, dimensions: int) -> np.ndarray:
            threads.extend(pool["num_threads"] for pool in threadpool_info())
            return super().project(embeddings, dimensions)

    probe.probe(dataset, lambda held: Counting())
    assert set(threads) == {1}


def test_a_probe_does_not_wait_for_keras() -> None:
    """Nor does anybody else who only asks what a recipe is."""
    names = "earshot_models.recipe, earshot_simulations.probing.probe"
    names += ", earshot_simulations.probing.table, earshot_simulations.probing.contenders"
    code = f"import sys, {names}; print('keras' in sys.modules)"
    told = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert told.stdout == "False\n"


@pytest.mark.slow
def test_the_command_compares(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["--data", str(folder), "--encoder", DEFAULT_ENCODER, "--raw", "--out", str(out)]
    result = earshot("probe", *words)
    assert result.returncode == 0, result.stderr
    figures = json.loads((out / "probe.json").read_text())
    assert [each["label"] for each in figures["encoders"]] == [
        DEFAULT_ENCODER,
        "log-mel statistics",
    ]
    shipped, raw = figures["encoders"]
    assert "cost" in shipped
    assert "cost" not in raw
    (paired,) = figures["paired"]
    assert (paired["encoder"], paired["to"]) == ("log-mel statistics", DEFAULT_ENCODER)
    for heard in ("noise_20", "noise_10", "noise_0", "pocket", "device", "room"):
        for name in ("second_accuracy", "same_place"):
            first, second = (of["robustness"][heard][name] for of in (shipped, raw))
            gap = np.subtract(second["folds"], first["folds"])
            of = paired["robustness"][heard][name]
            assert of["mean"] == pytest.approx(gap.mean(), abs=2e-4)
            assert of["clear"] == (abs(of["mean"]) > of["interval_95"])
    # The statistics have no projection: nothing is said of it.
    assert "ari_by_dimensions" in shipped
    assert "ari_by_dimensions" not in paired
    assert f"difference to {DEFAULT_ENCODER}, paired" in result.stdout
    assert side_names(open_dataset(folder)) == figures["held_out"]
