"""One generator from sound to its file; requests are checked before any sound is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earshot_models.datasets.dataset import Dataset
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.progress import Progress
from earshot_simulations.generation import budgets, kinds
from earshot_simulations.generation import clips as sound
from earshot_simulations.generation.clips import Clips
from earshot_simulations.generation.kinds import Noise, TrainingKind, TrainingRequest
from earshot_simulations.generation.recipes import NORM, START, VOTED_STARTED

if TYPE_CHECKING:
    from earshot_models.generators.generator import Generator
    from earshot_models.generators.origin import Origin
    from earshot_models.generators.settings import GeneratorSettings
    from earshot_models.generators.start import Start

WORK = "work"
"""Folder, in --out, of a training under way; as secret as the clips, and deleted afterwards."""
_CHECKPOINT = "training"
_START = "start"
"""Name of the checkpoint of networks that learn public sound first; none of it is secret."""


@dataclass(frozen=True)
class TrainedGenerator:
    """A generator and its origin.

    Attributes:
        generator: Generator, as in its file.
        request: Training that was requested.
        clips: Number of clips that it learned from.
        sensitive: Whether these clips are sensitive.
        noise: Noise that kept the budget; None without.
        public: Other public clips; None without.
    """

    generator: Generator
    request: TrainingRequest
    clips: int
    sensitive: bool
    noise: Noise | None
    public: Clips | None


@dataclass(frozen=True)
class TrainingPlan:
    """A planned training: files listed and noise computed, with no sound read yet.

    Attributes:
        request: Training that is requested.
        learned: Clips to learn from.
        sensitive: Whether these clips are sensitive.
        compared: Public clips to start with and to compare with; None without.
        noise: Noise that keeps the budget; None without.
    """

    request: TrainingRequest
    learned: Dataset
    sensitive: bool
    compared: Dataset | None
    noise: Noise | None


def planned(request: TrainingRequest, sensitive: Path | None, public: Path | None) -> TrainingPlan:
    """Plan a training, with all checks that are possible before hours of work.

    Args:
        request: Training that is requested.
        sensitive: Folder of sensitive clips.
        public: Folder of public clips: an `AAE` learns from these or from sensitive ones; other
            kinds start and compare with them.

    Raises:
        InvalidInputError: A folder does not exist, or holds too little.
        InvalidParametersError: A number is out of range, or there is no folder to learn from.
        UselessBudgetError: The budget is too small to learn anything.
    """
    if request.kind is TrainingKind.AAE and (sensitive is None) == (public is None):
        raise InvalidParametersError(
            f"{request.kind} learns from one folder: give --public, or --clips for a generator "
            "that is not private"
        )
    learned = public if sensitive is None and request.kind is TrainingKind.AAE else sensitive
    if learned is None:
        raise InvalidParametersError(f"{request.kind} needs --clips to learn from")
    listed = sound.listed(learned)
    compared = None if public is None or public is learned else sound.listed(public)
    noise = kinds.noise(request, len(listed.clips))
    return TrainingPlan(request, listed, sensitive is not None, compared, noise)


def train(plan: TrainingPlan, folder: Path, progress: Progress, seed: int = 0) -> TrainedGenerator:
    """Train a generator, resuming an interrupted run in this folder.

    Args:
        plan: Planned training.
        folder: Folder of the checkpoint, which exists.
        progress: Callback for progress.
        seed: Seed of trainings without noise, an `AAE` or a start; those that add noise draw it
            from the operating system.

    Raises:
        InvalidInputError: Sound cannot be read, is silent, or occurs twice.
        OtherTrainingError: The folder's checkpoint belongs to another training.
    """

    clips = sound.opened(plan.learned, progress)
    compared = None
    if plan.compared is not None:
        compared = sound.opened(plan.compared, progress)
        sound.refuse_shared(clips, compared)
    work = folder / WORK
    work.mkdir(mode=0o700, exist_ok=True)
    origin = _origin(plan.request, plan.sensitive)
    start = None
    if plan.noise is not None and compared is not None:
        start = _start(plan.request, plan.noise, compared, seed, work / _START, progress)
    generator = _trained(plan, clips, origin, seed, work / _CHECKPOINT, progress, start)
    known = compared if plan.sensitive else clips
    return TrainedGenerator(generator, plan.request, len(clips), plan.sensitive, plan.noise, known)


def _origin(request: TrainingRequest, sensitive: bool) -> Origin:
    from earshot_models.generators import origin

    if request.epsilon is not None and request.delta is not None:
        return origin.private(request.epsilon, request.delta, request.unit)
    return origin.NOT_PRIVATE if sensitive else origin.PUBLIC


def _start(
    request: TrainingRequest,
    noise: Noise,
    public: Clips,
    seed: int,
    checkpoint: Path,
    progress: Progress,
) -> Start[Any]:
    """Return networks that learned public sound, for a private training to continue from.

    An interrupted run learns the same networks again, and then continues.
    """
    from earshot_models.generators import origin
    from earshot_models.generators.autoencoder import start_autoencoder
    from earshot_models.generators.gan import start_gan

    def told(what: str, done: int, total: int, line: str | None = None) -> None:
        progress("learning public sound", done, total, line)

    begin = start_autoencoder if request.kind is TrainingKind.AAE_PRIVATE else start_gan
    found = begin(public.pictures, START, origin.PUBLIC, seed, progress=told, checkpoint=checkpoint)
    return replace(found, share=kinds.share(request, noise))


def _trained(
    plan: TrainingPlan,
    clips: Clips,
    origin: Origin,
    seed: int,
    checkpoint: Path,
    progress: Progress,
    start: Start[Any] | None,
) -> Generator:
    from earshot_models.generators.autoencoder import train_autoencoder
    from earshot_models.generators.dp_gan import train_dp_gan
    from earshot_models.generators.pate_gan import Ensemble, train_pate_gan
    from earshot_models.generators.private_autoencoder import train_private_autoencoder
    from earshot_models.generators.private_training import PrivateTraining

    request, noise = plan.request, plan.noise
    settings = _settings(request, start is not None)
    pictures = clips.pictures
    if noise is None:
        return train_autoencoder(
            pictures, settings, origin, seed, progress=progress, checkpoint=checkpoint
        )
    if request.kind is TrainingKind.PATE_GAN:
        rule = budgets.MECHANISMS[request.mechanism or budgets.NoisyMax.GNMAX]
        return train_pate_gan(
            pictures,
            settings,
            Ensemble(teachers=request.teachers or 0),
            rule(sigma=noise.level).voting,
            origin,
            start=start,
            progress=progress,
            checkpoint=checkpoint,
        )
    training = PrivateTraining(
        noise.level, request.size.batch / len(clips), NORM, request.size.steps
    )
    learn = train_dp_gan if request.kind is TrainingKind.DP_GAN else train_private_autoencoder
    return learn(
        pictures,
        settings,
        training,
        origin,
        start=start,
        progress=progress,
        checkpoint=checkpoint,
    )


def _settings(request: TrainingRequest, started: bool) -> GeneratorSettings:
    recipe = kinds.RECIPES[request.kind]
    if started and request.kind is TrainingKind.PATE_GAN:
        recipe = VOTED_STARTED
    return replace(recipe, steps=request.size.steps, batch=request.size.batch)
