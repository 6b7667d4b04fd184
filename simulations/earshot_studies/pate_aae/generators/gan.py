"""A generative adversarial network without privacy, for comparison with private ones."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import NDArray

from earshot_protocol.progress import Progress
from earshot_studies.pate_aae.generators import adversaries
from earshot_studies.pate_aae.generators.adversaries import CriticDraws, GameState, Networks
from earshot_studies.pate_aae.generators.clips import checked_clips
from earshot_studies.pate_aae.generators.origin import Origin, refuse_private
from earshot_studies.pate_aae.generators.settings import GeneratorSettings, plain
from earshot_studies.pate_aae.generators.start import Start
from earshot_studies.pate_aae.generators.steps import Loop


def start_gan(
    clips: NDArray[np.floating],
    settings: GeneratorSettings,
    origin: Origin,
    seed: int,
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Start[Networks]:
    """Train both networks of a generator.

    A private training may start with them if they are public. Arguments and errors are those of
    `autoencoder.train_autoencoder`.
    """
    refuse_private(origin)
    given = checked_clips(clips)
    about = {"origin": origin.kind.value, **plain(settings)}
    loop = Loop("gan", given, about, seed, checkpoint)
    randomness, shape, constant = loop.randomness, loop.shape, settings.of_a_step()

    def step(state: GameState, number: int) -> GameState:
        generator = randomness.generator("step", number)
        left = 1 - number / settings.steps
        for _ in range(settings.critic_steps):
            batch = given[generator.integers(0, len(given), settings.batch)]
            own = adversaries.draws(generator, settings.batch, shape, settings, left)
            state = _critic_step(state, batch, own, constant)
        own = adversaries.draws(generator, settings.batch, shape, settings, left)
        after: GameState = adversaries.decoder_moved(state, own, constant)
        return after

    first = adversaries.started(shape, settings, randomness.generator("weights"))
    state = loop.run(first, step, settings.steps, progress)
    return Start(Networks(state.average, state.critic), shape, settings, origin, given)


@functools.partial(jax.jit, static_argnames=("settings",))
def _critic_step(
    state: GameState, clips: Any, own: CriticDraws, settings: GeneratorSettings
) -> GameState:
    each = jax.vmap(
        functools.partial(adversaries.critic_loss, settings=settings), (None, 0, 0, None)
    )
    gradients = jax.grad(lambda critic: jnp.mean(each(critic, clips, own, state.decoder)))(
        state.critic
    )
    after: GameState = adversaries.critic_moved(state, gradients, settings)
    return after
