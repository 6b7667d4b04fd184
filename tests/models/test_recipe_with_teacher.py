"""An encoder that learned from a larger one: the run, its cache, and the command."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.command import earshot
from support.teachers import Loudness, keras_file

from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_models import recipe as recipes
from earshot_models.datasets.opening import open_dataset
from earshot_models.origins import SoundSource
from earshot_models.recipe import TAUGHT, Recipe, train_encoder
from earshot_models.soundscapes import SCENES
from earshot_models.training import CheckpointError
from earshot_models.training_schedule import Schedule
from earshot_protocol import encoder_file
from earshot_protocol.errors import InvalidParametersError

pytestmark = pytest.mark.usefixtures("few_scenes")
TINY = replace(
    TAUGHT,
    rate=16_000,
    lessons=300,
    width=0.25,
    batch=8,
    held_out=0.2,
    schedule=Schedule(steps=4, steps_per_epoch=2, warm_up=1),
    atoms=16,
    seed=3,
)


@pytest.mark.slow
def test_a_teacher_is_asked_once_and_an_interrupted_run_ends_the_same(
    folder: Path, tmp_path: Path
) -> None:
    sources, cache, teacher = [SoundSource(open_dataset(folder))], tmp_path / "cache", Loudness()
    whole = train_encoder(sources, tmp_path / "whole", TINY, "taught", teacher=teacher, cache=cache)
    assert teacher.asked == TINY.lessons

    def interrupt(what: str, done: int, total: int, line: str | None = None) -> None:
        if what == "training" and done == 3:
            raise KeyboardInterrupt

    torn = {"teacher": teacher, "cache": cache}
    with pytest.raises(KeyboardInterrupt):
        train_encoder(sources, tmp_path / "torn", TINY, "taught", progress=interrupt, **torn)
    again = train_encoder(sources, tmp_path / "torn", TINY, "taught", **torn)
    assert teacher.asked == TINY.lessons
    sound = np.random.default_rng(0).normal(0, 0.1, (9, 16_000))
    ours, theirs = (LiteRtEncoder.open(run.int8) for run in (whole, again))
    assert ours.rate == 16_000
    np.testing.assert_array_equal(ours.embed(sound), theirs.embed(sound))
    trained = encoder_file.read(whole.int8.read_bytes()).card.trained
    assert (trained["objective"], trained["teacher"]) == ("distillation", "loudness")
    # Another teacher's run is another run.
    other = Loudness()
    other.identity = "another"
    with pytest.raises(CheckpointError, match="teacher"):
        train_encoder(sources, tmp_path / "torn", TINY, "taught", teacher=other, cache=cache)


@pytest.mark.slow
def test_what_changes_within_a_recording_is_evened_out_by_share(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[int, int, float]] = []
    real = recipes.within_class_normalization

    def listening(
        embeddings: np.ndarray, recordings: np.ndarray, again: list, share: float, weight: float
    ):
        asked.append((len(np.unique(recordings)), len(again), share))
        assert weight == 0.1
        # One way as phones hear it, one in pockets: neither is the sound itself, nor the other.
        assert all((each * embeddings).sum(axis=1).mean() < 0.999 for each in again)
        assert not np.array_equal(*again)
        return real(embeddings, recordings, again, share, weight)

    monkeypatch.setattr(recipes, "within_class_normalization", listening)
    sound = np.random.default_rng(0).normal(0, 0.1, (9, 16_000))
    sources, embedded = [SoundSource(open_dataset(folder))], {}
    for share in (0.0, 0.5):
        recipe = replace(TINY, within_class=share)
        out = tmp_path / str(share)
        run = train_encoder(sources, out, recipe, "taught", teacher=Loudness())
        embedded[share] = LiteRtEncoder.open(run.int8).embed(sound)
    ((recordings, views, share),) = asked
    assert recordings > 10 * len(SCENES)  # those of the folder that are kept, and synthesized ones
    assert (views, share) == (2, 0.5)
    assert not np.allclose(embedded[0.0], embedded[0.5], atol=0.01)


def test_a_teacher_and_its_objective_come_together(folder: Path, tmp_path: Path) -> None:
    sources, out = [SoundSource(open_dataset(folder))], tmp_path / "out"
    with pytest.raises(InvalidParametersError, match="a teacher is needed"):
        train_encoder(sources, out, TINY, "x")
    narrow = Loudness()
    narrow.rate = 8000
    with pytest.raises(InvalidParametersError, match=r"hears 8000 .* phone is to hear 16000"):
        train_encoder(sources, out, replace(TINY, rate=16_000), "x", teacher=narrow)
    with pytest.raises(InvalidParametersError, match="rate must be one of 8000, 16000"):
        replace(TINY, rate=44_100)
    with pytest.raises(InvalidParametersError, match="and for no other"):
        train_encoder(sources, out, replace(TINY, objective="nt-xent"), "x", teacher=Loudness())
    talkative = Loudness()
    talkative.lengths = (200,) * 40
    with pytest.raises(InvalidParametersError, match="3700000 is the most"):
        train_encoder(sources, out, replace(TINY, width=1.5), "x", teacher=talkative)
    assert talkative.asked == 0
    with pytest.raises(InvalidParametersError, match="places: learned beside a teacher's output"):
        train_encoder(sources, out, Recipe(places=1.0), "x")
    assert not out.exists()


def test_the_command_opens_the_teacher_it_is_given(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[Recipe, object]] = []

    def instead(sources: object, out: Path, recipe: Recipe, name: str, **more: object) -> None:
        told.append((recipe, more["teacher"]))
        raise KeyboardInterrupt

    monkeypatch.setattr(recipes, "train_encoder", instead)
    path = keras_file(tmp_path, named="hidden")
    words = [*("--data", str(folder)), *("--out", str(tmp_path / "out")), "--teacher", str(path)]
    refused = earshot("train", *words)
    assert refused.returncode == 2
    assert "name the tensor" in refused.stderr
    assert not told
    assert not (tmp_path / "out").exists()
    ended = earshot("train", *words, "--teacher-tensor", "hidden", "--lessons", "500")
    assert ended.returncode == 130
    ((recipe, teacher),) = told
    assert teacher.name == "teacher"  # type: ignore[attr-defined]
    assert recipe == replace(TAUGHT, lessons=500)
    without = ("mixed", "backwards", "within-class", "patches", "places", "pocket")
    left_out = (word for part in without for word in ("--without", part))
    earshot("train", *words, "--teacher-tensor", "hidden", *left_out)
    assert told.pop()[0] == replace(
        TAUGHT,
        augmentations=replace(TAUGHT.augmentations, pocket=0.0),
        variation=replace(TAUGHT.variation, mixed=0.0, backwards=0.0),
        within_class=0.0,
        patches=0.0,
        places=0.0,
    )
    earshot("train", *words[:-2])
    assert told[1] == (recipes.CONTRAST, None)
