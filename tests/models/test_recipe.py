"""From folders of sound to the file that phones carry, and the command that does it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soundfile
from support.command import earshot

from earshot_client.lite_rt_encoder import LiteRtEncoder
from earshot_models import origins, start_centroids
from earshot_models import recipe as recipes
from earshot_models.datasets.dataset import Dataset
from earshot_models.datasets.opening import open_dataset
from earshot_models.origins import SoundSource
from earshot_models.recipe import Recipe, train_encoder
from earshot_models.training import CheckpointError
from earshot_models.training_schedule import Schedule
from earshot_protocol import encoder_file
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.start_centroids import USUAL_COUNTS, USUAL_DIMENSIONS

pytestmark = pytest.mark.usefixtures("few_scenes")
TINY = Recipe(
    width=0.25,
    batch=8,
    held_out=0.2,
    schedule=Schedule(steps=4, steps_per_epoch=2, warm_up=1),
    atoms=16,
    seed=3,
)


@pytest.fixture(scope="module")
def digits(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("digits")
    generator = np.random.default_rng(2)
    for digit in range(10):
        for speaker in ("ann", "ben"):
            for take in range(12):
                word = np.sin(np.arange(3000) * (0.1 + digit / 10)) * generator.uniform(0.1, 0.3)
                soundfile.write(root / f"{digit}_{speaker}_{take}.wav", word, 8000)
    return root


def without_labels(dataset: Dataset) -> Dataset:
    return replace(dataset, clips=tuple(replace(clip, label=None) for clip in dataset.clips))


@pytest.mark.slow
def test_no_label_is_read_and_an_interrupted_run_ends_the_same(
    folder: Path, tmp_path: Path
) -> None:
    dataset = open_dataset(folder)
    whole = train_encoder(
        [SoundSource(dataset)], tmp_path / "whole", TINY, "tiny", credits_="by us"
    )
    assert [figures["step"] for figures in whole.history] == [2, 4]

    def interrupt(what: str, done: int, total: int, line: str | None = None) -> None:
        if what == "training" and done == 3:
            raise KeyboardInterrupt

    blind = [SoundSource(without_labels(dataset))]
    with pytest.raises(KeyboardInterrupt):
        train_encoder(blind, tmp_path / "torn", TINY, "tiny", progress=interrupt)
    assert not list((tmp_path / "torn").glob("*.tflite"))
    torn = train_encoder(blind, tmp_path / "torn", TINY, "tiny", credits_="by us")
    sound = np.random.default_rng(0).normal(0, 0.1, (9, 8000))
    for made in ("int8", "float32"):
        ours, theirs = (LiteRtEncoder.open(getattr(run, made)) for run in (whole, torn))
        np.testing.assert_array_equal(ours.embed(sound), theirs.embed(sound))
        np.testing.assert_array_equal(
            ours.project(ours.embed(sound), 8), theirs.project(theirs.embed(sound), 8)
        )
        for count, dimensions in product(USUAL_COUNTS, USUAL_DIMENSIONS):
            starts = ours.start_centroids(dimensions, count)
            np.testing.assert_array_equal(starts, theirs.start_centroids(dimensions, count))
    card = encoder_file.read(whole.int8.read_bytes()).card
    assert (card.name, card.trained["steps"], card.trained["seed"]) == ("tiny", 4, 3)
    assert card.trained["whitening"] in recipes.WHITENINGS
    assert {f"retrieval_{each}" for each in recipes.PROJECTIONS} <= card.trained.keys()
    assert LiteRtEncoder.open(whole.int8).embed(np.ones((1, 8000))).shape == (1, 128)
    before = whole.int8.read_bytes()
    with pytest.raises(CheckpointError, match="recipe"):
        train_encoder([SoundSource(dataset)], tmp_path / "whole", replace(TINY, seed=4), "tiny")
    assert whole.int8.read_bytes() == before


WITHOUT_TENSORFLOW = """
import sys

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "tensorflow":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Nowhere())
import importlib.util
find = importlib.util.find_spec
importlib.util.find_spec = lambda name, *of: None if name == "tensorflow" else find(name, *of)
from earshot_client.command import main
main()
"""


@pytest.mark.slow
def test_what_another_back_end_has_trained_is_exported_by_tensorflow(tmp_path: Path) -> None:
    few = ("--synthesized=1", "--steps=3", "--batch=8", "--width=0.25", "--name=moved-1")
    options = ("train", *few, "--out")
    command = [sys.executable, "-c", WITHOUT_TENSORFLOW, *options, str(tmp_path / "there")]
    jax = {**os.environ, "KERAS_BACKEND": "jax"}
    trained = subprocess.run(  # noqa: S603
        command, check=False, capture_output=True, text=True, env=jax
    )
    assert trained.returncode == 2, trained.stderr
    assert "the network is trained and kept in" in trained.stderr
    assert not list(tmp_path.rglob("*.tflite"))
    shutil.copytree(tmp_path / "there", tmp_path / "here")
    before = (tmp_path / "here/checkpoint/weights.npz").read_bytes()
    command = [sys.executable, "-m", "earshot_client", *options, str(tmp_path / "here")]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603
    assert (tmp_path / "here/checkpoint/weights.npz").read_bytes() == before
    card = encoder_file.read((tmp_path / "here/encoder.tflite").read_bytes()).card
    assert (card.name, card.trained["steps"]) == ("moved-1", 3)
    seconds = np.random.default_rng(0).normal(size=(20, 8000))
    assert LiteRtEncoder.open(tmp_path / "here/encoder.tflite").embed(seconds).std(axis=0).all()


@pytest.mark.slow
def test_sound_of_any_length_or_none_at_all(
    digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wide, learnt = [], []
    wider, learn = start_centroids.wider, start_centroids.learn

    def fewer(pools: Any, count: int, seed: int, rate: int) -> np.ndarray:
        wide.append(count - 7)
        return wider(pools, count - 7, seed, rate)

    def listening(components: Any, embeddings: np.ndarray, seed: int) -> list[np.ndarray]:
        learnt.append(len(embeddings))
        return learn(components, embeddings, seed)

    monkeypatch.setattr(start_centroids, "wider", fewer)
    monkeypatch.setattr(start_centroids, "learn", listening)
    spoken = open_dataset(digits)
    alone = replace(TINY, synthesized=0.0)
    trained = train_encoder([SoundSource(spoken)], tmp_path / "digits", alone, "digits")
    assert encoder_file.read(trained.int8.read_bytes()).card.trained["sound"] == (
        "Free Spoken Digits (240 clips)"
    )
    made = train_encoder([], tmp_path / "made", replace(TINY, synthesized=1.0), "made")
    assert 0 <= made.history[-1]["retrieval"] <= 1
    # Start centroids are those of sound that was changed and mixed.
    assert learnt == wide
    assert len(wide) == 2


@pytest.mark.parametrize("whitening", recipes.WHITENINGS)
def test_whitening_is_the_best_for_retrieval_unless_it_is_given(
    whitening: float,
) -> None:
    from earshot_models import training
    from earshot_models.components import public_components

    generator = np.random.default_rng(0)
    heard = generator.normal(size=(600, 128)) * np.geomspace(3, 0.1, 128)
    heard /= np.linalg.norm(heard, axis=1, keepdims=True)
    held_out = origins.Seconds(np.zeros((40, 8000), np.float32), np.repeat(np.arange(20), 2))
    close = np.repeat(heard[:20], 2, axis=0) + generator.normal(0, 0.02, (40, 128))
    scores = {}
    for each in recipes.WHITENINGS:
        components = public_components(heard, each)
        scores[each] = np.mean(
            [
                training.retrieval(components.projected(close, wide), held_out.recordings)
                for wide in recipes.PROJECTIONS
            ]
        )
    _, chosen, found = recipes._projection(heard, close, held_out, TINY)
    assert scores[chosen] == max(scores.values()) == pytest.approx(np.mean(list(found.values())))
    given = replace(TINY, whitening=whitening)
    assert recipes._projection(heard, close, held_out, given)[1] == whitening


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("held_out", 0.0),
        *(("atoms", atoms) for atoms in (-1, 1, 129)),
        *product(("texture", "patches"), (-0.1, float("nan"), 11)),
        *(("within_class", share) for share in (-0.1, float("nan"), 1)),
    ],
)
def test_options_out_of_range_are_named(option: str, value: object) -> None:
    bounds = ".* 2 to 128" if option == "atoms" else ""
    with pytest.raises(InvalidParametersError, match=f"{option}={value}: must be{bounds}"):
        replace(TINY, **{option: value})  # type: ignore[arg-type]


def test_what_cannot_be_trained_is_refused_before_anything_is_written(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    with pytest.raises(InvalidInputError, match="sound to learn from"):
        train_encoder([], out, TINY, "x")
    with pytest.raises(InvalidParametersError, match="no share"):
        train_encoder([SoundSource(open_dataset(folder))], out, replace(TINY, synthesized=1.0), "x")
    with pytest.raises(InvalidParametersError, match="objective"):
        replace(TINY, objective="supervised")
    monkeypatch.setattr(origins, "_SYNTHESIZED", 15)
    with pytest.raises(InvalidInputError, match="120 seconds of sound are not enough"):
        train_encoder([], out, replace(TINY, synthesized=1.0), "x")
    (tmp_path / "broken" / "rain").mkdir(parents=True)
    (tmp_path / "broken" / "rain" / "1.wav").write_bytes(b"no sound")
    with pytest.raises(InvalidInputError, match=r"no file of rain can be read: .*1\.wav"):
        train_encoder([SoundSource(open_dataset(tmp_path / "broken"))], out, TINY, "x")
    assert not out.exists()


# --------------------------------------------------------------------------------- the command


@pytest.mark.slow
def test_the_command_trains_what_it_is_told(
    folder: Path, digits: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "CREDITS.txt").write_text("Recorded by nobody.")
    told: list[tuple[list[SoundSource], Recipe, str]] = []

    def instead(sources: list[SoundSource], out: Path, recipe: Recipe, name: str, **more: object):
        told.append((sources, recipe, str(more["credits_"])))
        small = replace(TINY, seed=recipe.seed)
        return train_encoder(sources, out, small, name, credits_=str(more["credits_"]))

    monkeypatch.setattr(recipes, "train_encoder", instead)
    words = [
        *("--data", str(folder), "--data", str(digits), "--share", "0.6", "--share", "0.2"),
        *("--hold-out-fold", "2", "--hold-out-group", "ann", "--objective", "bilinear"),
        *("--without", "room", "--without", "mask", "--without", "texture"),
        *("--without", "patches", "--steps", "7", "--synthesized", "0.1"),
        *("--out", str(tmp_path / "out"), "--name", "mine-1", "--json"),
    ]
    result = earshot("train", *words)
    assert result.returncode == 0, result.stderr
    figures = json.loads(result.stdout)
    assert Path(figures["encoder"]).stat().st_size == figures["bytes"]
    ((sources, recipe, credits_),) = told
    assert [source.share for source in sources] == [0.6, 0.2]
    assert {clip.fold for clip in sources[0].dataset.clips} == {1}
    assert {clip.group for clip in sources[1].dataset.clips} == {"ben"}
    assert (recipe.objective, recipe.schedule.steps, recipe.synthesized) == ("bilinear", 7, 0.1)
    assert (recipe.augmentations.room, recipe.mask) == (0, 0)
    assert (recipe.texture, recipe.patches) == (0, 0)
    assert "Recorded by nobody." in credits_
    found = encoder_file.read(Path(figures["encoder"]).read_bytes())
    assert (found.card.name, found.credits) == ("mine-1", credits_)


def test_a_folder_with_another_thing_in_it_is_refused(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "encoder.tflite").write_text("precious")
    result = earshot("train", "--data", folder, "--out", tmp_path)
    assert result.returncode == 2
    assert "holds encoder.tflite" in result.stderr
    assert (tmp_path / "encoder.tflite").read_text() == "precious"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--share", "1", "--share", "2"), "--share must be given once"),
        (("--without", "rain"), "there is no 'rain'; .* mixed, .* patches"),
        (("--objective", "labels"), "objective must be one of"),
        (("--kind", "tau"), r"meta\.csv"),
        (("--steps", "-1"), "steps"),
        (("--steps", "0"), "steps"),
        (("--batch", "0"), "batch"),
        (("--width", "0"), "width"),
        (("--width", "nan"), "width=nan"),
        (("--batch", "99999999999"), "batch=99999999999"),
        (("--patience", "-3"), "patience=-3"),
        (("--seed", "-1"), "seed=-1"),
        (("--share", "nan"), "share=nan"),
        (("--synthesized", "nan"), "synthesized=nan"),
    ],
)
def test_mistakes_on_the_command_line_are_named(
    folder: Path, tmp_path: Path, words: tuple[str, ...], message: str
) -> None:
    out = tmp_path / "out"
    result = earshot("train", "--data", folder, "--out", out, *words)
    assert result.returncode == 2
    assert re.search(message, result.stderr)
    assert not out.exists()
