"""PATE-GANs to attack: as it is offered, and one that was warmed up on the clips it protects.

Whoever starts a game of generator and critic from an autoencoder of the same recordings has better
samples soon, and often does. Votes then pay for what they tell and for nothing else: the decoder
has met every clip before the first of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from earshot_simulations.auditing.watching import replaced
from earshot_simulations.membership.game import Records, Sampler, Train

if TYPE_CHECKING:
    from earshot_models.generators.pate_gan import Ensemble
    from earshot_models.generators.settings import Settings


@dataclass(frozen=True)
class Recipe:
    """Of a PATE-GAN whose votes keep a budget.

    Attributes:
        settings: of generator and student.
        ensemble: of teachers.
        epsilon: ε of all votes, for a clip that is replaced.
        delta: δ.
    """

    settings: Settings
    ensemble: Ensemble
    epsilon: float
    delta: float


def pate_gan(recipe: Recipe) -> Train:
    """What trains it, with the noise on votes that its budget needs.

    Raises:
        InvalidParametersError: a budget out of range.
    """

    from earshot_models.generators import origin
    from earshot_models.generators import pate_gan as system
    from earshot_models.votes.rules.gnmax import GNMax
    from earshot_simulations.generation import budgets

    queries = system.queries(recipe.settings)
    rule = budgets.NoisyMax.GNMAX
    aggregator = GNMax(budgets.pate_gan(recipe.epsilon, recipe.delta, queries, rule))
    stated = origin.private(recipe.epsilon, recipe.delta, "clip")

    def train(records: Records, seed: int) -> Sampler:
        return system.train_pate_gan(
            records, recipe.settings, recipe.ensemble, aggregator, stated, seed=seed
        )

    return train


def warmed_up(recipe: Recipe, autoencoder: Settings) -> Train:
    """What trains the same, from a decoder that has met the clips: the planted fault.

    Args:
        recipe: of the PATE-GAN, with all its noise.
        autoencoder: settings of what is trained first, with a decoder like the recipe's.
    """
    from earshot_models.generators import adversaries
    from earshot_models.generators.autoencoder import train_autoencoder
    from earshot_models.generators.origin import NOT_PRIVATE

    honest, before = pate_gan(recipe), adversaries.started

    def train(records: Records, seed: int) -> Sampler:
        def started(*given: Any) -> adversaries.State:
            met = train_autoencoder(records, autoencoder, NOT_PRIVATE, seed).decoder
            return before(*given)._replace(decoder=met, average=met)

        with replaced(adversaries, started=started):
            return honest(records, seed)

    return train
