"""DP-GAN (Xie et al. 2018): a critic that learns from sensitive clips by noisy gradients.

The generator learns from the critic alone, which is post-processing. Xie et al. bound the gradient
of a clip by bounding the critic's weights; here each gradient is clipped, as in Abadi et al. (CCS
2016) and as the accountant requires.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.progress import Progress
from earshot_studies.pate_aae.generators import adversaries
from earshot_studies.pate_aae.generators.adversaries import CriticDraws, GameState
from earshot_studies.pate_aae.generators.beside import Beside
from earshot_studies.pate_aae.generators.clips import checked_clips
from earshot_studies.pate_aae.generators.generator import Generator
from earshot_studies.pate_aae.generators.origin import Origin
from earshot_studies.pate_aae.generators.private_training import (
    NoisyGradients,
    PrivateTraining,
    about_cost,
)
from earshot_studies.pate_aae.generators.settings import GeneratorSettings, plain
from earshot_studies.pate_aae.generators.start import Start, about_start
from earshot_studies.pate_aae.generators.steps import Loop


def train_dp_gan(
    clips: NDArray[np.floating],
    settings: GeneratorSettings,
    training: PrivateTraining,
    origin: Origin,
    *,
    start: Start[adversaries.Networks] | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Generator:
    """Train a generator on sensitive clips; the critic takes `training.steps` noisy steps.

    Arguments, result and errors are those of `private_autoencoder.train_private_autoencoder`. Of
    the settings, `batch` is the generator's, which moves after every `critic_steps` of the critic.
    """
    cost, given, constant = about_cost(origin), checked_clips(clips), settings.of_a_step()
    about = cost | {
        **plain(settings), **{f"training {name}": each for name, each in asdict(training).items()},
        **about_start(start),
    }  # fmt: skip
    loop = Loop("dp-gan", given, about, seed, checkpoint)
    randomness, shape = loop.randomness, loop.shape

    def draws(generator: np.random.Generator, count: int, number: int) -> CriticDraws:
        left = 1 - number / training.steps
        return adversaries.draws(generator, count, shape, settings, left)

    gradients = NoisyGradients(
        given, training, adversaries.critic_loss, draws, constant, randomness
    )
    beside = Beside(start, adversaries.critic_loss, draws, settings.batch, constant, randomness)

    def step(state: GameState, number: int) -> GameState:
        noisy = gradients.at(number, state.critic, state.decoder)
        mixed = beside.mixed(number, noisy, state.critic, state.decoder)
        state = adversaries.critic_moved(state, mixed, constant)
        if (number + 1) % settings.critic_steps:
            return state
        own = draws(randomness.generator("generator", number), settings.batch, number)
        after: GameState = adversaries.decoder_moved(state, own, constant)
        return after

    first = adversaries.started(shape, settings, randomness.generator("weights"), start)
    state = loop.run(first, step, training.steps, progress)
    return Generator(state.average, shape, settings, origin)
