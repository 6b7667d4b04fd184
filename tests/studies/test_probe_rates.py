"""Encoders of several rates in one probe: each hears the same seconds at its own rate."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
from support.command import earshot
from support.wide_encoder import WIDE_NAME, wide_file

from earshot_models.datasets.dataset import Dataset
from earshot_models.datasets.opening import open_dataset
from earshot_models.recipe import Recipe, Trained
from earshot_simulations.probing import cost
from earshot_simulations.probing.baseline import LogMelStatistics
from earshot_simulations.probing.probe import probe, probe_several
from earshot_simulations.probing.seconds import below_sentence, cut, cut_at
from earshot_simulations.probing.table import rate_lines
from earshot_studies.liebenow import encoders

LENGTHS = (2.0, 1.3, 0.4, 2.5)
"""Seconds of the clips of each class: two seconds, between, less than one, and two and a half."""


def built(folder: Path, rates: tuple[int, ...]) -> Dataset:
    """Two classes of noise in two folds, a clip of each length and rate; each a recording."""
    generator = np.random.default_rng(4)
    for number, label in enumerate(("dull", "sharp")):
        (folder / label).mkdir(parents=True)
        for clip, length in enumerate(LENGTHS * 2):
            rate = rates[clip % len(rates)]
            sound = generator.normal(0, 0.1, round(length * rate))
            if label == "dull":
                sound = np.convolve(sound, np.ones(rate // 2000) / (rate // 2000), mode="same")
            if clip == 3:
                sound[round(0.9 * rate) : round(2.1 * rate)] = 0
            path = folder / label / f"{1 + clip % 2}-{100 * number + clip}-A.wav"
            soundfile.write(path, sound, rate, subtype="FLOAT")
    return open_dataset(folder)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Recorded at 22,050 samples a second, which no second of 8 or 16 kHz divides."""
    return tmp_path_factory.mktemp("sounds") / "data"


@pytest.fixture(scope="module")
def dataset(folder: Path) -> Dataset:
    return built(folder, (22_050,))


class Wide(LogMelStatistics):
    """Hears of 16 kHz what the statistics hear of 8 kHz."""

    name, rate = "wide statistics", 16_000

    def embed(self, samples: np.ndarray) -> np.ndarray:
        assert samples.shape[1] == 16_000
        bins = np.fft.rfft(samples)[:, :4001]
        bins[:, 4000] = 0
        return super().embed(np.fft.irfft(bins, 8000) / 2)


def test_windows_are_the_same_at_every_rate(dataset: Dataset) -> None:
    both = cut_at([8000, 16_000], dataset)
    narrow, wide = both[8000], both[16_000]
    assert (narrow.rate, wide.rate) == (8000, 16_000)
    for name in ("label", "clip", "disjoint", "half", "recordings", "sides"):
        np.testing.assert_array_equal(getattr(narrow, name), getattr(wide, name))
    assert narrow.silent == wide.silent == 2
    # The one is what the other holds below 4 kHz; soxr's filters leave off at 3.65 kHz.
    bins = np.stack([np.abs(np.fft.rfft(of.sound))[:, 50:3600] for of in (narrow, wide)])
    assert len(narrow.sound) == len(wide.sound) > 30
    assert np.median(np.abs(bins[1] / 2 - bins[0]).mean(axis=1) / bins[0].mean(axis=1)) < 0.02
    # And alone it is the same as beside the other, as it always was for 8 kHz.
    np.testing.assert_array_equal(cut(dataset).sound, narrow.sound)
    np.testing.assert_array_equal(cut(dataset, rate=16_000).sound, wide.sound)


@pytest.mark.slow
def test_each_encoder_hears_at_its_own_rate(dataset: Dataset) -> None:
    encoders = [lambda held: Wide(), lambda held: LogMelStatistics()]
    several = probe_several(dataset, encoders)
    assert [each.seconds.rate for each in several] == [16_000, 8000]
    alone = probe(dataset, lambda held: LogMelStatistics()).values()
    # Whoever else is measured, figures of an encoder of 8 kHz are what they were.
    for name, values in several[1].values().items():
        np.testing.assert_array_equal(values, alone[name], err_msg=name)
    assert several[0].values().keys() == alone.keys()
    likeness = np.sum(several[0].embeddings * several[1].embeddings, axis=1)
    assert np.median(likeness) > 0.98


def test_encoders_of_two_rates_may_hold_out_a_side_each(dataset: Dataset) -> None:
    by_side = {"1": LogMelStatistics(), "2": Wide()}
    assert len(probe(dataset, by_side.__getitem__).folds) == 2


def test_files_below_the_rate_of_an_encoder_are_brought_up_and_counted(tmp_path: Path) -> None:
    dataset = built(tmp_path / "mixed", (8000, 16_000, 44_100))
    both = cut_at([8000, 16_000], dataset)
    assert (both[8000].below, both[16_000].below) == (0, 6)
    assert below_sentence(both[8000], "small") == ""
    found = probe_several(dataset, [lambda held: LogMelStatistics(), lambda held: Wide()])
    assert list(rate_lines(["small", "great"], found)) == [
        "6 files have fewer samples per second than the 16,000 that great hears: they were "
        "resampled, without anything in the upper band"
    ]


@pytest.mark.slow
def test_the_command_measures_a_wide_encoder_and_says_what_it_misses(
    dataset: Dataset, folder: Path, tmp_path: Path
) -> None:
    path = wide_file(tmp_path)
    words = ["--data", str(folder), "--encoder", str(path), "--raw"]
    result = earshot("probe", *words, "--json")
    assert result.returncode == 0, result.stderr
    wide, raw = json.loads(result.stdout)["encoders"]
    assert (wide["label"], wide["rate"], wide["files_below_rate"]) == (WIDE_NAME, 16_000, 0)
    assert (raw["rate"], raw["files_below_rate"]) == (8000, 0)
    assert wide["cost"]["cpu_ms"] > wide["cost"]["spectrum_ms"] > 0
    outcome = encoders.embedding_space(dataset, cost.LiteRtEncoder.open(path))
    assert "resampled" not in outcome.note


def test_a_picture_of_a_space_says_what_its_encoder_misses(tmp_path: Path) -> None:
    dataset = built(tmp_path / "low", (8000,))
    outcome = encoders.embedding_space(dataset, Wide())
    assert "\n16 files have fewer samples per second than the 16,000 that wide" in outcome.note


@pytest.mark.slow
def test_encoders_that_are_trained_to_hear_more_are_measured_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, path = built(tmp_path / "low", (8000,)), wide_file(tmp_path)
    variants = encoders._variants(dataset, [], Recipe())
    monkeypatch.setattr(encoders, "_variants", lambda *given: variants[:2])
    monkeypatch.setattr(encoders, "train_encoder", lambda *given, **more: Trained(path, path, []))
    outcome = encoders.linear_accuracy(dataset, [], tmp_path / "encoders", Recipe())
    assert [row["encoder"] for row in outcome.rows] == ["none: log-mel statistics", "synthesized"]
    assert "\n16 files have fewer samples per second than the 16,000 that a" in outcome.note
