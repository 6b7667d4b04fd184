"""Generators under attack from their samples alone, beside such as hide nothing.

A PATE-GAN (Jordon et al., ICLR 2019) as it is offered, on pictures of four by four of which some
are canaries, unlike all others; what all attacks of `membership` show of it is a lower bound on its
ε. The same attacks, in as many trials, must find more in a generator that repeats its records, or
they say nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from earshot_simulations.auditing import power
from earshot_simulations.auditing.attacked_pate_gans import Recipe, pate_gan, warmed_up
from earshot_simulations.auditing.findings import (
    FAULTS,
    PRINTED,
    SAMPLED,
    Check,
    Finding,
    Method,
    Result,
    Role,
)
from earshot_simulations.auditing.losses import Bracket
from earshot_simulations.membership.game import Game, Records, Sampler, Train
from earshot_simulations.membership.planted import repeating
from earshot_simulations.membership.suite import ATTACKS, Report, attacked

ATTACKED = "attacked-generators"
UNIT = "clip, replaced"
EPSILON = 2.0
"""That is stated of the generators, and kept by one of them."""
PRINTED_EPSILON = 0.1
"""One of those that a paper states of one and the same generator, from 0.01 to 100."""
CONFIDENCE = 0.999
"""With δ of 10⁻⁵ for each of hundreds of coins no bound could be much surer."""
_DELTA = 1e-5
_SIDE = 4
_CANARIES, _RECORDS, _ALWAYS, _REFERENCE = 12, 24, 76, 80
_TRIALS, _FEWER_TRIALS, _SAMPLES = 40, 30, 250
_TEACHERS = 50


_SUBJECTS = {Role.PRODUCT: ATTACKED, Role.PRINTED: PRINTED, Role.FAULT: FAULTS}


def audit_generators(seed: int) -> Iterator[Result]:
    """What attacks show of a PATE-GAN, and whether they could have shown more.

    Args:
        seed: of everything that is drawn.
    """
    report = attacked(
        pate_gan(private_recipe(EPSILON)),
        pictures(seed),
        EPSILON,
        _DELTA,
        seed=seed,
        confidence=CONFIDENCE,
    )
    words = f"PATE-GAN, {_TEACHERS} teachers, {_RECORDS + _ALWAYS} clips"
    yield attack_finding(words, report)
    yield Check(
        ATTACKED,
        f"{words}: whether the attacks would find more",
        f"more than ε = {EPSILON:g} in a generator that repeats its records",
        f"ε ≥ {report.power:.2f} in the same {_TRIALS} trials",
        report.power > EPSILON,
        f"{len(ATTACKS)} attacks, {report.coins} coins guessed",
        power.EXACTLY,
    )


def generator_faults(seed: int) -> Iterator[Finding]:
    """A generator that repeats its records, sold as private.

    Args:
        seed: of everything that is drawn.
    """
    found = attacked(repeating, pictures(seed), EPSILON, _DELTA, seed=seed, confidence=CONFIDENCE)
    yield attack_finding("a generator that repeats its records", found, Role.FAULT)


def warmed_generators(seed: int) -> Iterator[Finding]:
    """A PATE-GAN with all its noise, warmed up by an autoencoder of the clips that it protects.

    Args:
        seed: of everything that is drawn.
    """
    found = attacked(
        planted_pate_gan(), few_pictures(seed), EPSILON, _DELTA, seed=seed, confidence=CONFIDENCE
    )
    yield attack_finding("a PATE-GAN warmed up on its clips", found, Role.FAULT)


def planted_pate_gan() -> Train:
    """What trains it."""
    from earshot_models.generators.pate_gan import Ensemble
    from earshot_models.generators.settings import Network, Settings

    voted = Settings(
        network=Network.DENSE, width=64, latent=3, critic_width=32, steps=20, batch=8, rate=5e-4,
        critic_rate=2e-3, averaging=0.9,
    )  # fmt: skip
    open = Settings(
        network=Network.DENSE, width=64, latent=3, critic_width=16, steps=300, batch=_CANARIES,
        rate=3e-3, critic_rate=3e-3, averaging=0.9,
    )  # fmt: skip
    ensemble = Ensemble(_CANARIES // 2, width=16, batch=2)
    return warmed_up(Recipe(voted, ensemble, EPSILON, _DELTA), open)


def few_pictures(seed: int) -> Game:
    """Canaries alone: of few clips an autoencoder keeps each."""
    game = pictures(seed)
    return replace(
        game, records=game.records[:_CANARIES], always=game.always[:0],
        instead=None if game.instead is None else game.instead[:_CANARIES],
    )  # fmt: skip


def printed_generators(seed: int) -> Iterator[Finding]:
    """A generator that learns from recordings without noise, at the ε of its labels.

    Yang et al. (Interspeech 2021), section 3.2: the ε that they state is that of the votes alone.

    Args:
        seed: of everything that is drawn.
    """
    few = pictures(seed, _FEWER_TRIALS)
    found = attacked(autoencoder, few, PRINTED_EPSILON, _DELTA, seed=seed, confidence=CONFIDENCE)
    yield attack_finding("PATE-AAE 3.2: an autoencoder without noise", found, Role.PRINTED)


def attack_finding(words: str, report: Report, role: Role = Role.PRODUCT) -> Finding:
    """What the attack that did best on known coins shows of the others."""
    return Finding(
        _SUBJECTS[role],
        f"{words}: best of {len(report.outcomes)} attacks, {report.chosen.attack}",
        UNIT,
        report.delta,
        report.epsilon,
        None if role is Role.PRINTED else report.epsilon,
        Bracket(report.chosen.shown, math.inf),
        Method(
            SAMPLED,
            f"attacks on samples alone, {report.coins} coins guessed of generators",
            report.trials,
            report.confidence,
            "a generator that gives every clip away",
        ),
        role,
    )


def pictures(seed: int, trials: int = _TRIALS) -> Game:
    """Slopes in all directions, and canaries of ±1; a lost coin exchanges a picture for a slope."""
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


def private_recipe(epsilon: float) -> Recipe:
    """Of the PATE-GAN that is attacked."""
    from earshot_models.generators.pate_gan import Ensemble
    from earshot_models.generators.settings import Settings

    settings = Settings(
        width=32, latent=4, critic_width=32, steps=30, batch=4, rate=3e-3, critic_rate=3e-3,
        jitter=0.1, averaging=0.9,
    )  # fmt: skip
    return Recipe(settings, Ensemble(_TEACHERS, width=16, rate=3e-3, batch=4), epsilon, _DELTA)


def autoencoder(records: Records, seed: int) -> Sampler:
    """An adversarial autoencoder that fits its clips, as nothing hides them."""
    from earshot_models.generators import autoencoder as system
    from earshot_models.generators.origin import NOT_PRIVATE
    from earshot_models.generators.settings import Settings

    settings = Settings(
        width=64, latent=4, critic_width=16, steps=150, batch=50, rate=3e-3, critic_rate=3e-3,
        averaging=0.9,
    )  # fmt: skip
    return system.train_autoencoder(records, settings, NOT_PRIVATE, seed)
