"""What a probe says, against textbooks, and that it cannot see what is held out."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from scipy import stats
from support.command import earshot
from support.esc_folder import write_esc_folder

from earshot_client.encoder import default_encoder, encoder_path, rate_of
from earshot_models.datasets.dataset import Dataset
from earshot_models.datasets.opening import open_dataset
from earshot_models.soundscapes import SCENES
from earshot_protocol.errors import InvalidInputError
from earshot_simulations.probing import cost, measures
from earshot_simulations.probing.baseline import LogMelStatistics
from earshot_simulations.probing.figures import encoder_figures
from earshot_simulations.probing.measures import FoldMeasures, fit, interval, projected
from earshot_simulations.probing.probe import probe
from earshot_simulations.probing.seconds import NO_HALF, ClipWindows, cut

CLASSES, FOLDS, CLIPS, WINDOWS = 4, 3, 6, 3
RATE = rate_of(default_encoder())
HOP = RATE // 2


def heard(silent_clip: bool = False) -> ClipWindows:
    """Windows without sound: each class has six clips in each of three folds."""
    clip_labels = np.tile(np.repeat(np.arange(CLASSES), CLIPS), FOLDS)
    sides = np.repeat(np.arange(FOLDS), CLASSES * CLIPS)
    clip = np.repeat(np.arange(len(sides)), WINDOWS)
    if silent_clip:
        clip = clip[clip != 0]
    place = np.arange(len(clip)) % WINDOWS
    return ClipWindows(
        np.empty((len(clip), 0), dtype=np.float32),
        clip_labels[clip],
        clip,
        place != 1,
        np.array([0, NO_HALF, 1])[place],
        clip_labels,
        np.arange(len(sides)),
        np.arange(len(sides)),
        sides,
        tuple("abcd"),
        ("1", "2", "3"),
    )


def measure(seconds: ClipWindows, embeddings: np.ndarray, side: int) -> FoldMeasures:
    return measures.measure(seconds, embeddings, fit(seconds, embeddings, side), side)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def clustered(seconds: ClipWindows, spread: float, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    centres = unit(generator.normal(size=(CLASSES, 16)))
    return unit(centres[seconds.label] + spread * generator.normal(size=(len(seconds.clip), 16)))


def test_separate_classes_score_one() -> None:
    seconds = heard()
    found = measure(seconds, clustered(seconds, 0.01), 1)
    assert (found.second_accuracy, found.clip_accuracy, found.neighbour_accuracy) == (1, 1, 1)
    assert found.ari == pytest.approx(1)
    assert found.silhouette > 0.9
    tested = (seconds.sides[seconds.clip] == 1) & seconds.disjoint
    np.testing.assert_array_equal(found.confusion, np.eye(CLASSES) * tested.sum() / CLASSES)


def test_what_says_nothing_of_the_class_scores_chance() -> None:
    seconds = heard()
    scores = []
    for seed in range(12):
        noise = unit(np.random.default_rng(seed).normal(size=(len(seconds.clip), 16)))
        found = measure(seconds, noise, seed % FOLDS)
        scores.append([found.second_accuracy, found.neighbour_accuracy, found.ari + 0.25])
    assert np.abs(np.mean(scores, axis=0) - 1 / CLASSES).max() < 0.06


@pytest.mark.slow
def test_knowing_a_recording_does_not_help_with_another() -> None:
    """An embedding that tells recordings apart, and says nothing else, scores chance."""
    seconds = heard()
    scores = []
    for seed in range(12):
        of_clip = unit(np.random.default_rng(seed).normal(size=(len(seconds.clip_labels), 16)))
        found = measure(seconds, of_clip[seconds.clip], seed % FOLDS)
        scores.append(found.second_accuracy)
    assert abs(np.mean(scores) - 1 / CLASSES) < 0.08


def test_measures_are_those_of_the_textbook(monkeypatch: pytest.MonkeyPatch) -> None:
    from sklearn.cluster import KMeans

    seconds = heard()
    embeddings = clustered(seconds, 0.35)
    found = measure(seconds, embeddings, 2)
    held = seconds.sides[seconds.clip] == 2
    tested = held & seconds.disjoint
    truth = seconds.label[tested]
    # Ten nearest by cosine, by hand.
    votes = []
    for row in embeddings[tested]:
        nearest = np.argsort(-(embeddings[~held] @ row))[:10]
        counts = np.bincount(seconds.label[~held][nearest], minlength=CLASSES)
        votes.append(counts.argmax())
    assert found.neighbour_accuracy == pytest.approx(np.mean(np.array(votes) == truth))
    # The adjusted Rand index from pairs, by hand.
    scores = []
    for seed in range(measures._KMEANS_SEEDS):
        means = KMeans(CLASSES, n_init=5, random_state=seed).fit_predict(embeddings[tested])
        pairs = np.triu_indices(len(truth), 1)
        together = (means[:, None] == means)[pairs]
        alike = (truth[:, None] == truth)[pairs]
        both, expected = (together & alike).sum(), together.sum() * alike.mean()
        scores.append((both - expected) / ((together.sum() + alike.sum()) / 2 - expected))
    assert found.ari == pytest.approx(np.mean(scores))
    # Cosine silhouette, by hand.
    apart = 1 - embeddings[tested] @ embeddings[tested].T
    of = []
    for index, own in enumerate(truth):
        others = np.arange(len(truth)) != index
        inside = apart[index][(truth == own) & others].mean()
        outside = min(apart[index][truth == other].mean() for other in set(truth) - {own})
        of.append((outside - inside) / max(inside, outside))
    assert found.silhouette == pytest.approx(np.mean(of), abs=1e-6)
    assert found.confusion.sum(axis=1).tolist() == np.bincount(truth).tolist()
    assert np.trace(found.confusion) / len(truth) == pytest.approx(found.second_accuracy)
    assert found.penalty in measures.PENALTIES


def test_clusters_are_sought_in_what_phones_project_to() -> None:
    seconds = heard()
    embeddings = np.hstack([clustered(seconds, 0.01), np.zeros((len(seconds.clip), 112))])
    noise = np.random.default_rng(3).normal(size=embeddings.shape)
    asked = []

    def project(rows: np.ndarray, dimensions: int) -> np.ndarray:
        asked.append(dimensions)
        return rows if dimensions < 64 else noise[: len(rows)]

    found = projected(seconds, embeddings, project, 1)
    assert list(found) == asked == [8, 16, 32, 64, 128]
    assert found[8] == found[16]
    # Classes lie apart: as many clusters find them, twice as many break them up.
    assert found[8].ari == pytest.approx(1)
    assert 0.5 < found[8].ari_twice < 0.99
    assert max(found[128].ari, found[128].ari_twice) < 0.1


def test_a_clip_that_is_silent_throughout_counts_as_wrong() -> None:
    whole, torn = heard(), heard(silent_clip=True)
    assert measure(whole, clustered(whole, 0.01), 0).clip_accuracy == 1
    clips = CLASSES * CLIPS
    assert measure(torn, clustered(torn, 0.01), 0).clip_accuracy == (clips - 1) / clips


def test_the_penalty_is_chosen_without_the_held_out_side() -> None:
    seconds = heard()
    embeddings = clustered(seconds, 0.5)
    other = embeddings.copy()
    held = seconds.sides[seconds.clip] == 0
    other[held] = unit(np.random.default_rng(9).normal(size=other[held].shape))
    assert measure(seconds, embeddings, 0).penalty == measure(seconds, other, 0).penalty


def test_the_interval_is_students() -> None:
    values = np.array([0.71, 0.8, 0.77, 0.9])
    mean, wide = interval(values)
    low, high = stats.t.interval(0.95, 3, values.mean(), stats.sem(values))
    assert (mean - wide, mean + wide) == pytest.approx((low, high))


# ------------------------------------------------------------------------------ from a folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of each scene the seventh clip is silent in its second half, and the eighth short."""
    root = write_esc_folder(tmp_path_factory.mktemp("esc"), SCENES[:3], clips=8, seconds=2)
    for seventh, eighth in zip(root.glob("*/1-*6-A.wav"), root.glob("*/2-*7-A.wav"), strict=True):
        sound = soundfile.read(seventh)[0]
        sound[RATE - HOP // 10 :] = 0  # resampling rings a little around an edge
        soundfile.write(seventh, sound, RATE)
        soundfile.write(eighth, soundfile.read(eighth)[0][: 5 * HOP // 4], RATE)
    return root


def test_clips_are_cut_every_half_second_and_silence_left_out(folder: Path) -> None:
    dataset = open_dataset(folder)
    seconds = cut(dataset, rate=RATE)
    assert seconds.names == ("1", "2")
    assert seconds.silent == 3
    assert len(seconds.clip) == 3 * (6 * 3 + 2 + 1)
    for number, clip in enumerate(dataset.clips):
        own = np.flatnonzero(seconds.clip == number)
        samples = soundfile.read(clip.path, dtype="float32")[0]
        if len(samples) < RATE:
            samples = np.pad(samples, 3 * HOP // 8)
        for place, index in enumerate(own):
            np.testing.assert_array_equal(
                seconds.sound[index], samples[place * HOP : place * HOP + RATE]
            )
            assert seconds.disjoint[index] == (place % 2 == 0)
            assert seconds.labels[seconds.label[index]] == clip.label
        assert seconds.names[seconds.sides[number]] == str(clip.fold)


def test_an_encoder_is_asked_for_by_what_is_held_out(folder: Path) -> None:
    asked = []

    def encoder_for(held: str) -> LogMelStatistics:
        asked.append(held)
        return LogMelStatistics()

    found = probe(open_dataset(folder), encoder_for)
    assert asked == ["1", "2"]
    figures = encoder_figures(found)
    assert figures["second_accuracy"]["folds"] == [
        round(fold.second_accuracy, 4) for fold in found.folds
    ]
    assert figures["clip_accuracy"]["mean"] > 0.9
    json.dumps(figures)


def test_some_clips_without_labels_are_refused(folder: Path) -> None:
    clips = open_dataset(folder).clips
    torn = Dataset("torn", (replace(clips[0], label=None), *clips[1:]))
    with pytest.raises(InvalidInputError, match="1 clips without a class of their own, of 24"):
        cut(torn)


@pytest.mark.slow
def test_the_command_measures_the_shipped_encoder(folder: Path, tmp_path: Path) -> None:
    out, cache = tmp_path / "out", tmp_path / "cache"
    words = ["--data", str(folder), "--cache", str(cache), "--out", str(out), "--json"]
    result = earshot("probe", *words)
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout)
    assert figures == json.loads((out / "probe.json").read_text())
    assert figures["encoder"] == default_encoder().name
    assert figures["second_accuracy"]["mean"] > 0.9
    spent = figures["cost"]
    for name in ("ari", "ari_twice"):
        assert list(figures[f"{name}_by_dimensions"]) == ["8", "16", "32", "64", "128"]
    assert spent["bytes"] <= 1_000_000
    assert spent["resident_mb"] <= 120
    assert 0 < spent["spectrum_ms"] < spent["cpu_ms"]


@pytest.mark.slow
def test_bad_files_are_left_out_named_and_counted(folder: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(folder, tmp_path / "sound"))
    label = open_dataset(folder).labels[0]
    before = earshot(*("probe", "--data", folder, "--raw", "--json", "--cache", tmp_path / "cache"))
    whole = json.loads(before.stdout)
    for index in range(12):
        (folder / label / f"1-{9000 + index}-A.wav").write_bytes(b"no sound")
    words = ["--data", str(folder), "--raw", "--cache", str(tmp_path / "cache")]
    told = earshot("probe", *words, "--json")
    assert told.returncode == 0, told.stderr
    figures = json.loads(told.stdout)
    assert figures["unreadable"]["count"] == 12
    assert all("does not decode" in file for file in figures["unreadable"]["files"])
    # As if those files were not there.
    assert {**figures, "unreadable": whole["unreadable"]} == whole
    assert (figures["clips"], whole["unreadable"]) == (whole["clips"], {"count": 0, "files": []})
    shown = earshot("probe", *words)
    assert "12 unreadable files" in shown.stdout
    assert "1-9000-A.wav does not decode" in shown.stdout
    assert "and 2 more" in shown.stdout


def test_a_class_whose_files_are_all_bad_is_named(folder: Path, tmp_path: Path) -> None:
    dataset = open_dataset(Path(shutil.copytree(folder, tmp_path / "sound")))
    label = dataset.labels[1]
    for clip in dataset.clips:
        if clip.label == label or clip is dataset.clips[0]:
            clip.path.write_bytes(b"no sound")
    with pytest.raises(InvalidInputError, match=rf"no file of {label} can be read: [^;]*/{label}/"):
        cut(dataset)


def test_a_probe_replaces_nothing_unasked(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "probe.json").write_text("precious")
    again = earshot("probe", "--data", folder, "--raw", "--out", tmp_path)
    assert again.returncode == 2
    assert "holds probe.json" in again.stderr
    assert (tmp_path / "probe.json").read_text() == "precious"


def test_mistakes_on_the_command_line_are_named(folder: Path, tmp_path: Path) -> None:
    absent = earshot("probe", "--data", folder, "--encoder", tmp_path / "no")
    assert absent.returncode == 2
    assert "cannot be read" in absent.stderr


@pytest.mark.slow
def test_cost_is_of_a_process_of_its_own() -> None:
    shipped = encoder_path()
    spent = cost.cost(shipped)
    assert spent.bytes == shipped.stat().st_size
    assert 20 < spent.resident_mb <= 120
