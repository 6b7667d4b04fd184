"""The loop: it learns, it resumes exactly, and it refuses what is not its own."""

from __future__ import annotations

import os
import shutil
from dataclasses import asdict
from functools import cache
from pathlib import Path

import keras
import numpy as np
import pytest

from earshot_models.augmentations import Augmentations
from earshot_models.contrastive import Contrastive
from earshot_models.distillation.lessons import Lessons, TaughtBatches, Variation
from earshot_models.front_end import LogMel
from earshot_models.network import build
from earshot_models.objectives import OBJECTIVES, Distillation
from earshot_models.origins import Seconds
from earshot_models.pairs import Pairs
from earshot_models.pools import Pool
from earshot_models.soundscapes import SCENES, synthesize
from earshot_models.training import CheckpointError, _Checkpoint, retrieval, train
from earshot_models.training_schedule import Schedule
from earshot_protocol.encoder_file import DIMENSIONS
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.spectrum import BANDS, FRAMES

SCHEDULE = Schedule(steps=12, steps_per_epoch=4, warm_up=3)


@cache
def sounds() -> list[np.ndarray]:
    generator = np.random.default_rng(0)
    return [synthesize(scene, 2, generator).ravel() for scene in SCENES]


def pairs(batch: int = 8) -> Pairs:
    clips = sounds()
    return Pairs([Pool(clips, np.arange(len(clips)), 1.0)], Augmentations(), batch, seed=1)


def taught(batch: int = 8) -> TaughtBatches:
    """Lessons whose targets say of which recording they are."""
    clips = sounds()
    pool = Pool(clips, np.arange(len(clips)), 1.0)
    lessons = Lessons([pool], Variation(mixed=0), 40)
    recordings = [lessons.spectrum(number)[1] for number in range(lessons.count)]
    return TaughtBatches(
        lessons,
        np.eye(len(clips), 128, dtype=np.float32)[recordings],
        Augmentations(),
        batch,
        1,
        8000,
    )


def held_out() -> Seconds:
    seconds = np.concatenate([sound.reshape(2, 8000) for sound in sounds()])
    return Seconds(seconds, np.repeat(np.arange(len(SCENES)), 2))


def model(objective: str = "nt-xent", width: float = 0.25, seed: int = 3) -> Contrastive:
    keras.utils.set_random_seed(seed)
    return Contrastive(LogMel(mask=0.5), build(width=width), OBJECTIVES[objective]())


def trained(folder: Path, **changes: object) -> tuple[Contrastive, list[dict[str, float]]]:
    ours = model(**{key: changes.pop(key) for key in ("objective", "width") if key in changes})
    arguments = {"schedule": SCHEDULE, "settings": {"a": 1}, **changes}
    batches = taught() if isinstance(ours.objective, Distillation) else pairs()
    history = train(ours, batches, held_out=held_out(), folder=folder, **arguments)
    return ours, history


def weights(of: Contrastive) -> list[np.ndarray]:
    return [variable.numpy() for variable in of.variables]


Run = tuple[Contrastive, list[dict[str, float]]]


@pytest.fixture
def ended(tmp_path: Path) -> Run:
    """Leave the checkpoint of a run that has ended in the test's folder.

    Nothing was trained: tracing a model is what takes long.
    """
    ours = model()
    ours.compile(optimizer=keras.optimizers.AdamW(weight_decay=SCHEDULE.weight_decay))
    ours.optimizer.build(ours.trainable_variables)
    history = [{"step": float(SCHEDULE.steps), "loss": 2.5, "retrieval": 0.5}]
    settings = {"a": 1, "schedule": asdict(SCHEDULE)}
    _Checkpoint(tmp_path, settings).save(ours, history)
    return ours, history


# Each objective is a model of its own to trace, twice over.
@pytest.mark.parametrize(
    "objective",
    [
        pytest.param("nt-xent", marks=pytest.mark.slow),
        pytest.param("momentum", marks=pytest.mark.slow),
        pytest.param("bilinear", marks=pytest.mark.slow),
        pytest.param("distillation", marks=pytest.mark.slow),
    ],
)
def test_a_run_that_was_killed_ends_as_one_that_was_not(objective: str, tmp_path: Path) -> None:
    killed = tmp_path / "killed"

    def kill(what: str, done: int, total: int, line: str | None = None) -> None:
        if done == 7:
            raise KeyboardInterrupt

    def keep(what: str, done: int, total: int, line: str | None = None) -> None:
        if done == 7:
            shutil.copytree(tmp_path / "whole", killed)

    if objective == "nt-xent":
        whole, history = trained(tmp_path / "whole")
        with pytest.raises(KeyboardInterrupt):
            trained(killed, objective=objective, progress=kill)
    else:  # what a kill would have left, of a run that goes on
        whole, history = trained(tmp_path / "whole", objective=objective, progress=keep)
    resumed, again = trained(killed, objective=objective)
    assert again == history
    for one, other in zip(weights(whole), weights(resumed), strict=True):
        np.testing.assert_array_equal(one, other)
    assert list((killed / "logs").rglob("events.*"))


def test_every_objective_is_killed() -> None:
    assert set(OBJECTIVES) == {"nt-xent", "momentum", "bilinear", "distillation"}


def test_a_finished_run_is_not_trained_on(ended: Run, tmp_path: Path) -> None:
    first, history = ended

    def refuse(what: str, done: int, total: int, line: str | None = None) -> None:
        raise AssertionError("it trains on")

    second, again = trained(tmp_path, progress=refuse)
    assert again == history
    for one, other in zip(weights(first), weights(second), strict=True):
        np.testing.assert_array_equal(one, other)


def learned(objective: str, folder: Path) -> Run:
    """What 120 steps make of a model; after 60, one seed in six finds too few of twenty seconds."""
    ours = model(objective, width=0.5)
    if ours.key_network is not None:
        ours.objective.momentum = 0.9  # or the keys would still be those of the beginning
    schedule = Schedule(steps=120, steps_per_epoch=60, warm_up=5)
    return ours, train(ours, pairs(16), schedule, held_out(), folder, {})


@pytest.fixture(scope="module")
def learner(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return learned("nt-xent", tmp_path_factory.mktemp("learner"))


@pytest.mark.slow
def test_it_learns_to_tell_recordings_apart(learner: Run) -> None:
    _, history = learner
    assert history[-1]["loss"] < 0.8 * np.log(31)
    assert history[-1]["retrieval"] > 0.6  # one in nineteen would be chance


@pytest.mark.slow
@pytest.mark.parametrize(
    ("objective", "least"), [("nt-xent", 0.8), ("momentum", 0.75), ("bilinear", 0.65)]
)
def test_every_objective_brings_views_of_one_sound_together(
    objective: str, least: float, learner: Run, tmp_path: Path
) -> None:
    ours, _ = learner if objective == "nt-xent" else learned(objective, tmp_path)
    first, second, recordings = pairs(64).batch(1000)
    views = [keras.ops.convert_to_numpy(each) for each in ours((first, second), training=True)]
    likeness = views[0] @ views[1].T
    apart = recordings[:, np.newaxis] != recordings
    nearer = (np.diag(likeness)[:, np.newaxis] > likeness)[apart]
    assert np.mean(nearer) > least  # chance is 0.5


@pytest.mark.slow
def test_it_ends_when_retrieval_no_longer_grows_and_keeps_the_best(tmp_path: Path) -> None:
    # So slow that nothing changes: retrieval is best in the first epoch, or as good.
    schedule = Schedule(40, steps_per_epoch=2, warm_up=0, learning_rate=1e-9, patience=2)
    _, history = trained(tmp_path, schedule=schedule)
    best = max(range(len(history)), key=lambda epoch: history[epoch]["retrieval"])
    assert len(history) == best + 3 < 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"width": 0.5}, "another architecture"),
        ({"objective": "bilinear"}, "another architecture"),
        ({"settings": {"a": 2}}, r"other settings \(a\)"),
        ({"schedule": Schedule(steps=13, steps_per_epoch=4)}, r"other settings \(schedule\)"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(
    changes: dict[str, object], said: str, ended: Run, tmp_path: Path
) -> None:
    before = (tmp_path / "checkpoint" / "weights.npz").read_bytes()
    with pytest.raises(CheckpointError, match=said):
        trained(tmp_path, **changes)
    assert (tmp_path / "checkpoint" / "weights.npz").read_bytes() == before


@pytest.mark.slow
@pytest.mark.parametrize("name", ["weights.npz", "state.json"])
def test_a_damaged_checkpoint_is_named(name: str, ended: Run, tmp_path: Path) -> None:
    file = tmp_path / "checkpoint" / name
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(CheckpointError, match=name):
        trained(tmp_path)


def test_a_kill_while_a_checkpoint_is_replaced_loses_nothing(ended: Run, tmp_path: Path) -> None:
    _, history = ended
    (tmp_path / "checkpoint").rename(tmp_path / "checkpoint.old")
    (tmp_path / "checkpoint.new").mkdir()
    assert trained(tmp_path)[1] == history


def test_a_checkpoint_is_on_the_disk_before_it_replaces_another(
    ended: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    order: list[str] = []
    fsync, replace = os.fsync, os.replace

    def noted(handle: int) -> None:
        order.append(Path(os.readlink(f"/proc/self/fd/{handle}")).name)
        fsync(handle)

    def moved(source: Path, target: Path) -> None:
        order.append(f"{source.name} -> {target.name}")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", noted)
    monkeypatch.setattr(os, "replace", moved)
    _Checkpoint(tmp_path, {"a": 1}).save(*ended)
    *content, folder, away, here, names = order
    assert sorted(content) == ["best.npz", "state.json", "weights.npz"]
    assert folder == "checkpoint.new"
    assert (away, here) == ("checkpoint -> checkpoint.old", "checkpoint.new -> checkpoint")
    assert names == tmp_path.name


@pytest.mark.slow
def test_a_loss_that_is_not_finite_is_named(tmp_path: Path) -> None:
    ours = model()
    kernel = ours.network.get_layer("embedding").kernel
    kernel.assign(np.full(kernel.shape, np.nan, np.float32))
    with pytest.raises(InvalidInputError, match="loss is nan at step 0"):
        train(ours, pairs(), SCHEDULE, held_out(), tmp_path, {})
    assert not (tmp_path / "checkpoint").exists()


def test_retrieval_counts_nearest_seconds_of_the_same_recording() -> None:
    angles = np.deg2rad([0, 10, 90, 95, 180, 140])
    rows = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    # Nearest: 0-1, 1-0, 2-3, 3-2, 4-5, and for 5 it is 4 (40 degrees) rather than 3 (45).
    assert retrieval(rows, np.array([7, 7, 8, 9, 5, 5])) == 1.0
    assert retrieval(rows, np.array([7, 8, 7, 8, 5, 5])) == pytest.approx(2 / 6)
    with pytest.raises(InvalidInputError, match="two seconds"):
        retrieval(rows, np.arange(6))


def test_the_learning_rate_rises_and_falls() -> None:
    schedule = Schedule(steps=100, warm_up=10, learning_rate=1.0)
    rates = [schedule.rate(step) for step in range(101)]
    assert rates[0] == pytest.approx(0.1)
    assert max(rates) == rates[9] == rates[10] == 1.0
    assert rates[55] == pytest.approx(0.5)
    assert rates[100] == pytest.approx(0, abs=1e-9)
    assert (np.diff(rates[10:]) < 0).all()


@pytest.mark.parametrize(
    "arguments", [{"steps": 0}, {"steps": 1, "learning_rate": 0}, {"steps": 1, "warm_up": -1}]
)
def test_bad_schedules_are_named(arguments: dict[str, float]) -> None:
    with pytest.raises(InvalidParametersError, match=list(arguments)[-1]):
        Schedule(**arguments)


def test_a_network_is_small_enough_for_a_phone() -> None:
    with pytest.raises(InvalidParametersError, match="3700000"):
        build(width=7)
    assert build().count_params() <= 205_000
    with pytest.raises(InvalidParametersError, match="width"):
        build(width=9)


def test_each_part_of_what_a_network_says_has_unit_length() -> None:
    spectra = np.random.default_rng(0).normal(-6, 3, (3, FRAMES, BANDS, 1)).astype(np.float32)
    said = keras.ops.convert_to_numpy(build(width=0.25, parts=3)(spectra))
    assert said.shape == (3, 3 * DIMENSIONS)
    lengths = np.linalg.norm(said.reshape(3, 3, DIMENSIONS), axis=2)
    np.testing.assert_allclose(lengths, 1, atol=1e-5)
