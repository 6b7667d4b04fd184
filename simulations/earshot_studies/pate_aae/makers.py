"""Training of each generator of spoken digits, with the noise for its share of a budget.

Sizes, steps and norms were chosen on the public speaker alone. All systems have the same networks,
and the same number of latent numbers, as in Yang et al. (Interspeech 2021, 4.2).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from earshot_models.votes.rules.gnmax import GNMax
from earshot_protocol.errors import InvalidParametersError
from earshot_studies.pate_aae import budgets, recipes
from earshot_studies.pate_aae.generators import origin
from earshot_studies.pate_aae.generators.autoencoder import start_autoencoder, train_autoencoder
from earshot_studies.pate_aae.generators.dp_gan import train_dp_gan
from earshot_studies.pate_aae.generators.gan import start_gan
from earshot_studies.pate_aae.generators.generator import Generator
from earshot_studies.pate_aae.generators.pate_gan import Ensemble, queries, train_pate_gan
from earshot_studies.pate_aae.generators.private_autoencoder import train_private_autoencoder
from earshot_studies.pate_aae.generators.private_training import PrivateTraining
from earshot_studies.pate_aae.generators.settings import GeneratorSettings
from earshot_studies.pate_aae.generators.start import Start
from earshot_studies.pate_aae.split import Split
from earshot_studies.pate_aae.systems import Makers, PublicationBudget, System, TrainingOrder

_UNIT = "clip"

_TEACHERS = Ensemble()


@dataclass(frozen=True)
class GeneratorRecipes:
    """The recipes of all generators.

    Attributes:
        open: Settings of generators that are trained without noise.
        noisy: Settings of an autoencoder trained by noisy gradients, with `batch` clips per step on
            average.
        judged: Settings of a generator whose critic learns from noisy gradients.
        norm: Norm to which gradients are clipped.
        voted: Settings of a generator that learns from votes.
        teachers: Ensemble of voting critics.
        start: Settings of the public networks with which the three private generators may start.
        voted_started: Settings of a generator that starts with these and learns from votes.
    """

    open: GeneratorSettings = recipes.OPEN
    noisy: GeneratorSettings = recipes.NOISY
    judged: GeneratorSettings = recipes.JUDGED
    norm: float = recipes.NORM
    voted: GeneratorSettings = recipes.VOTED
    teachers: Ensemble = _TEACHERS
    start: GeneratorSettings = recipes.START
    voted_started: GeneratorSettings = recipes.VOTED_STARTED

    @property
    def described(self) -> dict[System, str]:
        """Descriptions of the recipes, for notes and as part of the key of kept cells."""
        open = f"{_network(self.open)}, {self.open.steps:,} steps of {self.open.batch} clips"
        noisy, judged = (
            f"{_network(own)}, {own.steps:,} steps of {own.batch} clips on average (Poisson), "
            f"gradients clipped to {self.norm:g}"
            for own in (self.noisy, self.judged)
        )
        judged += f", critics shown slow waves of noise, {self.judged.jitter:g} at first"
        voted, voted_started = (
            f"{_network(own)}, {own.steps:,} steps, {queries(own):,} answers "
            f"by GNMax of {self.teachers.teachers} critics of width {self.teachers.width}, shown "
            f"slow waves of noise, {own.jitter:g} at first"
            for own in (self.voted, self.voted_started)
        )
        start = f"{_network(self.start)}, {self.start.steps:,} steps of {self.start.batch} clips"
        gan = f"{start}, critics shown slow waves of noise, {self.start.jitter:g} at first"
        beside = (
            f"beside public clips, with which sensitive ones share a step by {recipes.SHARED}; "
            "started with"
        )
        words = {
            System.PATE_GAN: voted,
            System.PRIVATE: noisy,
            System.DP_GAN: judged,
            System.PUBLIC_GAN: gan,
            System.STARTED_PRIVATE: f"{noisy}; {beside} a public AAE: {start}",
            System.STARTED_PATE_GAN: f"{voted_started}; {beside} a public GAN: {gan}",
            System.STARTED_DP_GAN: f"{judged}; {beside} a public GAN: {gan}",
        }
        return {system: words.get(system, open) for system in System}


def _network(settings: GeneratorSettings) -> str:
    return (
        f"{settings.network.value} networks of width {settings.width}, {settings.latent} latent "
        f"numbers, Adam at {settings.rate:g} and {settings.critic_rate:g}"
    )


def critics(teachers: int) -> Ensemble:
    """Return the default ensemble with this many critics, at least two."""
    return replace(_TEACHERS, teachers=max(2, teachers))


def makers(recipe: GeneratorRecipes | None = None) -> Makers:
    """Return the makers of all systems."""
    chosen = recipe or GeneratorRecipes()
    starts = _Starts(chosen.start)
    return {
        System.PRINTED: functools.partial(_printed, chosen),
        System.PUBLIC: functools.partial(_public, chosen),
        System.PRIVATE: functools.partial(_private, chosen, None),
        System.PATE_GAN: functools.partial(_pate_gan, chosen, None),
        System.DP_GAN: functools.partial(_dp_gan, chosen, None),
        System.PUBLIC_GAN: functools.partial(_public_gan, starts),
        System.STARTED_PRIVATE: functools.partial(_private, chosen, starts.autoencoder),
        System.STARTED_PATE_GAN: functools.partial(
            _pate_gan, replace(chosen, voted=chosen.voted_started), starts.gan
        ),
        System.STARTED_DP_GAN: functools.partial(_dp_gan, chosen, starts.gan),
    }


Starts = Callable[[TrainingOrder], Start[Any]]


class _Starts:
    """Public networks, one of each kind for all systems and budgets of a seed."""

    def __init__(self, settings: GeneratorSettings) -> None:
        self._settings = settings
        self._kept: dict[str, tuple[Split, int, Start[Any]]] = {}

    def autoencoder(self, order: TrainingOrder) -> Start[Any]:
        """Return the autoencoder of the public speaker."""
        return self._found(start_autoencoder, order)

    def gan(self, order: TrainingOrder) -> Start[Any]:
        """Return the GAN of the public speaker."""
        return self._found(start_gan, order)

    def _found(self, begin: Callable[..., Start[Any]], order: TrainingOrder) -> Start[Any]:
        split, seed, start = self._kept.get(begin.__name__, (None, None, None))
        if start is None or split is not order.split or seed != order.seed:
            start = begin(
                order.split.public.pictures, self._settings, origin.PUBLIC, order.seed,
                progress=order.progress,
            )  # fmt: skip
            self._kept[begin.__name__] = order.split, order.seed, start
        return start


def _begun(starts: Starts | None, order: TrainingOrder, share: float) -> Start[Any] | None:
    """Return a system's start, with this share of a step."""
    return None if starts is None else replace(starts(order), share=share)


def _printed(recipe: GeneratorRecipes, order: TrainingOrder) -> Generator:
    return train_autoencoder(
        order.split.private.pictures, recipe.open, origin.NOT_PRIVATE, order.seed,
        progress=order.progress, checkpoint=order.checkpoint,
    )  # fmt: skip


def _public(recipe: GeneratorRecipes, order: TrainingOrder) -> Generator:
    return train_autoencoder(
        order.split.public.pictures, recipe.open, origin.PUBLIC, order.seed,
        progress=order.progress, checkpoint=order.checkpoint,
    )  # fmt: skip


def _public_gan(starts: _Starts, order: TrainingOrder) -> Generator:
    return starts.gan(order).generator


def _private(recipe: GeneratorRecipes, starts: Starts | None, order: TrainingOrder) -> Generator:
    budget, training = _given(order), _training(recipe.noisy, recipe.norm, order)
    return train_private_autoencoder(
        order.split.private.pictures, recipe.noisy, training, _origin(budget),
        start=_begun(starts, order, recipes.share(training.noise)),
        seed=order.seed, progress=order.progress, checkpoint=order.checkpoint,
    )  # fmt: skip


def _dp_gan(recipe: GeneratorRecipes, starts: Starts | None, order: TrainingOrder) -> Generator:
    budget, training = _given(order), _training(recipe.judged, recipe.norm, order)
    return train_dp_gan(
        order.split.private.pictures, recipe.judged, training, _origin(budget),
        start=_begun(starts, order, recipes.share(training.noise)),
        seed=order.seed, progress=order.progress, checkpoint=order.checkpoint,
    )  # fmt: skip


def _pate_gan(recipe: GeneratorRecipes, starts: Starts | None, order: TrainingOrder) -> Generator:
    budget = _given(order)
    asked = queries(recipe.voted)
    deviation = budgets.pate_gan(budget.epsilon, budget.delta, asked, budgets.NoisyMax.GNMAX)
    share = recipes.voted_share(deviation / recipe.teachers.teachers)
    return train_pate_gan(
        order.split.private.pictures, recipe.voted, recipe.teachers, GNMax(deviation),
        _origin(budget), start=_begun(starts, order, share),
        seed=order.seed, progress=order.progress, checkpoint=order.checkpoint,
    )  # fmt: skip


def _training(settings: GeneratorSettings, norm: float, order: TrainingOrder) -> PrivateTraining:
    clips = len(order.split.private)
    noise = _noise(_given(order), clips, settings)
    return PrivateTraining(noise, settings.batch / clips, norm, settings.steps)


@functools.lru_cache(maxsize=64)
def _noise(budget: PublicationBudget, clips: int, settings: GeneratorSettings) -> float:
    """Compute the noise; cached, as it takes seconds."""
    return budgets.dp_sgd(budget.epsilon, budget.delta, clips, settings.steps, settings.batch)


def _given(order: TrainingOrder) -> PublicationBudget:
    if order.budget is None:
        raise InvalidParametersError("budget: needed, as this generator trains on private clips")
    return order.budget


def _origin(budget: PublicationBudget) -> origin.Origin:
    return origin.private(budget.epsilon, budget.delta, _UNIT)
