"""An adversarial autoencoder that learns from sensitive clips by noisy gradients alone.

Three networks depend on a clip: the encoder, the decoder, and, through the encoder, the critic of
latent vectors. Only the decoder is published, but noise on it alone would not suffice: its next
gradient depends on the encoder, and the encoder's on the critic. So the loss of a clip has all
three terms (`autoencoder.loss`), the clip's gradient of all three networks is clipped as one
vector, and noise is added once to the sum. A step is one Gaussian mechanism, however its three
parts are used. The critic's term on draws of N(0, I) depends on no clip and needs no noise; it is
in the clip's gradient so that clipping scales the critic's terms on drawn and on encoded vectors
equally.
"""

from __future__ import annotations

import functools
from dataclasses import asdict
from pathlib import Path
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from earshot_protocol.progress import Progress
from earshot_studies.pate_aae.generators import autoencoder
from earshot_studies.pate_aae.generators.autoencoder import (
    AutoencoderNetworks,
    AutoencoderState,
    Draws,
)
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


def train_private_autoencoder(
    clips: NDArray[np.floating],
    settings: GeneratorSettings,
    training: PrivateTraining,
    origin: Origin,
    *,
    start: Start[AutoencoderNetworks] | None = None,
    seed: int | None = None,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Generator:
    """Train a generator on sensitive clips, by DP-SGD.

    Args:
        clips: Clips, (clips, frames, bands) in [−1, 1].
        settings: Settings of the networks; `steps` is not used here, and `batch` is the number of
            public clips beside the sensitive ones.
        training: Noise, rate, norm and steps.
        origin: Origin with the ε, δ and unit that `training` costs, as computed by the caller.
        start: Networks trained on public clips (`autoencoder.start_autoencoder`), and the share of
            sensitive clips in each step; None for random networks and sensitive clips alone.
        seed: Seed for simulations only; None for randomness of the operating system.
        progress: Callback for the number of steps done.
        checkpoint: File from which an interrupted training continues; as secret as the clips, and
            removed afterwards.

    Raises:
        InvalidInputError: Clips are invalid (see `clips.checked_clips`), or a checkpoint is damaged
            or of another training.
        DivergedError: Weights became infinite; they come from noisy sums, so this reveals nothing
            more.
        NotPublicStartError: The start is not of public sound alone.
        InvalidParametersError: The origin is not private, or the start has other networks or clips
            of another shape.
    """
    cost, given, constant = about_cost(origin), checked_clips(clips), settings.of_a_step()
    about = cost | {
        **plain(constant), **{f"training {name}": each for name, each in asdict(training).items()},
        **about_start(start),
    }  # fmt: skip
    loop = Loop("private autoencoder", given, about, seed, checkpoint)
    randomness, shape = loop.randomness, loop.shape

    def draws(generator: np.random.Generator, count: int, number: int) -> Draws:
        del number
        return autoencoder.draws(generator, count, settings)

    gradients = NoisyGradients(given, training, _loss, draws, constant, randomness)
    beside = Beside(start, _loss, draws, settings.batch, constant, randomness)

    def step(state: AutoencoderState, number: int) -> AutoencoderState:
        noisy = gradients.at(number, state.networks, ())
        mixed = beside.mixed(number, noisy, state.networks, ())
        after: AutoencoderState = _moved(state, mixed, constant)
        return after

    first = autoencoder.started(shape, settings, randomness.generator("weights"), start)
    state = loop.run(first, step, training.steps, progress)
    return Generator(state.average, shape, settings, origin)


def _loss(
    networks: AutoencoderNetworks,
    clip: jax.Array,
    own: Draws,
    still: tuple[()],
    settings: GeneratorSettings,
) -> jax.Array:
    del still
    return autoencoder.loss(networks, clip, own, settings)


@functools.partial(jax.jit, static_argnames=("settings",))
def _moved(
    state: AutoencoderState, gradients: Any, settings: GeneratorSettings
) -> AutoencoderState:
    return autoencoder.moved(state, gradients, settings)
