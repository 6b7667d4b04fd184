"""Adversarial autoencoders (Makhzani et al. 2015), the generator of Yang et al. (Interspeech 2021).

An encoder draws a latent vector for a clip, a decoder reconstructs the clip from it, and a critic
learns to tell encoded vectors from draws of N(0, I), which the encoder learns to prevent. After
training, the decoder makes samples from draws of N(0, I).

Nothing here is private: the decoder is fitted to every clip. Yang et al. (section 3.2) train it
this way on the sensitive recordings, whatever the budget of their labels; `private_autoencoder`
does not.
"""

from __future__ import annotations

import functools
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from numpy.typing import NDArray

from earshot_protocol.progress import Progress
from earshot_studies.pate_aae.generators.clips import checked_clips
from earshot_studies.pate_aae.generators.generator import Generator
from earshot_studies.pate_aae.generators.networks import (
    ClipEncoder,
    Decoder,
    LatentCritic,
    Shape,
    initialized,
)
from earshot_studies.pate_aae.generators.origin import Origin, refuse_private
from earshot_studies.pate_aae.generators.settings import GeneratorSettings, plain
from earshot_studies.pate_aae.generators.start import Start, begun
from earshot_studies.pate_aae.generators.steps import Loop, averaged


class AutoencoderNetworks(NamedTuple):
    """Networks of an adversarial autoencoder."""

    encoder: ClipEncoder
    decoder: Decoder
    critic: LatentCritic


class AutoencoderState(NamedTuple):
    """State between two steps: networks, their optimizer, and the decoder's average."""

    networks: AutoencoderNetworks
    optimizer: Any
    average: Decoder


class Draws(NamedTuple):
    """Random draws for one clip's losses, each (latent,).

    Attributes:
        encoding: Normal draw for the latent vector.
        losing: Uniform draw for the dropout of latent numbers.
        prior: Draw of N(0, I) for the critic.
    """

    encoding: Any
    losing: Any
    prior: Any


def train_autoencoder(
    clips: NDArray[np.floating],
    settings: GeneratorSettings,
    origin: Origin,
    seed: int,
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Generator:
    """Train a generator without privacy.

    Args:
        clips: Clips, (clips, frames, bands) in [−1, 1].
        settings: Settings of networks and training.
        origin: `PUBLIC` if the clips are public, otherwise `NOT_PRIVATE`.
        seed: Seed for all randomness.
        progress: Callback for the number of steps done.
        checkpoint: File from which an interrupted training continues; it is removed afterwards.

    Raises:
        InvalidInputError: Clips are invalid (see `clips.checked_clips`), or a checkpoint is damaged
            or of another training.
        DivergedError: Weights became infinite.
        InvalidParametersError: The origin claims privacy.
    """
    return start_autoencoder(
        clips, settings, origin, seed, progress=progress, checkpoint=checkpoint
    ).generator


def start_autoencoder(
    clips: NDArray[np.floating],
    settings: GeneratorSettings,
    origin: Origin,
    seed: int,
    *,
    progress: Progress | None = None,
    checkpoint: Path | None = None,
) -> Start[AutoencoderNetworks]:
    """Train all networks of a generator; if public, a private training may start with them.

    Arguments and errors are those of `train_autoencoder`.
    """
    refuse_private(origin)
    given = checked_clips(clips)
    about = {"origin": origin.kind.value, **plain(settings)}
    loop = Loop("autoencoder", given, about, seed, checkpoint)
    randomness, shape, constant = loop.randomness, loop.shape, settings.of_a_step()

    def step(state: AutoencoderState, number: int) -> AutoencoderState:
        generator = randomness.generator("step", number)
        batch = given[generator.integers(0, len(given), settings.batch)]
        after: AutoencoderState = _step(
            state, batch, draws(generator, settings.batch, settings), constant
        )
        return after

    first = started(shape, settings, randomness.generator("weights"))
    state = loop.run(first, step, settings.steps, progress)
    networks = state.networks._replace(decoder=state.average)
    return Start(networks, shape, settings, origin, given)


def started(
    shape: Shape,
    settings: GeneratorSettings,
    generator: np.random.Generator,
    start: Start[AutoencoderNetworks] | None = None,
) -> AutoencoderState:
    """Return the state before the first step.

    Raises:
        InvalidParametersError: The start does not fit (see `start.begun`).
    """
    fresh = AutoencoderNetworks(
        initialized(functools.partial(ClipEncoder, shape, settings), generator),
        initialized(functools.partial(Decoder, shape, settings), generator),
        initialized(functools.partial(LatentCritic, settings), generator),
    )
    networks = begun(fresh, start, shape, settings)
    memory = jax.jit(optimizer(settings).init)(networks)
    return AutoencoderState(networks, memory, networks.decoder)


def optimizer(settings: GeneratorSettings) -> Any:
    """Return Adam for all networks, with the critic at its own rate."""
    kinds: Any = AutoencoderNetworks
    return optax.partition(
        {
            "autoencoder": optax.adam(settings.rate, b1=0.5),
            "critic": optax.adam(settings.critic_rate, b1=0.5),
        },
        kinds("autoencoder", "autoencoder", "critic"),
    )


def draws(generator: np.random.Generator, count: int, settings: GeneratorSettings) -> Draws:
    """Draw for `count` clips, along the first axis."""
    size = (count, settings.latent)
    return Draws(
        generator.standard_normal(size, np.float32),
        generator.random(size, np.float32),
        generator.standard_normal(size, np.float32),
    )


def loss(
    networks: AutoencoderNetworks, clip: jax.Array, own: Draws, settings: GeneratorSettings
) -> jax.Array:
    """Return the loss of one clip, a scalar.

    It is the sum of three losses: squared errors of the reconstruction, with gradients for encoder
    and decoder; the encoder's cross-entropy against the critic, with gradients for the encoder
    alone; and the critic's binary cross-entropy on the vector and on a fresh draw of N(0, I), with
    gradients for the critic alone.

    Args:
        networks: All networks.
        clip: Clip, (frames, bands).
        own: Random draws for this clip in this step.
        settings: Settings of the training.
    """
    latent = networks.encoder(clip, own.encoding)
    made = networks.decoder(latent, own.losing)
    judge = jax.lax.stop_gradient(networks.critic)
    still = jax.lax.stop_gradient(latent)
    reconstruction = jnp.mean((made - clip) ** 2)
    deception = jax.nn.softplus(-judge(latent))
    judgement = jax.nn.softplus(-networks.critic(own.prior))
    judgement += jax.nn.softplus(networks.critic(still))
    return reconstruction + settings.adversarial * deception + judgement


def moved(
    state: AutoencoderState, gradients: AutoencoderNetworks, settings: GeneratorSettings
) -> AutoencoderState:
    """Return the state after a step along gradients."""
    updates, memory = optimizer(settings).update(gradients, state.optimizer, state.networks)
    networks: AutoencoderNetworks = optax.apply_updates(state.networks, updates)
    average = averaged(state.average, networks.decoder, settings.averaging)
    return AutoencoderState(networks, memory, average)


@functools.partial(jax.jit, static_argnames=("settings",))
def _step(
    state: AutoencoderState, clips: Any, own: Draws, settings: GeneratorSettings
) -> AutoencoderState:
    each = jax.vmap(functools.partial(loss, settings=settings), (None, 0, 0))
    gradients = jax.grad(lambda networks: jnp.mean(each(networks, clips, own)))(state.networks)
    return moved(state, gradients, settings)
