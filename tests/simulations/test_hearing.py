"""What several populations hear alike is heard once, and is what each would have heard alone."""

from __future__ import annotations

import multiprocessing
import os
import pwd
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import soundfile

from earshot_client.encoder import default_encoder, rate_of
from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_models.soundscapes import synthesize
from earshot_protocol.errors import InvalidParametersError
from earshot_simulations.phases.settings import Discovery, PolicyChoice, Settings, SummationChoice
from earshot_simulations.phases.simulation import open_population
from earshot_simulations.populations import (
    Blobs,
    Heterogeneity,
    LiftedBlobs,
    SimulatedPopulation,
    SoundFolder,
    hearing,
    soundscapes,
)
from earshot_simulations.populations.hearing import (
    Hearings,
    heard,
    hearing_kept,
    hearing_once,
    hearings_folder,
)
from earshot_simulations.sweeps.phase import SIMULATED
from earshot_simulations.sweeps.rows import FILE
from earshot_simulations.sweeps.sweep import Arm, Phase, _by_crowd, measured

SMALL = Settings(
    phones=5,
    recordings=4,
    scenes=2,
    data="soundscapes",
    corrupted=0.0,
    policy=PolicyChoice.ANYTHING,
    summation=SummationChoice.IDEAL,
    jobs=1,
)


@pytest.fixture
def embedded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many seconds the encoder was given, call by call; it and the sound take no time."""
    counts: list[int] = []

    def counted(self: LiteRtEncoder, samples: np.ndarray) -> np.ndarray:
        counts.append(len(samples))
        return np.array(samples[:, : 8 * self.dimensions : 8], np.float32)

    def drawn(scene: str, count: int, generator: np.random.Generator, rate: int) -> np.ndarray:
        return generator.random((count, rate), np.float32) - 0.5

    monkeypatch.setattr(LiteRtEncoder, "embed", counted)
    monkeypatch.setattr(soundscapes, "synthesize", drawn)
    return counts


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The system's temporary folder, in which nothing may be left."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def sounds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root, rate = tmp_path_factory.mktemp("sounds"), rate_of(default_encoder())
    for label in ("rain", "train"):
        (root / label).mkdir()
        for number, sound in enumerate(synthesize(label, 4, np.random.default_rng(0), rate)):
            soundfile.write(root / label / f"{number}.wav", sound, rate)
    (root / "rain" / "broken.wav").write_bytes(b"not a sound")
    return root


def answers(population: SimulatedPopulation) -> list[np.ndarray]:
    with population:
        heard = [population.recordings(phone) for phone in range(population.phones)]
        return [*(column for each in heard for column in each), *population.held_out()]


def check_same(one: list[np.ndarray], other: list[np.ndarray]) -> None:
    for here, there in zip(one, other, strict=True):
        np.testing.assert_array_equal(here, there)


def test_one_hearing_serves_every_projection_and_every_labelling(embedded: list[int]) -> None:
    correlated = Heterogeneity(labelled_correlation=0.5)
    crowds = [
        replace(SMALL, discovery=Discovery.LOCAL),
        replace(SMALL, discovery=Discovery.SECURE_SUM),
        replace(SMALL, labelled=0.9, dimensions=3, heterogeneity=correlated),
    ]
    alone = [answers(open_population(each)) for each in crowds]
    assert sum(embedded) % 3 == 0
    one_hearing = sum(embedded) // 3
    embedded.clear()
    with hearing_once():
        together = [answers(open_population(each)) for each in crowds]
    assert sum(embedded) == one_hearing
    assert [each[0].shape[1] for each in together] == [crowd.projected for crowd in crowds]
    for one, other in zip(alone, together, strict=True):
        check_same(one, other)


@pytest.mark.parametrize(
    "other",
    [
        {"seed": 1},
        {"scenes": 3},
        {"phones": 6},
        {"recordings": 5},
        {"encoder": "contrast-1"},
        {"heterogeneity": Heterogeneity(concentration=9.0)},
    ],
)
def test_another_crowd_hears_for_itself(other: dict[str, object], embedded: list[int]) -> None:
    changed = replace(SMALL, **other)  # type: ignore[arg-type]
    alone = answers(open_population(changed))
    with hearing_once(2):
        answers(open_population(SMALL))
        before = len(embedded)
        check_same(answers(open_population(changed)), alone)
        assert len(embedded) > before


def test_all_crowds_hear_one_folder_until_a_file_of_it_changes(
    sounds: Path, embedded: list[int]
) -> None:
    crowds = [(20, 8, 0.5, 1, 8), (20, 8, 0.2, 2, 32), (3, 5, 0.5, 1, 8)]

    def open_all() -> list[SoundFolder]:
        return [SoundFolder(sounds, *crowd) for crowd in crowds]

    alone = [answers(each) for each in open_all()]
    assert sum(embedded) == 3 * 8
    embedded.clear()
    with hearing_once():
        together = open_all()
        for population, expected in zip(together, alone, strict=True):
            check_same(answers(population), expected)
            assert [entry.recording for entry in population.skipped] == ["rain/broken.wav"]
        assert sum(embedded) == 8
        first = sounds / "rain" / "0.wav"
        later = first.stat().st_mtime_ns + 10**9
        os.utime(first, ns=(later, later))
        answers(open_all()[0])
        assert sum(embedded) == 8  # a copy of the folder is the same sound
        samples, rate = soundfile.read(first, dtype="float32")
        soundfile.write(first, -samples, rate)
        answers(open_all()[0])
        assert sum(embedded) == 16


def test_points_in_the_plane_and_on_the_sphere_are_one_crowd() -> None:
    parameters = 12, 10, 4, 0.4, 3
    plane, sphere = Blobs(*parameters), LiftedBlobs(*parameters)
    for phone in range(12):
        flat, lifted = plane.recordings(phone), sphere.recordings(phone)
        np.testing.assert_array_equal(flat.scenes, lifted.scenes)
        np.testing.assert_array_equal(flat.labels, lifted.labels)
        np.testing.assert_allclose(lifted.points[:, :2] / lifted.points[:, 2:], flat.points, 1e-4)
    new, raised = plane.held_out(), sphere.held_out()
    np.testing.assert_allclose(raised.points[:, :2] / raised.points[:, 2:], new.points, 1e-4)
    assert plane.labels == sphere.labels


def test_what_is_kept_is_bounded_and_the_longest_unused_goes_first(temporary: Path) -> None:
    made: list[str] = []

    def ask(name: str) -> None:
        def hear(folder: Path) -> None:
            made.append(name)
            (folder / "sound").write_text(name)

        with heard(name, hear) as folder:
            assert (folder / "sound").read_text() == name
        time.sleep(0.002)  # file systems tell times apart by that

    with hearing_once(2) as kept:
        for name in ("a", "b", "a", "c", "a", "b"):
            ask(name)
        places = [place for place in kept.folder.iterdir() if place.is_dir()]
        assert len(places) == 2
        with hearing_once(7) as inner:
            assert inner.folder == kept.folder
    assert made == ["a", "b", "c", "b"]
    ask("a")  # outside nothing is kept
    ask("a")
    assert made[4:] == ["a", "a"]


def test_what_was_interrupted_is_heard_anew() -> None:
    def interrupted(folder: Path) -> None:
        (folder / "half").touch()
        raise KeyboardInterrupt

    with hearing_once():
        with pytest.raises(KeyboardInterrupt), heard("a", interrupted):
            raise AssertionError("there is nothing to read")
        with heard("a", lambda folder: (folder / "whole").touch()) as found:
            assert [path.name for path in found.iterdir()] == ["whole"]


def test_of_several_processes_one_hears_and_the_others_wait(tmp_path: Path) -> None:
    fork, log = multiprocessing.get_context("fork"), tmp_path / "log"
    begun = fork.Barrier(3)

    def hear(folder: Path) -> None:
        with log.open("a") as lines:
            lines.write("heard, ")
        time.sleep(0.2)  # the others come meanwhile; it holds as well if they are late
        (folder / "sound").write_text("rain")

    def child(kept: Path) -> None:
        begun.wait()
        with Hearings(kept, 1).used(), heard("one crowd", hear) as found:
            assert (found / "sound").read_text() == "rain"

    with hearing_once() as kept:
        children = [fork.Process(target=child, args=(kept.folder,)) for _ in range(3)]
        for each in children:
            each.start()
        for each in children:
            each.join()
        assert [each.exitcode for each in children] == [0] * 3
    assert log.read_text() == "heard, "


# ---------------------------------------------------------------------------------- later runs


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of hearings that later runs find."""
    monkeypatch.setenv("EARSHOT_HEARINGS", str(tmp_path / "cache" / "hearings"))
    return tmp_path / "cache" / "hearings"


def later_run(settings: Settings) -> list[np.ndarray]:
    with hearing_kept():
        return answers(open_population(settings))


def test_a_later_run_hears_nothing_that_an_earlier_one_has_heard(
    cache: Path, embedded: list[int], sounds: Path
) -> None:
    for crowd in (SMALL, replace(SMALL, pool=3), replace(SMALL, data=str(sounds), seed=1)):
        alone = answers(open_population(crowd))
        embedded.clear()
        check_same(later_run(crowd), alone)
        assert embedded
        embedded.clear()
        check_same(later_run(crowd), alone)
        assert embedded == []
    assert cache.stat().st_mode & 0o077 == 0


def test_a_hearing_is_that_of_its_sound_its_encoder_and_its_libraries(
    cache: Path, embedded: list[int], monkeypatch: pytest.MonkeyPatch, sounds: Path
) -> None:
    pooled = replace(SMALL, pool=3)
    later_run(pooled)
    crowds = [{"phones": 9}, {"recordings": 7}, {"seed": 5}, {"heterogeneity": Heterogeneity(2.0)}]
    for other in crowds:  # whoever draws from the pool
        embedded.clear()
        later_run(replace(pooled, **other))  # type: ignore[arg-type]
        assert embedded == []
    for other in ({"pool": 4}, {"scenes": 3}, {"encoder": "contrast-1"}, {"pool": None}):
        embedded.clear()
        later_run(replace(pooled, **other))  # type: ignore[arg-type]
        assert embedded
    named = replace(pooled, encoder="contrast-3")  # the default, by its name
    embedded.clear()
    later_run(named)
    assert embedded == []
    for what in ("versions", "sources"):
        with monkeypatch.context() as others:
            others.setattr(hearing, what, lambda: "another machine's")
            embedded.clear()
            later_run(pooled)
            assert embedded


def test_a_hearing_that_is_not_as_it_was_written_is_heard_anew(
    cache: Path, embedded: list[int]
) -> None:
    right = later_run(SMALL)
    (place,) = (place for place in cache.iterdir() if place.is_dir())
    content = bytearray((place / "embeddings").read_bytes())
    content[17] ^= 1
    (place / "embeddings").write_bytes(content)
    embedded.clear()
    check_same(later_run(SMALL), right)
    assert embedded
    place.with_suffix(".sha256").unlink()
    embedded.clear()
    check_same(later_run(SMALL), right)
    assert embedded


def test_what_is_kept_for_later_runs_is_bounded_by_its_size(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hearing, "ROOM", 25)
    made: list[str] = []

    def ask(name: str, size: int) -> None:
        def hear(folder: Path) -> None:
            made.append(name)
            (folder / "sound").write_bytes(bytes(size))

        with heard(name, hear) as folder:
            assert (folder / "sound").stat().st_size == size
        time.sleep(0.002)  # file systems tell times apart by that

    def sizes() -> list[int]:
        return sorted(file.stat().st_size for file in cache.glob("*/sound"))

    for name in ("a", "b", "a", "c"):
        with hearing_kept():
            ask(name, 10)
    assert (made, sizes()) == (["a", "b", "c"], [10, 10])
    with hearing_kept():
        ask("a", 10)
        with hearing_once(3):  # a sweep of crowds that are larger together
            ask("huge", 30)
            assert sizes() == [30]
            ask("a", 10)
    assert made == ["a", "b", "c", "huge", "a"]
    assert sizes() == [10]


def test_where_nothing_can_be_kept_a_run_hears_for_itself(
    embedded: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("EARSHOT_HEARINGS", str(tmp_path / "file"))
    later_run(SMALL)
    embedded.clear()
    later_run(SMALL)
    assert embedded
    monkeypatch.delenv("EARSHOT_HEARINGS")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert hearings_folder() == tmp_path / "user" / "earshot" / "hearings"
    monkeypatch.setenv("XDG_CACHE_HOME", "user")
    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", lambda number: {}[number])
    assert hearings_folder() is None


# ---------------------------------------------------------------------------------------- pools


@pytest.mark.usefixtures("embedded")
def test_crowds_of_every_seed_draw_from_one_pool_and_never_what_is_held_out() -> None:
    pooled = replace(SMALL, pool=4, recordings=30)
    first, second = (open_population(replace(pooled, seed=seed)) for seed in (0, 1))
    with first, second:
        points = [
            np.concatenate([each.recordings(phone).points for phone in range(5)])
            for each in (first, second)
        ]
        distinct = [{row.tobytes() for row in each} for each in points]
        assert len(distinct[0]) == 4 * 2
        assert distinct[0] == distinct[1]
        for each in (first, second):
            held_out = each.held_out()
            assert not distinct[0] & {row.tobytes() for row in held_out.points}
        scenes = {
            row.tobytes(): scene
            for phone in range(5)
            for row, scene in zip(*first.recordings(phone)[::2], strict=True)
        }
        for phone in range(5):  # a second is of one scene, whoever hears it
            found = second.recordings(phone)
            assert [scenes[row.tobytes()] for row in found.points] == found.scenes.tolist()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"pool": 0}, "pool=0: must be a whole number, at least 1"),
        ({"pool": 5, "data": "blobs"}, "only synthesized sound has a pool"),
        ({"pool": 5, "data": "some/folder"}, "choose --data soundscapes"),
    ],
)
def test_a_pool_is_of_synthesized_seconds(wrong: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidParametersError, match=said):
        replace(SMALL, **wrong).check()  # type: ignore[arg-type]


@pytest.mark.slow
def test_a_sweep_hears_each_crowd_once(tmp_path: Path, embedded: list[int]) -> None:
    points = [
        {"discovery": Discovery.LOCAL},
        {"discovery": Discovery.SECURE_SUM, "labelled": 0.9},
    ]
    arms = [
        Arm({}, SIMULATED, tuple(replace(SMALL, **point, seed=seed) for seed in (0, 1)))  # type: ignore[arg-type]
        for point in points
    ]
    found = measured(arms, tmp_path / FILE)
    for seed in (0, 1):
        with open_population(replace(SMALL, seed=seed)):
            pass
    assert sum(embedded[: len(embedded) // 2]) == sum(embedded[len(embedded) // 2 :])
    assert found[0][1] == SIMULATED.run(arms[0].phases[1])


def test_phases_of_a_crowd_go_together_with_the_next_crowds_ahead() -> None:
    phases = [
        Phase(SIMULATED, replace(SMALL, seed=seed, epsilon=epsilon))
        for epsilon in (1.0, 2.0, 3.0)
        for seed in (2, 0, 1)
    ]

    def order(processes: int) -> list[int]:
        given = list(_by_crowd(phases, processes))
        assert {each.key for each in given} == {each.key for each in phases}
        assert len(given) == len(phases)
        return [each.settings.seed for each in given]

    assert order(1) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert order(2) == [0, 1, 0, 0, 2, 1, 1, 2, 2]
    assert order(8) == [0, 1, 2, 0, 0, 1, 1, 2, 2]
