"""Generators under attack from their samples alone, beside others that hide nothing.

A PATE-GAN (Jordon et al., ICLR 2019) as it is offered, on pictures of four by four of which some
are canaries, unlike all others; all attacks of `membership` together give a lower bound on its ε.
The same attacks, in as many trials, must find more in a generator that repeats its records, or they
say nothing.

Whoever starts a game of generator and critic from an autoencoder of the same recordings has better
samples soon, and often does. Votes then pay for their answers and for nothing else: the decoder has
met every clip before the first of them. Such a PATE-GAN is a planted fault.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import SAMPLED, Check, Finding, Result, Technique
from earshot_simulations.auditing.losses import Bracket
from earshot_simulations.auditing.watching import replaced
from earshot_simulations.membership.game import Game, Records, Sampler, Train
from earshot_simulations.membership.planted import repeating
from earshot_simulations.membership.suite import ATTACKS, AttackReport, attacked

if TYPE_CHECKING:
    from earshot_studies.pate_aae.generators.pate_gan import Ensemble
    from earshot_studies.pate_aae.generators.settings import GeneratorSettings

EPSILON = 2.0
"""Stated ε of the generators, which one of them keeps."""
_PRINTED_EPSILON = 0.1
"""One ε of those that a paper states of one and the same generator, from 0.01 to 100."""
_CONFIDENCE = 0.999
"""Confidence of bounds: with δ of 10⁻⁵ for each of hundreds of coins, none could be much surer."""
_DELTA = 1e-5
_SIDE = 4
_CANARIES, _RECORDS, _ALWAYS, _REFERENCE = 12, 24, 76, 80
_TRIALS, _FEWER_TRIALS, _SAMPLES = 40, 30, 250
_TEACHERS = 50


@dataclass(frozen=True)
class PateGanRecipe:
    """Recipe of a PATE-GAN whose votes keep a budget.

    Attributes:
        settings: Settings of generator and student.
        ensemble: Ensemble of teachers.
        epsilon: Budget ε of all votes, for a clip that is replaced.
        delta: Value of δ for all votes.
    """

    settings: GeneratorSettings
    ensemble: Ensemble
    epsilon: float
    delta: float


def audit_generators(seed: int) -> Iterator[Result]:
    """Attack a PATE-GAN, and check whether the attacks could have shown more.

    Args:
        seed: Seed of all draws.
    """
    report = _attacked(pate_gan(_private_recipe(EPSILON)), pictures(seed), seed)
    words = f"PATE-GAN, {_TEACHERS} teachers, {_RECORDS + _ALWAYS} clips"
    yield attack_finding(words, report)
    yield Check(
        f"{words}: whether the attacks would find more",
        f"more than ε = {EPSILON:g} in a generator that repeats its records",
        f"ε ≥ {report.power:.2f} in the same {_TRIALS} trials",
        report.power > EPSILON,
        f"{len(ATTACKS)} attacks, {report.coins} coins guessed",
        power.EXACTLY,
    )


def repeated_records(seed: int) -> Finding:
    """Plant a fault: a generator that repeats its records, sold as private."""
    found = _attacked(repeating, pictures(seed), seed)
    return attack_finding("a generator that repeats its records", found)


def warmed_up_generator(seed: int) -> Finding:
    """Plant a fault: a PATE-GAN with all its noise, warmed up on the clips that it protects.

    Of few clips, canaries alone, an autoencoder keeps each.
    """
    from earshot_studies.pate_aae.generators.pate_gan import Ensemble
    from earshot_studies.pate_aae.generators.settings import GeneratorSettings, Network

    voted = GeneratorSettings(
        network=Network.DENSE, width=64, latent=3, critic_width=32, steps=20, batch=8, rate=5e-4,
        critic_rate=2e-3, averaging=0.9,
    )  # fmt: skip
    open = GeneratorSettings(
        network=Network.DENSE, width=64, latent=3, critic_width=16, steps=300, batch=_CANARIES,
        rate=3e-3, critic_rate=3e-3, averaging=0.9,
    )  # fmt: skip
    ensemble, game = Ensemble(_CANARIES // 2, width=16, batch=2), pictures(seed)
    few = replace(
        game, records=game.records[:_CANARIES], always=game.always[:0],
        instead=None if game.instead is None else game.instead[:_CANARIES],
    )  # fmt: skip
    found = _attacked(warmed_up(PateGanRecipe(voted, ensemble, EPSILON, _DELTA), open), few, seed)
    return attack_finding("a PATE-GAN warmed up on its clips", found)


def printed_autoencoder(seed: int) -> Finding:
    """Attack a generator that learns from recordings without noise, at the ε of its labels.

    Yang et al. (Interspeech 2021), section 3.2: the ε that they state is that of the votes alone.
    """
    found = _attacked(_autoencoder, pictures(seed, _FEWER_TRIALS), seed, _PRINTED_EPSILON)
    words = "PATE-AAE 3.2: an autoencoder without noise"
    return replace(attack_finding(words, found), proven=None)


def _attacked(train: Train, game: Game, seed: int, epsilon: float = EPSILON) -> AttackReport:
    return attacked(train, game, epsilon, _DELTA, seed=seed, confidence=_CONFIDENCE)


def attack_finding(words: str, report: AttackReport) -> Finding:
    """Return what the attack that did best on known coins shows of the others."""
    return Finding(
        f"{words}: best of {len(report.outcomes)} attacks, {report.chosen.attack}",
        "clip, replaced",
        report.delta,
        report.epsilon,
        report.epsilon,
        Bracket(report.chosen.shown, math.inf),
        Technique(
            SAMPLED,
            f"attacks on samples alone, {report.coins} coins guessed of generators",
            report.trials,
            report.confidence,
            "a generator that gives every clip away",
        ),
    )


def pictures(seed: int, trials: int = _TRIALS) -> Game:
    """Return slopes, and canaries of ±1; a lost coin exchanges a picture for another slope."""
    generator = np.random.default_rng(seed)
    records, always, reference, instead = (
        _slopes(count, generator) for count in (_RECORDS, _ALWAYS, _REFERENCE, _RECORDS)
    )
    records[:_CANARIES] = generator.choice([-1.0, 1.0], (_CANARIES, _SIDE, _SIDE))
    return Game(records, always, reference, instead, trials, _SAMPLES)


def _slopes(count: int, generator: np.random.Generator) -> Records:
    ramp = np.linspace(-1, 1, _SIDE)
    across, down = generator.standard_normal((2, count, 1, 1))
    noise = 0.1 * generator.standard_normal((count, _SIDE, _SIDE))
    slopes = across * ramp[None, :, None] + down * ramp[None, None, :] + noise
    return np.asarray(np.tanh(slopes), dtype=np.float32)


def pate_gan(recipe: PateGanRecipe) -> Train:
    """Return the training of a PATE-GAN, with the noise on votes that its budget needs.

    Raises:
        InvalidParametersError: The budget is out of range.
    """
    from earshot_models.votes.rules.gnmax import GNMax
    from earshot_studies.pate_aae import budgets
    from earshot_studies.pate_aae.generators import origin
    from earshot_studies.pate_aae.generators import pate_gan as system

    queries = system.queries(recipe.settings)
    rule = budgets.NoisyMax.GNMAX
    aggregator = GNMax(budgets.pate_gan(recipe.epsilon, recipe.delta, queries, rule))
    stated = origin.private(recipe.epsilon, recipe.delta, "clip")

    def train(records: Records, seed: int) -> Sampler:
        return system.train_pate_gan(
            records, recipe.settings, recipe.ensemble, aggregator, stated, seed=seed
        )

    return train


def warmed_up(recipe: PateGanRecipe, autoencoder: GeneratorSettings) -> Train:
    """Return the same training from a decoder that has met the clips: the planted fault.

    Args:
        recipe: Recipe of the PATE-GAN, with all its noise.
        autoencoder: Settings of the autoencoder that is trained first, with a decoder like the
            recipe's.
    """
    from earshot_studies.pate_aae.generators import adversaries
    from earshot_studies.pate_aae.generators.autoencoder import train_autoencoder
    from earshot_studies.pate_aae.generators.origin import NOT_PRIVATE

    honest, before = pate_gan(recipe), adversaries.started

    def train(records: Records, seed: int) -> Sampler:
        def started(*given: Any) -> adversaries.GameState:
            met = train_autoencoder(records, autoencoder, NOT_PRIVATE, seed).decoder
            return before(*given)._replace(decoder=met, average=met)

        with replaced(adversaries, started=started):
            return honest(records, seed)

    return train


def _private_recipe(epsilon: float) -> PateGanRecipe:
    """Return the recipe of the PATE-GAN that is attacked."""
    from earshot_studies.pate_aae.generators.pate_gan import Ensemble
    from earshot_studies.pate_aae.generators.settings import GeneratorSettings

    settings = GeneratorSettings(
        width=32, latent=4, critic_width=32, steps=30, batch=4, rate=3e-3, critic_rate=3e-3,
        jitter=0.1, averaging=0.9,
    )  # fmt: skip
    return PateGanRecipe(
        settings, Ensemble(_TEACHERS, width=16, rate=3e-3, batch=4), epsilon, _DELTA
    )


def _autoencoder(records: Records, seed: int) -> Sampler:
    """Train an adversarial autoencoder that fits its clips, as nothing hides them."""
    from earshot_studies.pate_aae.generators import autoencoder as system
    from earshot_studies.pate_aae.generators.origin import NOT_PRIVATE
    from earshot_studies.pate_aae.generators.settings import GeneratorSettings

    settings = GeneratorSettings(
        width=64, latent=4, critic_width=16, steps=150, batch=50, rate=3e-3, critic_rate=3e-3,
        averaging=0.9,
    )  # fmt: skip
    return system.train_autoencoder(records, settings, NOT_PRIVATE, seed)
