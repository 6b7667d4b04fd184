"""The same place again: what counts as one, against hand-made embeddings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile
from sklearn.metrics import adjusted_rand_score

from earshot_models.datasets.dataset import Clip, Dataset
from earshot_models.datasets.opening import open_dataset
from earshot_protocol.errors import InvalidInputError
from earshot_simulations.probing.figures import encoder_figures, refuse_nothing, sound_figures
from earshot_simulations.probing.places import PlaceMeasures, measure_places, same_place
from earshot_simulations.probing.probe import probe
from earshot_simulations.probing.seconds import NO_HALF, ClipWindows, cut

CLIPS, WINDOWS = 24, 9
"""Clips of five seconds; a window every half second."""

HALF = np.array([0, 0, 0, 0, NO_HALF, 1, 1, 1, 1])


def visited(recordings: np.ndarray | None = None, groups: np.ndarray | None = None) -> ClipWindows:
    """One side of clips without sound, each a recording of its own unless said otherwise."""
    clip = np.repeat(np.arange(CLIPS), WINDOWS)
    own = np.arange(CLIPS)
    return ClipWindows(
        np.empty((len(clip), 0), dtype=np.float32),
        np.full(len(clip), -1),
        clip,
        np.tile(np.arange(WINDOWS) % 2 == 0, CLIPS),
        np.tile(HALF, CLIPS),
        np.full(CLIPS, -1),
        own if recordings is None else recordings,
        own if groups is None else groups,
        np.zeros(CLIPS, dtype=np.int64),
        (),
        ("1",),
    )


def measured(seconds: ClipWindows, embeddings: np.ndarray) -> PlaceMeasures:
    found = measure_places(seconds, embeddings, 0)
    assert found is not None
    return found


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_one_hot_clips_are_all_found() -> None:
    seconds = visited()
    found = measured(seconds, np.eye(CLIPS)[seconds.clip])
    assert (found.halves, found.seconds) == (1, 1)
    assert found.ari == pytest.approx(1)
    assert found.chance == pytest.approx(1 / CLIPS)


@pytest.mark.slow
def test_what_says_nothing_finds_as_much_as_chance() -> None:
    seconds = visited()
    scores = []
    for seed in range(40):
        noise = unit(np.random.default_rng(seed).normal(size=(len(seconds.clip), 16)))
        found = measured(seconds, noise)
        scores.append([found.halves, found.seconds, found.ari + 1 / CLIPS])
    assert np.abs(np.mean(scores, axis=0) - 1 / CLIPS).max() < 0.02


def test_what_is_always_the_same_finds_nothing() -> None:
    seconds = visited()
    found = measured(seconds, np.ones((len(seconds.clip), 4)) / 2)
    assert found.halves == found.seconds == pytest.approx(1 / CLIPS)


def test_halves_and_seconds_are_sought_as_by_hand() -> None:
    recordings = np.arange(CLIPS) // 2
    seconds = visited(recordings, recordings)
    generator = np.random.default_rng(5)
    centres = unit(generator.normal(size=(CLIPS, 8)))[recordings][seconds.clip]
    embeddings = unit(centres + 0.4 * generator.normal(size=centres.shape))
    found = measured(seconds, embeddings)
    # Seconds at 0 and 1 s are in the first half, at 3 and 4 s in the second; the one at 2 s is in
    # neither.
    each = embeddings.reshape(CLIPS, WINDOWS, 8)[:, [0, 2, 6, 8]].reshape(CLIPS, 2, 2, 8)
    means = each.mean(axis=2)
    means /= np.linalg.norm(means, axis=2, keepdims=True)
    halves, single = [], []
    for clip in range(CLIPS):
        for half in range(2):
            nearest = max(range(CLIPS), key=lambda c: means[c, 1 - half] @ means[clip, half])
            halves.append(recordings[nearest] == recordings[clip])
            for second in each[clip, half]:
                likeness = (each[:, 1 - half] @ second).max(axis=1)
                single.append(recordings[likeness.argmax()] == recordings[clip])
    assert found.halves == pytest.approx(np.mean(halves))
    assert found.seconds == pytest.approx(np.mean(single))
    assert 0.2 < found.seconds < found.halves < 1
    assert found.chance == pytest.approx(2 / CLIPS)


def test_takes_of_one_recording_are_one_place() -> None:
    """Of clips that sound as one if their recordings are one, none is an error of another."""
    recordings = np.arange(CLIPS) // 3
    torn, whole = visited(), visited(recordings, recordings)
    embeddings = np.eye(CLIPS)[recordings][whole.clip]
    assert measured(whole, embeddings).halves == measured(whole, embeddings).ari == 1
    assert measured(torn, embeddings).halves == pytest.approx(1 / 3)


def test_clips_that_may_share_a_place_are_not_sought_in_each_others_presence() -> None:
    groups = np.arange(CLIPS) // 3
    embeddings = np.eye(CLIPS)[groups][visited().clip]
    found = measured(visited(groups=groups), embeddings)
    assert found.halves == found.seconds == 1
    assert found.chance == pytest.approx(1 / (CLIPS - 2))
    # Where all are of one group, as of a speaker, it says nothing of places.
    alone = measured(visited(groups=np.zeros(CLIPS, dtype=np.int64)), embeddings)
    assert alone.halves == pytest.approx(1 / 3)


def test_a_half_is_sought_as_it_is_heard_among_clean_ones() -> None:
    seconds = visited()
    tested = seconds.tested(0)
    clean = np.eye(CLIPS)[seconds.clip[tested]]
    assert same_place(seconds, clean, clean, 0) == 1
    # All halves are heard as the first clip: only its own are found.
    mistaken = np.eye(CLIPS)[np.zeros(tested.sum(), dtype=np.int64)]
    assert same_place(seconds, clean, mistaken, 0) == pytest.approx(1 / CLIPS)
    # If both sides were heard so, nothing could be told.
    assert same_place(seconds, mistaken, mistaken, 0) == pytest.approx(1 / CLIPS)


def test_fewer_than_two_places_are_not_measured() -> None:
    one = visited(np.zeros(CLIPS, dtype=np.int64))
    embeddings = np.eye(CLIPS)[one.clip]
    assert measure_places(one, embeddings, 0) is None
    assert same_place(one, embeddings[one.tested(0)], embeddings[one.tested(0)], 0) is None
    short = replace(visited(), half=np.full(CLIPS * WINDOWS, NO_HALF))
    assert measure_places(short, embeddings, 0) is None


# ------------------------------------------------------------------------------ from files


class OneHot:
    """Knows recordings by their loudest frequency, and nothing else."""

    name, dimensions = "one hot", 64

    def embed(self, samples: np.ndarray) -> np.ndarray:
        loudest = np.abs(np.fft.rfft(samples))[:, :4000].argmax(axis=1) // 63
        return np.eye(self.dimensions, dtype=np.float32)[loudest]

    def project(self, embeddings: np.ndarray, dimensions: int) -> np.ndarray:
        return embeddings[:, :dimensions]


def tones(folder: Path, lengths: list[float]) -> Dataset:
    """Clips of pure tones without a label, by turns in two folds; so many seconds each."""
    clips = []
    for number, length in enumerate(lengths):
        time = np.arange(round(8000 * length)) / 8000
        path = folder / f"{number}.wav"
        soundfile.write(path, 0.5 * np.sin(2 * np.pi * 63 * (1.5 + number) * time), 8000)
        clips.append(Clip(path, None, f"group {number}", fold=1 + number % 2))
    return Dataset("tones", tuple(clips))


def test_places_need_no_label(tmp_path: Path) -> None:
    found = probe(tones(tmp_path, [5.0] * 12), lambda held: OneHot())
    figures = encoder_figures(found)
    assert set(figures) == {"encoder", "rate", "files_below_rate", "places", "robustness"}
    assert figures["places"]["halves"]["folds"] == [1, 1]
    assert figures["places"]["ari"]["mean"] == 1
    # A tone stands out of noise 10 dB below it.
    assert figures["robustness"]["noise_10"] == {
        "same_place": {"mean": 1, "interval_95": 0, "folds": [1, 1]}
    }
    sound = sound_figures(found)
    assert sound["classes"] == 0
    assert sound["chance"]["places.halves"] == pytest.approx(1 / 6, abs=1e-4)


def test_labels_that_are_all_the_same_are_as_good_as_none(tmp_path: Path) -> None:
    bare = tones(tmp_path, [5.0] * 12)
    same = replace(bare, clips=tuple(replace(clip, label="hum") for clip in bare.clips))
    found = encoder_figures(probe(same, lambda held: OneHot()))
    assert found == encoder_figures(probe(bare, lambda held: OneHot()))
    with pytest.raises(InvalidInputError, match="all clips of tones are of one class, hum"):
        same.check_classes()


def test_a_side_of_one_class_is_named(tmp_path: Path) -> None:
    bare = tones(tmp_path, [5.0] * 12)
    torn = replace(bare, clips=tuple(replace(c, label=f"class {c.fold}") for c in bare.clips))
    with pytest.raises(InvalidInputError, match="class 1, class 2 are held out together"):
        probe(torn, lambda held: OneHot())
    thirds = [(c, n % 3) for n, c in enumerate(bare.clips)]
    uneven = [replace(c, fold=n, label=str((n and c.fold) or 1)) for c, n in thirds]
    with pytest.raises(InvalidInputError, match="all sound that is of 0 is of one class"):
        probe(replace(bare, clips=tuple(uneven)), lambda held: OneHot())


def test_a_handful_of_seconds_is_probed_or_refused_by_name(tmp_path: Path) -> None:
    bare = tones(tmp_path, [2.0] * 8)
    labels = [f"class {number // 2 % 2}" for number in range(8)]
    named = zip(bare.clips, labels, strict=True)
    few = replace(bare, clips=tuple(replace(clip, label=label) for clip, label in named))
    assert probe(few, lambda held: OneHot()).values()["places.halves"].tolist() == [1, 1]
    shortest = few.where(lambda clip: clip in few.clips[:4])
    for clip in shortest.clips:
        soundfile.write(clip.path, soundfile.read(clip.path)[0][:8000], 8000)
    with pytest.raises(InvalidInputError, match="2 seconds are held out, too few for 4 clusters"):
        probe(shortest, lambda held: OneHot())


@pytest.mark.parametrize(
    ("length", "first", "second"),
    [
        (2.0, [0], [1]),
        (2.7, [0], [1, 1.5]),
        (3.0, [0, 0.5], [1.5, 2]),
        (5.0, [0, 0.5, 1, 1.5], [2.5, 3, 3.5, 4]),
        (1.9, [], []),
    ],
)
def test_halves_are_cut_at_a_half_second(
    tmp_path: Path, length: float, first: list[float], second: list[float]
) -> None:
    seconds = cut(tones(tmp_path, [length] * 2))
    own = seconds.half[seconds.clip == 1]
    assert (np.flatnonzero(own == 0) / 2).tolist() == first
    assert (np.flatnonzero(own == 1) / 2).tolist() == second


def test_what_cannot_be_compared_is_counted(tmp_path: Path) -> None:
    dataset = tones(tmp_path, [5.0] * 8 + [1.9, 0.4])
    quiet, rate = soundfile.read(dataset.clips[0].path)
    quiet[20000:] = 0
    soundfile.write(dataset.clips[0].path, quiet, rate)
    found = probe(dataset, lambda held: OneHot())
    assert sound_figures(found)["compared_in_places"] == {
        "clips": 7,
        "too_short": 2,
        "half_silent": 1,
    }


def test_sound_that_says_nothing_at_all_is_refused(tmp_path: Path) -> None:
    found = probe(tones(tmp_path, [1.0] * 8), lambda held: OneHot())
    with pytest.raises(InvalidInputError, match="fewer than two labels, and a held-out side"):
        refuse_nothing([found])


def test_a_silent_side_is_named(tmp_path: Path) -> None:
    dataset = tones(tmp_path, [5.0] * 6)
    for clip in dataset.clips[1::2]:
        soundfile.write(clip.path, np.zeros(40000), 8000)
    with pytest.raises(InvalidInputError, match="all sound of 2 is silent"):
        cut(dataset)


def test_takes_of_a_recording_share_its_number_in_esc(tmp_path: Path) -> None:
    (tmp_path / "rain").mkdir()
    sound = np.random.default_rng(0).normal(0, 0.1, 16000)
    names = ("1-17-A", "1-17-B", "1-23-A", "2-31-A")
    for name in names:
        soundfile.write(tmp_path / "rain" / f"{name}.wav", sound, 8000)
    seconds = cut(open_dataset(tmp_path))
    assert seconds.recordings.tolist() == [0, 0, 1, 2]
    assert adjusted_rand_score(seconds.recordings, seconds.groups) == 1
