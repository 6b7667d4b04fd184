"""How an encoder is made, from folders of sound to the file that phones carry.

The defaults are the recipe of the shipped encoder. No label is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from earshot_models import audio, soundscapes
from earshot_models.augmentations import Augmentations
from earshot_models.datasets.dataset import Dataset
from earshot_models.datasets.waveforms import Waveforms, waveforms
from earshot_models.pairs import Pairs, Pool
from earshot_models.training_schedule import Schedule
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

if TYPE_CHECKING:
    from earshot_models.contrastive import Contrastive
    from earshot_models.training import HeldOut

Progress = Callable[[int, int, str], None]
"""Called with what is done, what there is to do, and a line on it."""

OBJECTIVES = ("nt-xent", "momentum", "bilinear")

_SYNTHESIZED = 150
"""Seconds of each scene."""

_CALIBRATION = 400
_PUBLIC_SECONDS = 6000


@dataclass(frozen=True)
class Recipe:
    """All that an encoder follows from, besides the sound.

    Attributes:
        objective: one of `OBJECTIVES`.
        width: of the network.
        dropout: of its pooled features.
        augmentations: of the waveforms.
        mask: chance of a mask over bands, and of one over time.
        batch: pairs in a batch.
        synthesized: share of synthesized sound in a batch, 0 to below 1.
        held_out: fraction of the recordings that retrieval is measured on, instead of training.
        schedule: how long, how fast.
        whitening: of the public projection, 0 to 0.5.
        seed: of everything.
    """

    objective: str = "nt-xent"
    width: float = 1.0
    dropout: float = 0.1
    augmentations: Augmentations = field(default_factory=Augmentations)
    mask: float = 0.7
    batch: int = 128
    synthesized: float = 0.25
    held_out: float = 0.05
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=2000))
    whitening: float = 0.25
    seed: int = 0

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise InvalidParametersError(
                f"objective must be one of {', '.join(OBJECTIVES)}; not {self.objective!r}"
            )
        if not 0 <= self.synthesized < 1 or not 0 < self.held_out <= 0.5:
            raise InvalidParametersError(
                "synthesized must be 0 to below 1 and held_out above 0, to 0.5; not "
                f"{self.synthesized} and {self.held_out}"
            )


@dataclass(frozen=True)
class Source:
    """Sound to learn from.

    Attributes:
        dataset: its clips; their labels are not read.
        share: of a batch, relative to the other sources.
    """

    dataset: Dataset
    share: float = 1.0


@dataclass(frozen=True)
class Trained:
    """What training made.

    Attributes:
        int8: path of the encoder file for phones.
        float32: path of the one without quantization.
        history: per epoch, as `training.train` returns it.
    """

    int8: Path
    float32: Path
    history: list[dict[str, float]]


def train_encoder(
    sources: Sequence[Source],
    folder: Path,
    recipe: Recipe,
    name: str,
    *,
    cache: Path | None = None,
    credits_: str = "",
    progress: Progress | None = None,
) -> Trained:
    """Train an encoder and write `encoder.tflite` and `encoder-float32.tflite` into a folder.

    An interrupted run goes on from the folder's checkpoint.

    Args:
        sources: at least one.
        folder: for the files, checkpoints and TensorBoard logs.
        recipe: how.
        name: of the encoder.
        cache: folder for decoded sound.
        credits_: of the sound, to go with the files.
        progress: told about every step.

    Raises:
        InvalidInputError: there is no sound.
        UnreadableFileError: some files do not decode.
        CheckpointError: the folder holds a checkpoint of another recipe.
    """
    import keras

    from earshot_models import export, training

    sounds = [_Sound.read(source, cache, progress) for source in sources]
    pools, held_out = _pools(sounds, recipe)
    keras.utils.set_random_seed(recipe.seed)
    model = _model(recipe)
    pairs = Pairs(pools, recipe.augmentations, recipe.batch, recipe.seed)
    what = {"recipe": asdict(recipe), "sources": [sound.summary() for sound in sounds]}
    history = training.train(model, pairs, recipe.schedule, held_out, folder, what, progress)
    public = _public_seconds(pools, recipe.seed)
    components = export.public_components(training.embed(model, public), recipe.whitening)
    network = export.rotated(model.network, components.rotation)
    calibration = keras.ops.convert_to_numpy(model.front_end(public[:_CALIBRATION]))[..., 0]
    trained = {
        "objective": recipe.objective,
        "steps": int(history[-1]["step"]),
        "batch": recipe.batch,
        "seed": recipe.seed,
        "sound": ", ".join(f"{sound.name} ({len(sound.waveforms)} clips)" for sound in sounds),
        "retrieval": round(history[-1]["retrieval"], 4),
        "whitening": recipe.whitening,
    }
    paths = {True: folder / "encoder.tflite", False: folder / "encoder-float32.tflite"}
    for int8, path in paths.items():
        flatbuffer = export.to_lite_rt(network, calibration, int8)
        export.write_encoder(path, flatbuffer, name, components, int8, trained, credits_)
    return Trained(paths[True], paths[False], history)


def _model(recipe: Recipe) -> Contrastive:
    from earshot_models import network, objectives
    from earshot_models.contrastive import Contrastive
    from earshot_models.front_end import LogMel

    return Contrastive(
        LogMel(mask=recipe.mask, seed=recipe.seed),
        network.build(network.NetworkSettings(recipe.width, recipe.dropout)),
        objectives.OBJECTIVES[recipe.objective](),
    )


@dataclass(frozen=True)
class _Sound:
    """A source, decoded."""

    name: str
    share: float
    waveforms: Waveforms
    recordings: NDArray[np.int64]

    @classmethod
    def read(cls, source: Source, cache: Path | None, progress: Progress | None) -> _Sound:
        name = source.dataset.name

        def report(done: int, total: int) -> None:
            if progress is not None:
                progress(done, total, f"reading {name}")

        decoded = waveforms(source.dataset, cache, report)
        # A clip that was cut from a recording shares its number with the others.
        names = [clip.recording or str(clip.path) for clip in source.dataset.clips]
        recordings = np.unique(names, return_inverse=True)[1].astype(np.int64)
        return cls(name, source.share, decoded, recordings)

    def summary(self) -> dict[str, Any]:
        """What makes a run on this sound another one."""
        return {
            "name": self.name,
            "share": self.share,
            "clips": len(self.waveforms),
            "samples": len(self.waveforms.samples),
        }


def _pools(sounds: Sequence[_Sound], recipe: Recipe) -> tuple[list[Pool], HeldOut]:
    """Training sound, and seconds of held-out recordings of every source."""
    from earshot_models.training import HeldOut

    if not sounds:
        raise InvalidInputError("there must be sound to learn from")
    generator = np.random.default_rng([recipe.seed, 1])
    pools: list[Pool] = []
    seconds, recordings, first = [], [], 0
    total = sum(sound.share for sound in sounds)
    for sound in sounds:
        out = _held_out(sound.recordings, recipe.held_out, generator)
        clips = sound.waveforms.all()
        share = (1 - recipe.synthesized) * sound.share / total
        kept = [clip for clip, away in zip(clips, out, strict=True) if not away]
        pools.append(Pool(kept, first + sound.recordings[~out], share))
        for index in np.flatnonzero(out):
            cut = audio.seconds(clips[index])
            seconds.append(cut)
            recordings += [first + int(sound.recordings[index])] * len(cut)
        first += len(sound.recordings)
    if recipe.synthesized:
        pools.append(_synthesized(first, recipe, generator))
    return pools, HeldOut(np.concatenate(seconds), np.array(recordings))


def _held_out(
    recordings: NDArray[np.int64], fraction: float, generator: np.random.Generator
) -> NDArray[np.bool_]:
    numbers = np.unique(recordings)
    count = max(1, round(fraction * len(numbers)))
    return np.isin(recordings, generator.choice(numbers, count, replace=False))


def _synthesized(first: int, recipe: Recipe, generator: np.random.Generator) -> Pool:
    scenes = [
        soundscapes.synthesize(scene, _SYNTHESIZED, generator) for scene in soundscapes.SCENES
    ]
    sounds = list(np.concatenate(scenes))
    return Pool(sounds, first + np.arange(len(sounds)), recipe.synthesized)


def _public_seconds(pools: Sequence[Pool], seed: int) -> NDArray[np.float32]:
    """Seconds of all that was trained on, in random order, by which the projection is chosen."""
    cut = np.concatenate([audio.seconds(sound) for pool in pools for sound in pool.sounds])
    order = np.random.default_rng([seed, 2]).permutation(len(cut))
    return cut[order[:_PUBLIC_SECONDS]]
