"""Recipes that make an encoder, from folders of sound to the file that phones carry.

`CONTRAST` needs no teacher, and `TAUGHT` does. No label is read.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from earshot_models import augmentations as augment
from earshot_models import origins
from earshot_models.augmentations import Augmentations
from earshot_models.components import Components, public_components, within_class_normalization
from earshot_models.distillation.lessons import Lessons, TaughtBatches, Variation
from earshot_models.distillation.teacher import TeacherEncoder
from earshot_models.origins import Seconds, SoundSource
from earshot_models.pairs import Pairs
from earshot_models.pools import Pool
from earshot_models.training_schedule import Schedule
from earshot_protocol.checks import between, positive, share, whole
from earshot_protocol.distribution import MissingExtraError
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.progress import Progress, silent
from earshot_protocol.spectrum import NARROW, SPECTRA, WIDE, Spectrum

if TYPE_CHECKING:
    from earshot_models.objectives import Objective
    from earshot_models.training import Batches

OBJECTIVES = ("nt-xent", "momentum", "bilinear", "distillation")

RATES = tuple(spectrum.rate for spectrum in SPECTRA.values())
"""Samples per second that a phone may hear."""

PROJECTIONS = (8, 16, 32, 64, 128)
"""Dimensions among which private steps choose."""

WHITENINGS = (0.0, 0.25, 0.5)
"""Exponents of the public projection to choose from."""

_LARGEST_BATCH = 8192
"""Most pairs in a batch; more do not fit into a machine's memory."""

_LARGEST_WEIGHT = 10.0

_PLACES = 0.2
"""Weight of the contrast between places beside what a teacher says, in the loss."""

_HEARD_AGAIN = 0.1
"""Weight of what changes as phones hear a second again, beside what changes in a recording."""

_LARGEST_SHARE = 0.99
"""Largest share of a measured covariance; from few recordings it may be singular."""

_MOST_LESSONS = 10_000_000

_MOST_ATOMS = 128
"""Most atoms; more would make the file larger than a phone should carry."""


@dataclass(frozen=True)
class Recipe:
    """Settings that determine an encoder, except the sound.

    Attributes:
        objective: Name of the objective, one of `OBJECTIVES`.
        width: Factor on the network's number of channels, 0.25 to 8.
        dropout: Chance that a pooled feature of the network is dropped in training.
        augmentations: Augmentations of the waveforms.
        lessons: Seconds that the teacher embeds, if there is one.
        variation: Variation of the lessons.
        rate: Samples per second that the phone hears, one of those of `SPECTRA`.
        mask: Chance of a mask over bands, and of one over time.
        batch: Pairs in a batch.
        synthesized: Share of synthesized sound in a batch, 0 to 1.
        held_out: Fraction of the recordings on which retrieval is measured, instead of training on
            them.
        schedule: Length and learning rate of the training.
        texture: Weight of the spectrum's statistics beside the trained network, whose weight is 1;
            0 for none.
        patches: Weight of the patches' codes beside the trained network, whose weight is 1; 0 for
            none.
        places: Weight of the network's part for places beside its taught part, whose weight is 1; 0
            for none. Only with a teacher.
        atoms: Atoms in the dictionary of patches, 2 to 128.
        within_class: Share of the measured covariance within recordings that
            `within_class_normalization` evens out, 0 to 0.99; 0 to skip that step.
        voice_removed: Remove voices (`remove_voice`) from all sound except the synthesized first.
        whitening: Exponent of the public projection, 0 to 0.5; None for the best of `WHITENINGS`.
        seed: Seed for everything.
    """

    objective: str = "nt-xent"
    width: float = 1.0
    dropout: float = 0.1
    augmentations: Augmentations = field(default_factory=Augmentations)
    lessons: int = 100_000
    variation: Variation = field(default_factory=Variation)
    rate: int = NARROW.rate
    mask: float = 0.7
    batch: int = 128
    synthesized: float = 0.25
    held_out: float = 0.05
    schedule: Schedule = field(default_factory=lambda: Schedule(steps=2500))
    texture: float = 1.0
    patches: float = 1.0
    places: float = 0.0
    atoms: int = 128
    within_class: float = 0.0
    voice_removed: bool = False
    whitening: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.objective not in OBJECTIVES:
            raise InvalidParametersError(
                f"objective must be one of {', '.join(OBJECTIVES)}; not {self.objective!r}"
            )
        if self.rate not in RATES:
            raise InvalidParametersError(
                f"rate must be one of {', '.join(map(str, RATES))}; not {self.rate}"
            )
        share("synthesized", self.synthesized)
        between("width", self.width, 0.25, 8)
        whole("batch", self.batch, 2, _LARGEST_BATCH)
        whole("lessons", self.lessons, 2, _MOST_LESSONS)
        whole("seed", self.seed, 0, 2**32 - 1)
        positive("held_out", self.held_out, 0.5)
        between("texture", self.texture, 0, _LARGEST_WEIGHT)
        between("patches", self.patches, 0, _LARGEST_WEIGHT)
        between("places", self.places, 0, _LARGEST_WEIGHT)
        whole("atoms", self.atoms, 2, _MOST_ATOMS)
        between("within_class", self.within_class, 0, _LARGEST_SHARE)


CONTRAST = Recipe()
"""Recipe of the encoder contrast-1, without a teacher."""

TAUGHT = Recipe(
    objective="distillation",
    width=2.0,
    augmentations=Augmentations(
        colour=3.0, tilt=0.0, microphone=0.3, pocket=0.25, codec=0.1, background=0.2
    ),
    lessons=60_000,
    rate=WIDE.rate,
    mask=0.5,
    schedule=Schedule(steps=4000, learning_rate=1e-2),
    texture=0.0,
    places=1.4,
    within_class=0.9,
    whitening=0.25,
)
"""Recipe of the encoder contrast-3, with a teacher (docs/decisions/0084)."""


@dataclass(frozen=True)
class Trained:
    """Results of training.

    Attributes:
        int8: Path of the encoder file for phones.
        float32: Path of the encoder file without quantization.
        history: Figures of each epoch, as `training.train` returns them.
        unreadable: Error of each file that was left out.
    """

    int8: Path
    float32: Path
    history: list[dict[str, float]]
    unreadable: tuple[str, ...] = ()


def train_encoder(
    sources: Sequence[SoundSource],
    folder: str | os.PathLike[str],
    recipe: Recipe,
    name: str,
    *,
    teacher: TeacherEncoder | None = None,
    cache: str | os.PathLike[str] | None = None,
    credits_: str = "",
    progress: Progress = silent,
) -> Trained:
    """Train an encoder and write `encoder.tflite` and `encoder-float32.tflite` into a folder.

    An interrupted run continues from the folder's checkpoint.

    Args:
        sources: Sources of sound; at least one unless all is synthesized.
        folder: Folder for the files, checkpoints and TensorBoard logs.
        recipe: Settings.
        name: Name of the encoder.
        teacher: Teacher of the encoder; needed for the objective "distillation", and for no other.
        cache: Folder for decoded sound and for the teacher's output.
        credits_: Credits for the sound, stored in the files.
        progress: Callback after every step.

    Raises:
        InvalidInputError: There is no sound, too little, or no file of a class can be read.
        InvalidParametersError: There is a teacher but another objective, or "distillation" but no
            teacher; or the network would be too large for a phone.
        TeacherError: The teacher's output is not finite.
        TargetsError: The teacher's cached output is damaged or belongs to another run.
        CheckpointError: The folder holds a checkpoint of another recipe.
        MissingExtraError: The network is trained, but TensorFlow, which exports it, is missing.
    """
    import keras

    from earshot_models import export, start_centroids, training
    from earshot_models.batches import in_batches
    from earshot_models.contrastive import Contrastive
    from earshot_models.front_end import LogMel
    from earshot_models.network import build

    folder, cache = Path(folder), None if cache is None else Path(cache)
    if (recipe.objective == "distillation") != (teacher is not None):
        raise InvalidParametersError(
            'a teacher is needed for the objective "distillation", and for no other'
        )
    if recipe.places and teacher is None:
        raise InvalidParametersError("places: learned beside a teacher's output, not without")
    if teacher is not None and teacher.rate < recipe.rate:
        raise InvalidParametersError(
            f"the teacher hears {teacher.rate} samples per second, but the phone is to hear "
            f"{recipe.rate}: choose another teacher, or a lower rate"
        )
    spectrum = Spectrum(recipe.rate)
    # Build first: a network may be too large for a phone, and reading sound takes long.
    keras.utils.set_random_seed(recipe.seed)
    model = Contrastive(
        LogMel(mask=recipe.mask, seed=recipe.seed, spectrum=spectrum),
        build(recipe.width, recipe.dropout, _parts(teacher, recipe)),
        _objective(recipe),
    )
    sound = origins.read(
        sources,
        recipe.synthesized,
        recipe.seed,
        rate=recipe.rate if teacher is None else teacher.rate,
        voice_removed=recipe.voice_removed,
        cache=cache,
        progress=progress,
    )
    pools, held_out = origins.sides(
        sound, recipe.held_out, recipe.augmentations, recipe.seed, recipe.rate
    )
    public = origins.public_seconds(pools, recipe.seed, recipe.rate)
    batches = _batches(pools, recipe, teacher, cache, progress)
    what = {
        "recipe": asdict(recipe),
        "sources": list(map(origins.summary, sound)),
        "teacher": teacher and teacher.identity,
    }
    history = training.train(model, batches, recipe.schedule, held_out, folder, what, progress)
    if importlib.util.find_spec("tensorflow") is None:
        raise MissingExtraError(
            f"the network is trained and kept in {folder}; only TensorFlow, not installed here, "
            "makes the file that phones carry: copy the folder, and the cache if there is one, to "
            "where it is installed, and repeat the command there"
        )
    spectra = in_batches(model.front_end, public.seconds)
    network = export.averaged(
        export.beside(model.network, _others(spectra, recipe), spectra, recipe.places)
    )

    def embed(seconds: NDArray[np.float32]) -> NDArray[np.float32]:
        return training.embed(model.front_end, network, seconds)

    embeddings, unheard = embed(public.seconds), embed(held_out.seconds)
    normalization = None
    if recipe.within_class:
        again = [embed(each) for each in _heard_again(public.seconds, recipe)]
        normalization = within_class_normalization(
            embeddings, public.recordings, again, recipe.within_class, _HEARD_AGAIN
        )
    components, whitening, retrievals = _projection(
        embeddings, unheard, held_out, recipe, normalization
    )
    wide = start_centroids.wider(pools, len(public.seconds), recipe.seed, recipe.rate)
    starts = start_centroids.learn(components, embed(wide), recipe.seed)
    network = export.turned(network, components.turn)
    trained = {
        "objective": recipe.objective,
        "steps": int(history[-1]["step"]),
        "batch": recipe.batch,
        "seed": recipe.seed,
        "sound": ", ".join(f"{pool.name} ({len(pool.sounds)} clips)" for pool in sound),
        "teacher": teacher and teacher.name,
        "retrieval": round(history[-1]["retrieval"], 4),
        "whitening": whitening,
        **{f"retrieval_{dimensions}": round(each, 4) for dimensions, each in retrievals.items()},
    }
    paths = {True: folder / "encoder.tflite", False: folder / "encoder-float32.tflite"}
    for int8, flatbuffer in export.to_lite_rt(network, paths).items():
        export.write_encoder(
            paths[int8], flatbuffer, name, components, int8, trained, credits_, starts, spectrum
        )
    unreadable = tuple(chain.from_iterable(pool.unreadable for pool in sound))
    return Trained(paths[True], paths[False], history, unreadable)


def _parts(teacher: TeacherEncoder | None, recipe: Recipe) -> int:
    """Return the number of embeddings that the network makes of a spectrum."""
    return len(teacher.lengths) + bool(recipe.places) if teacher else 1


def _objective(recipe: Recipe) -> Objective:
    from earshot_models import objectives

    if recipe.objective == "distillation":
        return objectives.Distillation(places=_PLACES if recipe.places else 0.0)
    return objectives.OBJECTIVES[recipe.objective]()


def _batches(
    pools: Sequence[Pool],
    recipe: Recipe,
    teacher: TeacherEncoder | None,
    cache: Path | None,
    progress: Progress,
) -> Batches:
    """Return the batches: pairs of views, or lessons with the teacher's output for them."""
    if teacher is None:
        return Pairs(pools, recipe.augmentations, recipe.batch, recipe.seed)
    from earshot_models.distillation import targets

    lessons = Lessons(pools, recipe.variation, recipe.lessons, recipe.seed)
    said = targets.ask(lessons, teacher, cache, progress)
    wanted = targets.principal(said, teacher.lengths)
    return TaughtBatches(
        lessons,
        wanted,
        recipe.augmentations,
        recipe.batch,
        recipe.seed,
        recipe.rate,
        pairs=recipe.batch // 2 if recipe.places else 0,
    )


def _others(spectra: NDArray[np.float32], recipe: Recipe) -> list[tuple[Any, float]]:
    """Return the layers concatenated with the network, each with its weight.

    They learn little or nothing from the training sound, and so generalize to other sound.
    """
    from earshot_models.patches import Patches, learn
    from earshot_models.texture import Texture

    layers: list[tuple[Any, float]] = [(Texture(), recipe.texture)] if recipe.texture else []
    if recipe.patches:
        atoms = learn(spectra, recipe.atoms, recipe.seed)
        layers.append((Patches(atoms), recipe.patches))
    return layers


def _heard_again(seconds: NDArray[np.float32], recipe: Recipe) -> Iterator[NDArray[np.float32]]:
    """Yield public seconds as phones hear them, and also from pockets if phones are in pockets."""
    from scipy import fft

    generator = np.random.default_rng([recipe.seed, 5])
    ways = [recipe.augmentations]
    if recipe.augmentations.pocket:
        ways.append(replace(recipe.augmentations, pocket=1.0))
    for way in ways:
        blocks = (seconds[at : at + recipe.batch] for at in range(0, len(seconds), recipe.batch))
        yield np.concatenate(
            [
                augment.phones(
                    (augment.band(fft.rfft(each), recipe.rate, recipe.rate) for each in block),
                    way,
                    generator,
                )
                for block in blocks
            ]
        )


def _projection(
    embeddings: NDArray[np.float32],
    unheard: NDArray[np.float32],
    held_out: Seconds,
    recipe: Recipe,
    normalization: NDArray[np.float64] | None = None,
) -> tuple[Components, float, dict[int, float]]:
    """Return the public projection, its whitening, and retrieval by number of dimensions.

    The whitening is chosen by retrieval among held-out recordings, on average over the dimensions
    among which private steps choose (thesis, section 10.1). No label is used.
    """
    from earshot_models import training

    candidates = []
    for whitening in WHITENINGS if recipe.whitening is None else (recipe.whitening,):
        components = public_components(embeddings, whitening, normalization)
        retrievals = {
            dimensions: training.retrieval(
                components.projected(unheard, dimensions), held_out.recordings
            )
            for dimensions in PROJECTIONS
        }
        candidates.append((components, whitening, retrievals))
    return max(candidates, key=lambda candidate: np.mean(list(candidate[2].values())))
