"""How an encoder is made, from folders of sound to the file that phones carry.

The defaults are the recipe of the shipped encoder. No label is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from earshot_models import audio, soundscapes
from earshot_models import augmentations as augment
from earshot_models.augmentations import Augmentations
from earshot_models.datasets.dataset import Dataset
from earshot_models.datasets.waveforms import waveforms
from earshot_models.pairs import Pairs, Pool
from earshot_models.training_schedule import Schedule
from earshot_models.voice_removal import remove_voice
from earshot_protocol.checks import between, positive, share, whole
from earshot_protocol.errors import InvalidInputError, InvalidParametersError

if TYPE_CHECKING:
    from earshot_models.export import Components
    from earshot_models.training import HeldOut

Progress = Callable[[int, int, str], None]
"""Called with what is done, all that is to be done, and a line on it."""

OBJECTIVES = ("nt-xent", "momentum", "bilinear")

PROJECTIONS = (8, 16, 32, 64, 128)
"""Dimensions that the private steps may ask for."""

WHITENINGS = (0.0, 0.25, 0.5)
"""Exponents of the public projection to choose from."""

_LARGEST_BATCH = 8192
"""More pairs than that do not fit into a machine's memory."""

_MOST_ATOMS = 128
"""More would make the file larger than a phone should carry."""

_SYNTHESIZED = 150
"""Seconds of each scene."""

_PUBLIC_SECONDS, _PUBLIC_HOP = 6000, 2000
_LEAST_SECONDS = 150
"""At least as many as an embedding has numbers: fewer give too few principal components."""


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
        synthesized: share of synthesized sound in a batch, 0 to 1.
        held_out: fraction of the recordings that retrieval is measured on, instead of training.
        schedule: how long, how fast.
        texture: whether statistics of the spectrum stand beside what was learned.
        atoms: of the dictionary of patches whose codes stand beside it too, 2 to 128; 0 for none.
        voice_removed: whether `remove_voice` treats all sound but the synthesized one first.
        whitening: of the public projection, 0 to 0.5; None for the best of `WHITENINGS`.
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
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=2500))
    texture: bool = True
    atoms: int = 128
    voice_removed: bool = False
    whitening: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise InvalidParametersError(
                f"objective must be one of {', '.join(OBJECTIVES)}; not {self.objective!r}"
            )
        share("synthesized", self.synthesized)
        between("width", self.width, 0.25, 2)
        whole("batch", self.batch, 2, _LARGEST_BATCH)
        whole("seed", self.seed, 0, 2**32 - 1)
        positive("held_out", self.held_out, 0.5)
        if self.atoms and not 2 <= self.atoms <= _MOST_ATOMS:
            raise InvalidParametersError(
                f"atoms must be 0, or 2 to {_MOST_ATOMS}, not {self.atoms}"
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

    def __post_init__(self) -> None:
        positive("share", self.share)


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
    progress: Progress = lambda done, total, line: None,
) -> Trained:
    """Train an encoder and write `encoder.tflite` and `encoder-float32.tflite` into a folder.

    An interrupted run goes on from the folder's checkpoint.

    Args:
        sources: at least one, unless all is synthesized.
        folder: for the files, checkpoints and TensorBoard logs.
        recipe: all that the encoder follows from, besides the sound.
        name: of the encoder.
        cache: folder for decoded sound.
        credits_: of the sound, to go with the files.
        progress: told about every step.

    Raises:
        InvalidInputError: there is no sound, or too little.
        UnreadableFileError: some files do not decode.
        CheckpointError: the folder holds a checkpoint of another recipe.
    """
    import keras

    from earshot_models import export, objectives, start_centroids, training
    from earshot_models.batches import in_batches
    from earshot_models.contrastive import Contrastive
    from earshot_models.front_end import LogMel
    from earshot_models.network import build

    origins = _origins(sources, recipe, cache, progress)
    pools, held_out = _sides(origins, recipe)
    public = _public_seconds(pools, recipe.seed)
    keras.utils.set_random_seed(recipe.seed)
    model = Contrastive(
        LogMel(mask=recipe.mask, seed=recipe.seed),
        build(recipe.width, recipe.dropout),
        objectives.OBJECTIVES[recipe.objective](),
    )
    pairs = Pairs(pools, recipe.augmentations, recipe.batch, recipe.seed)
    what = {"recipe": asdict(recipe), "sources": [_summary(origin) for origin in origins]}
    history = training.train(model, pairs, recipe.schedule, held_out, folder, what, progress)
    spectra = in_batches(model.front_end, public)
    network = export.averaged(export.beside(model.network, _others(spectra, recipe), spectra))
    embeddings = training.embed(model.front_end, network, public)
    unheard = training.embed(model.front_end, network, held_out.seconds)
    components, whitening, retrievals = _projection(embeddings, unheard, held_out, recipe)
    starts = start_centroids.learn(components, embeddings, recipe.seed)
    network = export.rotated(network, components.rotation)
    trained = {
        "objective": recipe.objective,
        "steps": int(history[-1]["step"]),
        "batch": recipe.batch,
        "seed": recipe.seed,
        "sound": ", ".join(f"{origin.name} ({len(origin.sounds)} clips)" for origin in origins),
        "retrieval": round(history[-1]["retrieval"], 4),
        "whitening": whitening,
        **{f"retrieval_{dimensions}": round(each, 4) for dimensions, each in retrievals.items()},
    }
    paths = {True: folder / "encoder.tflite", False: folder / "encoder-float32.tflite"}
    for int8, path in paths.items():
        flatbuffer = export.to_lite_rt(network, int8)
        export.write_encoder(path, flatbuffer, name, components, int8, trained, credits_, starts)
    return Trained(paths[True], paths[False], history)


def _others(spectra: NDArray[np.float32], recipe: Recipe) -> list[Any]:
    """Layers that know little or nothing of the sound at hand, so that they know it all alike."""
    from earshot_models.patches import Patches, learn
    from earshot_models.texture import Texture

    layers: list[Any] = [Texture()] if recipe.texture else []
    if recipe.atoms:
        layers.append(Patches(learn(spectra, recipe.atoms, recipe.seed)))
    return layers


def _projection(
    embeddings: NDArray[np.float32], unheard: NDArray[np.float32], held_out: HeldOut, recipe: Recipe
) -> tuple[Components, float, dict[int, float]]:
    """The public projection, how far it whitens, and retrieval by the number of dimensions.

    How far is chosen by retrieval among held-out recordings, on average over the dimensions that
    the private steps may ask for (thesis, section 10.1). No label enters.
    """
    from earshot_models import export, training

    candidates = []
    for whitening in WHITENINGS if recipe.whitening is None else (recipe.whitening,):
        components = export.public_components(embeddings, whitening)
        retrievals = {
            dimensions: training.retrieval(
                components.projected(unheard, dimensions), held_out.recordings
            )
            for dimensions in PROJECTIONS
        }
        candidates.append((components, whitening, retrievals))
    return max(candidates, key=lambda candidate: np.mean(list(candidate[2].values())))


def _origins(
    sources: Sequence[Source], recipe: Recipe, cache: Path | None, progress: Progress
) -> list[Pool]:
    """All sound, the synthesized last."""
    if not sources and recipe.synthesized < 1:
        raise InvalidInputError("there must be sound to learn from, or synthesized=1")
    if sources and recipe.synthesized == 1:
        raise InvalidParametersError("synthesized=1 leaves no share to the other sound")
    total = sum(source.share for source in sources)
    origins = [
        _read(source.dataset, (1 - recipe.synthesized) * source.share / total, cache, progress)
        for source in sources
    ]
    if recipe.voice_removed:
        origins = [_without_voice(origin, progress) for origin in origins]
    return [*origins, _synthesized(recipe)] if recipe.synthesized else origins


def _read(dataset: Dataset, share: float, cache: Path | None, progress: Progress) -> Pool:
    def report(done: int, total: int) -> None:
        progress(done, total, f"reading {dataset.name}")

    decoded = waveforms(dataset, cache, report)
    # A clip that was cut from a recording shares its number with the others.
    names = [clip.recording or str(clip.path) for clip in dataset.clips]
    recordings = np.unique(names, return_inverse=True)[1].astype(np.int64)
    return Pool(decoded.all(), recordings, share, dataset.name)


def _synthesized(recipe: Recipe) -> Pool:
    """Seconds of all scenes, each a recording of its own."""
    generator = np.random.default_rng([recipe.seed, 3])
    scenes = [
        soundscapes.synthesize(scene, _SYNTHESIZED, generator) for scene in soundscapes.SCENES
    ]
    seconds = list(np.concatenate(scenes))
    return Pool(seconds, np.arange(len(seconds)), recipe.synthesized, "synthesized")


def _without_voice(origin: Pool, progress: Progress) -> Pool:
    sounds = []
    for done, sound in enumerate(origin.sounds, start=1):
        sounds.append(remove_voice(sound))
        progress(done, len(origin.sounds), f"removing voices of {origin.name}")
    return replace(origin, sounds=sounds)


def _summary(origin: Pool) -> dict[str, Any]:
    """What makes a run on this sound another one."""
    return {
        "name": origin.name,
        "share": origin.share,
        "clips": len(origin.sounds),
        "samples": sum(map(len, origin.sounds)),
    }


def _sides(origins: Sequence[Pool], recipe: Recipe) -> tuple[list[Pool], HeldOut]:
    """Training sound, and seconds of held-out recordings of every origin."""
    from earshot_models.training import HeldOut

    generator = np.random.default_rng([recipe.seed, 1])
    pools: list[Pool] = []
    seconds, recordings, first = [], [], 0
    for origin in origins:
        numbers = np.unique(origin.recordings)
        count = max(1, round(recipe.held_out * len(numbers)))
        out = np.isin(origin.recordings, generator.choice(numbers, count, replace=False))
        training = list(compress(origin.sounds, ~out))
        pools.append(replace(origin, sounds=training, recordings=first + origin.recordings[~out]))
        held_out = compress(origin.sounds, out)
        for sound, recording in zip(held_out, origin.recordings[out], strict=True):
            cut = _two_seconds(sound, recipe.augmentations, generator)
            seconds.append(cut)
            recordings += [first + int(recording)] * len(cut)
        first += len(origin.recordings)
    return pools, HeldOut(np.concatenate(seconds), np.array(recordings))


def _two_seconds(
    clip: NDArray[np.float32], augmentations: Augmentations, generator: np.random.Generator
) -> NDArray[np.float32]:
    """The seconds of a clip, so that each can find another: two views where there is but one."""
    cut = audio.seconds(clip)
    if len(cut) != 1:
        return cut
    return np.stack(
        [augment.view(cut[0], augmentations, augment.Variant(), generator) for _ in range(2)]
    )


def _public_seconds(pools: Sequence[Pool], seed: int) -> NDArray[np.float32]:
    """Seconds of what was trained on, in the same shares: all but the network follows from them."""
    generator = np.random.default_rng([seed, 2])
    total = sum(pool.share for pool in pools)
    chosen = []
    for pool in pools:
        cut = np.concatenate([audio.seconds(sound, _PUBLIC_HOP) for sound in pool.sounds])
        wanted = round(_PUBLIC_SECONDS * pool.share / total)
        chosen.append(cut[generator.permutation(len(cut))[:wanted]])
    public = np.concatenate(chosen)
    if len(public) < _LEAST_SECONDS:
        raise InvalidInputError(
            f"{len(public)} seconds of sound are not enough to learn from: {_LEAST_SECONDS} are "
            "needed"
        )
    return public
