"""How each generator of spoken digits is trained, and what noise its share of a budget needs.

Sizes, steps and norms were chosen on the public speaker alone. All networks, and the numbers that a
sample is made from, are the same for all systems, as in Yang et al. (Interspeech 2021, 4.2).
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

from earshot_models.generators import origin
from earshot_models.generators.autoencoder import train_autoencoder
from earshot_models.generators.dp_gan import train_dp_gan
from earshot_models.generators.generator import Generator
from earshot_models.generators.pate_gan import Ensemble, queries, train_pate_gan
from earshot_models.generators.private_autoencoder import train_private_autoencoder
from earshot_models.generators.private_training import PrivateTraining
from earshot_models.generators.settings import Settings
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.voting.winners import GNMax
from earshot_simulations.generation import budgets, recipes
from earshot_simulations.pate.mechanisms import Name
from earshot_simulations.spoken.systems import Budget, Makers, Order, System

_UNIT = "clip"

_TEACHERS = Ensemble()


@dataclass(frozen=True)
class Recipe:
    """Of all generators.

    Attributes:
        open: settings of what is trained without noise.
        noisy: of an autoencoder that learns from noisy gradients; `batch` clips on average a step.
        judged: of a generator whose critic does.
        norm: to which gradients are clipped.
        voted: of what learns from votes.
        teachers: of critics.
    """

    open: Settings = recipes.OPEN
    noisy: Settings = recipes.NOISY
    judged: Settings = recipes.JUDGED
    norm: float = recipes.NORM
    voted: Settings = recipes.VOTED
    teachers: Ensemble = _TEACHERS

    @property
    def described(self) -> dict[System, str]:
        """For notes, and to tell cells of other recipes apart."""
        open = f"{_network(self.open)}, {self.open.steps:,} steps of {self.open.batch} clips"
        noisy, judged = (
            f"{_network(own)}, {own.steps:,} steps of {own.batch} clips on average (Poisson), "
            f"gradients clipped to {self.norm:g}"
            for own in (self.noisy, self.judged)
        )
        judged += f", critics shown slow waves of noise, {self.judged.jitter:g} at first"
        voted = (
            f"{_network(self.voted)}, {self.voted.steps:,} steps, {queries(self.voted):,} answers "
            f"by GNMax of {self.teachers.teachers} critics of width {self.teachers.width}, shown "
            f"slow waves of noise, {self.voted.jitter:g} at first"
        )
        words = {System.PATE_GAN: voted, System.PRIVATE: noisy, System.DP_GAN: judged}
        return {system: words.get(system, open) for system in System}


def _network(settings: Settings) -> str:
    return (
        f"{settings.network.value} networks of width {settings.width}, {settings.latent} latent "
        f"numbers, Adam at {settings.rate:g} and {settings.critic_rate:g}"
    )


def critics(teachers: int) -> Ensemble:
    """So many critics of PATE-GAN, two at least."""
    return replace(_TEACHERS, teachers=max(2, teachers))


def makers(recipe: Recipe | None = None) -> Makers:
    """Of every system."""
    chosen = recipe or Recipe()
    return {
        System.PRINTED: functools.partial(_printed, chosen),
        System.PUBLIC: functools.partial(_public, chosen),
        System.PRIVATE: functools.partial(_private, chosen),
        System.PATE_GAN: functools.partial(_pate_gan, chosen),
        System.DP_GAN: functools.partial(_dp_gan, chosen),
    }


def _printed(recipe: Recipe, order: Order) -> Generator:
    return train_autoencoder(
        order.split.private.pictures, recipe.open, origin.NOT_PRIVATE, order.seed,
        progress=order.progress, checkpoint=order.checkpoint,
    )  # fmt: skip


def _public(recipe: Recipe, order: Order) -> Generator:
    return train_autoencoder(
        order.split.public.pictures, recipe.open, origin.PUBLIC, order.seed,
        progress=order.progress, checkpoint=order.checkpoint,
    )  # fmt: skip


def _private(recipe: Recipe, order: Order) -> Generator:
    budget = _given(order)
    return train_private_autoencoder(
        order.split.private.pictures, recipe.noisy, _training(recipe.noisy, recipe.norm, order),
        _origin(budget), seed=order.seed, progress=order.progress, checkpoint=order.checkpoint,
    )  # fmt: skip


def _dp_gan(recipe: Recipe, order: Order) -> Generator:
    budget = _given(order)
    return train_dp_gan(
        order.split.private.pictures, recipe.judged, _training(recipe.judged, recipe.norm, order),
        _origin(budget), seed=order.seed, progress=order.progress, checkpoint=order.checkpoint,
    )  # fmt: skip


def _pate_gan(recipe: Recipe, order: Order) -> Generator:
    budget = _given(order)
    asked = queries(recipe.voted)
    deviation = budgets.pate_gan(budget.epsilon, budget.delta, asked, Name.GNMAX)
    return train_pate_gan(
        order.split.private.pictures, recipe.voted, recipe.teachers, GNMax(deviation),
        _origin(budget), seed=order.seed, progress=order.progress, checkpoint=order.checkpoint,
    )  # fmt: skip


def _training(settings: Settings, norm: float, order: Order) -> PrivateTraining:
    clips = len(order.split.private)
    noise = _noise(_given(order), clips, settings)
    return PrivateTraining(noise, settings.batch / clips, norm, settings.steps)


@functools.lru_cache(maxsize=64)
def _noise(budget: Budget, clips: int, settings: Settings) -> float:
    """The same for all seeds, and seconds of work."""
    return budgets.dp_sgd(budget.epsilon, budget.delta, clips, settings)


def _given(order: Order) -> Budget:
    if order.budget is None:
        raise InvalidParametersError("budget: this generator meets private clips and needs one")
    return order.budget


def _origin(budget: Budget) -> origin.Origin:
    return origin.private(budget.epsilon, budget.delta, _UNIT)
