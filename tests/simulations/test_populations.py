from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import soundfile

from earshot_client.encoder import default_encoder, rate_of
from earshot_client.features import one_second
from earshot_models.datasets.dataset import DatasetError
from earshot_models.soundscapes import SCENES, synthesize
from earshot_protocol.errors import InvalidInputError, InvalidParametersError, WrongStateError
from earshot_simulations.populations import (
    Blobs,
    Recordings,
    SimulatedPopulation,
    SoundFolder,
    Soundscapes,
)
from earshot_simulations.populations.embedded import embedded
from earshot_simulations.populations.population import PhoneCrowd

RATE = rate_of(default_encoder())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three classes of six files, and one of each kind that cannot be used."""
    root = tmp_path_factory.mktemp("sounds")
    generator = np.random.default_rng(0)
    for label in ("birds", "rain", "train"):
        (root / label).mkdir()
        for i in range(6):
            sound = synthesize(label, 3, generator, RATE).ravel()
            suffix = ("wav", "flac", "ogg")[i % 3]
            soundfile.write(root / label / f"{i}.{suffix}", sound, RATE)
    (root / "rain" / "broken.wav").write_bytes(b"not a sound")
    soundfile.write(root / "rain" / "short.wav", np.full(RATE // 2, 0.1), RATE)
    half_silent = np.concatenate([synthesize("train", 1, generator, RATE)[0], np.zeros(RATE)])
    soundfile.write(root / "train" / "half.wav", half_silent, RATE)
    return root


Maker = Callable[[], SimulatedPopulation]


@pytest.fixture(params=["blobs", "soundscapes", "folder"])
def make(request: pytest.FixtureRequest, folder: Path) -> Maker:
    makers: dict[str, Maker] = {
        "blobs": lambda: Blobs(12, 10, 3, labelled=0.5, seed=4),
        "soundscapes": lambda: Soundscapes(12, 10, 3, labelled=0.5, seed=4),
        "folder": lambda: SoundFolder(folder, 12, 10, labelled=0.5, seed=4),
    }
    return makers[request.param]


def nearest_mean_accuracy(population: SimulatedPopulation) -> float:
    """Of the held-out recordings, by the means of what the phones heard."""
    heard = [population.recordings(phone) for phone in range(population.phones)]
    points = np.concatenate([h.points for h in heard])
    scenes = np.concatenate([h.scenes for h in heard])
    means = np.stack([points[scenes == s].mean(axis=0) for s in range(len(population.labels))])
    new = population.held_out()
    distances = np.linalg.norm(new.points[:, np.newaxis] - means, axis=2)
    return float(np.mean(distances.argmin(axis=1) == new.scenes))


@pytest.mark.slow
def test_every_population_keeps_its_word(make: Maker) -> None:
    with make() as population:
        for phone in range(population.phones):
            heard = population.recordings(phone)
            assert heard.points.dtype == np.float32
            assert heard.labels.dtype == heard.scenes.dtype == np.int16
            assert heard.points.shape == (len(heard.scenes), population.dimensions)
            assert len(heard.labels) == len(heard.scenes) <= 15
            named = heard.labels >= 0
            np.testing.assert_array_equal(heard.labels[named], heard.scenes[named])
            assert set(heard.scenes) <= set(range(len(population.labels)))
            if population.geometry == "spherical":
                np.testing.assert_allclose(np.linalg.norm(heard.points, axis=1), 1, atol=1e-5)
            else:
                assert population.geometry == "euclidean"
                assert (np.abs(heard.points) <= 1).all()
        new = population.held_out()
        counts = np.bincount(new.scenes, minlength=len(population.labels))
        assert len(set(counts)) == 1
        assert counts[0] > 0
        np.testing.assert_array_equal(new.labels, new.scenes)
        assert nearest_mean_accuracy(population) > 0.9


def same(one: Recordings, other: Recordings) -> bool:
    return all(
        np.array_equal(getattr(one, field), getattr(other, field))
        for field in ("points", "labels", "scenes")
    )


@pytest.mark.slow
def test_a_seed_gives_the_same_population_in_every_process(make: Maker) -> None:
    with make() as one, make() as two:
        pickled = pickle.dumps(one)
        assert len(pickled) < 5000
        copy = pickle.loads(pickled)  # noqa: S301
        for phone in reversed(range(12)):
            assert same(one.recordings(phone), one.recordings(phone))
            assert same(one.recordings(phone), two.recordings(phone))
            assert same(one.recordings(phone), copy.recordings(phone))
        assert same(one.held_out(), copy.held_out())
        assert not same(one.recordings(1), one.recordings(2))


def test_there_is_no_other_phone(make: Maker) -> None:
    with make() as population:
        for phone in (-1, 12):
            with pytest.raises(InvalidInputError, match="0 to 11"):
                population.recordings(phone)


def test_phones_differ_in_number_and_mix() -> None:
    crowd = PhoneCrowd(phones=3000, recordings=20, scenes=5, labelled=0.2, seed=1)
    heard = [crowd.heard(phone) for phone in range(3000)]
    counts = np.array([len(scenes) for scenes, _, _ in heard])
    assert [crowd.count(phone) for phone in range(50)] == list(counts[:50])
    assert set(counts) == {0, *range(10, 31)}
    assert 10 <= np.sum(counts == 0) <= 60
    assert counts[counts > 0].mean() == pytest.approx(20, abs=0.5)
    scenes = np.concatenate([scenes for scenes, _, _ in heard])
    labels = np.concatenate([labels for _, labels, _ in heard])
    np.testing.assert_allclose(np.bincount(scenes) / len(scenes), 0.2, atol=0.02)
    assert np.mean(labels >= 0) == pytest.approx(0.2, abs=0.01)
    # Var of one share of a symmetric Dirichlet(0.5) of five, plus that of the multinomial.
    share = np.array([np.mean(scenes == 0) for scenes, _, _ in heard if len(scenes)])
    variance = 0.2 * 0.8 / (5 * 0.5 + 1)
    sampling = (0.2 * 0.8 - variance) * np.mean(1 / counts[counts > 0])
    assert share.var() == pytest.approx(variance + sampling, rel=0.1)


def test_one_recording_per_phone_is_possible() -> None:
    crowd = PhoneCrowd(phones=300, recordings=1, scenes=1, labelled=1.0, seed=0)
    assert {crowd.count(phone) for phone in range(300)} == {0, 1}


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"phones": 0}, "phones"),
        ({"recordings": 0}, "recordings"),
        ({"scenes": 0}, "scenes"),
        ({"scenes": 21}, "at most 20"),
        ({"labelled": 1.1}, "labelled"),
        ({"labelled": float("nan")}, "labelled"),
        ({"seed": -1}, "seed"),
    ],
)
def test_parameters_out_of_range_are_named(changed: dict[str, float], message: str) -> None:
    parameters = {"phones": 2, "recordings": 2, "scenes": 2, "labelled": 0.5, "seed": 0}
    with pytest.raises(InvalidParametersError, match=message):
        Blobs(**{**parameters, **changed})


@pytest.mark.parametrize("scenes", [1, 7, 20])
def test_blobs_are_round_and_apart(scenes: int) -> None:
    for seed in range(5):
        blobs = Blobs(2, 2, scenes, labelled=0.5, seed=seed)
        assert blobs.centres.shape == (scenes, 2)
        assert np.abs(blobs.centres).max() <= 0.85
        between = np.linalg.norm(blobs.centres[:, np.newaxis] - blobs.centres, axis=2)
        assert (between + np.eye(scenes)).min() >= 0.35 - 1e-6
        new = blobs.held_out()
        assert len(new.points) == 200 * scenes
        scatter = new.points - blobs.centres[new.scenes]
        assert scatter.std(axis=0) == pytest.approx([0.05, 0.05], rel=0.2)
    assert blobs.labels[0] == "scene 1"
    assert len(blobs.labels) == scenes


@pytest.mark.slow
def test_soundscapes_report_progress_and_do_not_depend_on_jobs() -> None:
    seen: list[tuple[int, int]] = []
    one = Soundscapes(
        40, 8, 2, 0.5, 3, progress=lambda what, done, total: seen.append((done, total))
    )
    two = Soundscapes(40, 8, 2, 0.5, 3, jobs=2)
    with one, two:
        for phone in range(40):
            assert same(one.recordings(phone), two.recordings(phone))
        total = sum(len(one.recordings(phone).scenes) for phone in range(40)) + 400
        assert seen[-1] == (total, total)
        assert len(seen) > 1
        assert [done for done, _ in seen] == sorted({done for done, _ in seen})
        assert one.labels == SCENES[:2]
        seen.clear()
        one.prepare()
        assert seen == []


@pytest.mark.slow
def test_no_two_recordings_are_the_same_sound() -> None:
    with Soundscapes(30, 10, 2, 0.5, 3, dimensions=16) as population:
        points = [population.recordings(phone).points for phone in range(30)]
        points.append(population.held_out().points)
        rows = np.concatenate(points)
        assert len(np.unique(rows, axis=0)) == len(rows)


def test_sound_answers_between_prepare_and_close_only() -> None:
    population = Soundscapes(3, 2, 1, 0.5, 3)
    with pytest.raises(WrongStateError, match="prepare"):
        population.recordings(0)
    population.prepare()
    kept = population.recordings(0).points.copy()
    held = population.held_out()
    population.close()
    population.close()
    assert np.isfinite(held.points).all()
    with pytest.raises(WrongStateError, match="prepare"):
        population.held_out()
    with population:
        np.testing.assert_array_equal(population.recordings(0).points, kept)


def test_sound_refuses_bad_parameters(folder: Path) -> None:
    with pytest.raises(InvalidParametersError, match="at most 10"):
        Soundscapes(3, 2, 11, 0.5, 3)
    with pytest.raises(InvalidParametersError, match="must be 1 to 128"):
        Soundscapes(3, 2, 2, 0.5, 3, dimensions=129)
    with pytest.raises(InvalidParametersError, match="jobs"):
        SoundFolder(folder, 3, 2, 0.5, 3, jobs=0)
    with pytest.raises(DatasetError):
        SoundFolder(folder / "absent", 3, 2, 0.5, 3)


def test_a_folder_lists_what_it_skipped_once(folder: Path) -> None:
    seen: list[tuple[int, int]] = []
    with SoundFolder(
        folder, 3, 5, 0.5, 1, progress=lambda what, *step: seen.append(step)
    ) as population:
        assert population.labels == ("birds", "rain", "train")
        skipped = {entry.recording: entry.reason for entry in population.skipped}
        assert len(population.skipped) == len(skipped) == 3
        assert skipped["rain/broken.wav"] == "unreadable"
        assert skipped["rain/short.wav"] == "too short"
        assert skipped["train/half.wav, second 2"] == "silent"
        assert seen[-1] == (21, 21)


def test_phones_hear_seconds_of_training_clips_of_their_scene(folder: Path) -> None:
    paths = [path for path in sorted(folder.glob("*/*")) if path.stem not in ("broken", "short")]
    encoder, known, names = default_encoder(), [], []
    for path in paths:
        seconds = soundfile.read(path, dtype="float32")[0].reshape(-1, RATE)
        seconds = seconds[seconds.std(axis=1) > 0.001]
        heard_alike = np.stack([one_second(second, RATE, RATE) for second in seconds])
        known.append(encoder.project(embedded(heard_alike, None), 128))
        names += [(path.parent.name, path.name)] * len(seconds)

    def sources(heard: Recordings) -> set[tuple[str, str]]:
        distances = np.linalg.norm(heard.points[:, np.newaxis] - np.concatenate(known), axis=2)
        assert (distances.min(axis=1) < 0.001).all()
        found = [names[i] for i in distances.argmin(axis=1)]
        assert [label for label, _ in found] == [population.labels[s] for s in heard.scenes]
        return set(found)

    with SoundFolder(folder, 60, 20, 0.5, 1, dimensions=128) as population:
        heard = set().union(*(sources(population.recordings(phone)) for phone in range(60)))
        unheard = sources(population.held_out())
    assert len(heard) + len(unheard) == len(paths)
    assert len(unheard) >= 3
    assert not heard & unheard


def test_a_class_without_a_usable_second_is_named(tmp_path: Path) -> None:
    sound = synthesize("rain", 4, np.random.default_rng(0), RATE)
    for label in ("good", "mute"):
        (tmp_path / label).mkdir()
        for i in range(4):
            soundfile.write(tmp_path / label / f"{i}.wav", sound[i] * (label == "good"), RATE)
    with pytest.raises(InvalidInputError, match=r"hear of mute: mute/.*is silent"):
        SoundFolder(tmp_path, 3, 2, 0.5, 0).prepare()


def test_files_go_with_the_population_that_made_them() -> None:
    population = Soundscapes(3, 2, 1, 0.5, 3)
    with population:
        copy = pickle.loads(pickle.dumps(population))  # noqa: S301
        files = copy._files
        copy.close()
        assert sorted(path.name for path in files.iterdir()) == ["points", "starts"]
        assert len(population.held_out().points) == 200
    assert not files.exists()
    with pytest.raises(WrongStateError, match="prepare"):
        copy.held_out()


def test_nothing_is_left_where_embedding_fails() -> None:
    def interrupt(what: str, done: int, total: int, line: str | None = None) -> None:
        folders.append(population._files)
        raise KeyboardInterrupt

    folders: list[Path] = []
    population = Soundscapes(3, 2, 1, 0.5, 3, progress=interrupt)
    with pytest.raises(KeyboardInterrupt):
        population.prepare()
    assert [folder.exists() for folder in folders] == [False]
