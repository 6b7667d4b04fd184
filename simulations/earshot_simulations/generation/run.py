"""One generator from sound to its file: what is asked for is checked before any sound is read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from earshot_models.commands.progress import Progress
from earshot_models.datasets.dataset import Dataset
from earshot_protocol.errors import InvalidParametersError
from earshot_simulations.generation import clips as sound
from earshot_simulations.generation import kinds
from earshot_simulations.generation.clips import Clips
from earshot_simulations.generation.kinds import Kind, Noise, Request
from earshot_simulations.generation.recipes import NORM, START, VOTED_STARTED
from earshot_simulations.pate.mechanisms import Name

if TYPE_CHECKING:
    from earshot_models.generators.generator import Generator
    from earshot_models.generators.origin import Origin
    from earshot_models.generators.settings import Settings
    from earshot_models.generators.start import Start

WORK = "work"
"""Folder, in --out, of a training under way; as secret as the clips, and gone afterwards."""
_CHECKPOINT = "training"
_START = "start"
"""Checkpoint of what learns public sound first; none of it is secret."""


@dataclass(frozen=True)
class Trained:
    """A generator and what it was made from.

    Attributes:
        generator: as its file has it.
        request: what was asked for.
        clips: that it learned from.
        sensitive: whether these are.
        noise: that kept the budget; None without.
        public: public clips that are known besides; None without.
    """

    generator: Generator
    request: Request
    clips: int
    sensitive: bool
    noise: Noise | None
    public: Clips | None


@dataclass(frozen=True)
class Plan:
    """What is going to be trained: listed and reckoned, with no sound read yet.

    Attributes:
        request: what is asked for.
        learned: the clips to learn from.
        sensitive: whether these are.
        compared: public clips to start with and to compare with; None without.
        noise: that keeps the budget; None without.
    """

    request: Request
    learned: Dataset
    sensitive: bool
    compared: Dataset | None
    noise: Noise | None


def planned(request: Request, sensitive: Path | None, public: Path | None) -> Plan:
    """Look for all that may be wrong before hours of training.

    Args:
        request: what is asked for.
        sensitive: folder of sensitive clips.
        public: folder of public clips: an `AAE` learns from these or from sensitive ones, for all
            others they are there to start with and to compare with.

    Raises:
        InvalidInputError: folders that are none, or hold too little.
        InvalidParametersError: numbers out of range, or no folder to learn from.
        UselessBudgetError: a budget that buys nothing.
    """
    if request.kind is Kind.AAE and (sensitive is None) == (public is None):
        raise InvalidParametersError(
            f"{request.kind} learns from one folder: give --public, or --clips for a generator "
            "that is not private"
        )
    learned = public if sensitive is None and request.kind is Kind.AAE else sensitive
    if learned is None:
        raise InvalidParametersError(f"{request.kind} needs --clips to learn from")
    listed = sound.listed(learned)
    compared = None if public is None or public is learned else sound.listed(public)
    noise = kinds.noise(request, len(listed.clips))
    return Plan(request, listed, sensitive is not None, compared, noise)


def train(plan: Plan, folder: Path, progress: Progress, seed: int = 0) -> Trained:
    """Train a generator, from where a run in this folder was cut short.

    Args:
        plan: what is trained.
        folder: of the checkpoint; exists.
        progress: told how far it is.
        seed: of the randomness of what learns without noise, an `AAE` or a start; all that adds
            noise draws it from the operating system.

    Raises:
        InvalidInputError: sound that cannot be read, is silent, or is there twice.
        OtherTrainingError: the folder's checkpoint is of another training.
    """

    def told(what: str) -> sound.Progress:
        return lambda done, total: progress(what, done, total)

    clips = sound.opened(plan.learned, told("reading"))
    compared = None
    if plan.compared is not None:
        compared = sound.opened(plan.compared, told("reading public sound"))
        sound.refuse_shared(clips, compared)
    work = folder / WORK
    work.mkdir(mode=0o700, exist_ok=True)
    origin = _origin(plan.request, plan.sensitive)
    start = None
    if plan.noise is not None and compared is not None:
        start = _start(plan.request, plan.noise, compared, seed, work / _START, progress)
    generator = _trained(plan, clips, origin, seed, work / _CHECKPOINT, progress, start)
    known = compared if plan.sensitive else clips
    return Trained(generator, plan.request, len(clips), plan.sensitive, plan.noise, known)


def _origin(request: Request, sensitive: bool) -> Origin:
    from earshot_models.generators import origin

    if request.epsilon is not None and request.delta is not None:
        return origin.private(request.epsilon, request.delta, request.unit)
    return origin.NOT_PRIVATE if sensitive else origin.PUBLIC


def _start(
    request: Request, noise: Noise, public: Clips, seed: int, checkpoint: Path, progress: Progress
) -> Start[Any]:
    """Networks that learned public sound, for a private training to go on from.

    A run that was cut short learns them again, the same ones, and then goes on.
    """
    from earshot_models.generators import origin
    from earshot_models.generators.autoencoder import start_autoencoder
    from earshot_models.generators.gan import start_gan

    def told(what: str, done: int, total: int, line: str | None = None) -> None:
        progress("learning public sound", done, total, line)

    begin = start_autoencoder if request.kind is Kind.AAE_PRIVATE else start_gan
    found = begin(public.pictures, START, origin.PUBLIC, seed, progress=told, checkpoint=checkpoint)
    return replace(found, share=kinds.share(request, noise))


def _trained(
    plan: Plan,
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
    from earshot_protocol.voting.winners import GNMax, LNMax

    request, noise = plan.request, plan.noise
    settings = _settings(request, start is not None)
    pictures = clips.pictures
    if noise is None:
        return train_autoencoder(
            pictures, settings, origin, seed, progress=progress, checkpoint=checkpoint
        )
    if request.kind is Kind.PATE_GAN:
        aggregator = (
            LNMax(1 / noise.level) if request.mechanism == Name.LNMAX else GNMax(noise.level)
        )
        return train_pate_gan(
            pictures,
            settings,
            Ensemble(teachers=request.teachers or 0),
            aggregator,
            origin,
            start=start,
            progress=progress,
            checkpoint=checkpoint,
        )
    training = PrivateTraining(
        noise.level, request.size.batch / len(clips), NORM, request.size.steps
    )
    learn = train_dp_gan if request.kind is Kind.DP_GAN else train_private_autoencoder
    return learn(
        pictures,
        settings,
        training,
        origin,
        start=start,
        progress=progress,
        checkpoint=checkpoint,
    )


def _settings(request: Request, started: bool) -> Settings:
    recipe = kinds.RECIPES[request.kind]
    if started and request.kind is Kind.PATE_GAN:
        recipe = VOTED_STARTED
    return replace(recipe, steps=request.size.steps, batch=request.size.batch)
