"""Generator and critic (Goodfellow et al. 2014), shared by the systems without an encoder.

The generator is the autoencoder's decoder and the critic has the encoder's trunk, so that systems
differ only in how they learn.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from earshot_studies.pate_aae.generators.networks import Decoder, SampleCritic, Shape, initialized
from earshot_studies.pate_aae.generators.settings import GeneratorSettings
from earshot_studies.pate_aae.generators.start import Start, begun
from earshot_studies.pate_aae.generators.steps import averaged

_MOMENTUM = 0.5
"""Adam's first momentum; a low one stabilizes adversarial training (Radford et al. 2016)."""


class Networks(NamedTuple):
    """Networks in training."""

    decoder: Decoder
    critic: SampleCritic


class GameState(NamedTuple):
    """State between two steps: networks, their optimizers, and the decoder's average."""

    decoder: Decoder
    critic: SampleCritic
    decoder_memory: Any
    critic_memory: Any
    average: Decoder


class CriticDraws(NamedTuple):
    """Random draws for a critic's losses on one clip and one sample.

    Attributes:
        latent: Latent vector of the sample, (latent,).
        on_clip, on_sample: Noise added to the clip and to the sample, (frames, bands).
    """

    latent: Any
    on_clip: Any
    on_sample: Any


def started(
    shape: Shape,
    settings: GeneratorSettings,
    generator: np.random.Generator,
    start: Start[Networks] | None = None,
) -> GameState:
    """Return the state before the first step.

    Raises:
        InvalidParametersError: The start does not fit (see `start.begun`).
    """
    fresh = Networks(
        initialized(functools.partial(Decoder, shape, settings), generator),
        initialized(functools.partial(SampleCritic, shape, settings), generator),
    )
    decoder, critic = begun(fresh, start, shape, settings)
    memories = _memories(decoder, critic, settings)
    return GameState(decoder, critic, memories[0], memories[1], decoder)


@functools.partial(jax.jit, static_argnames=("settings",))
def _memories(
    decoder: Decoder, critic: SampleCritic, settings: GeneratorSettings
) -> tuple[Any, Any]:
    """Return the initial state of both optimizers, compiled once for all trainings."""
    return decoder_optimizer(settings).init(decoder), critic_optimizer(settings).init(critic)


def decoder_optimizer(settings: GeneratorSettings) -> Any:
    """Return Adam at the generator's rate."""
    return optax.adam(settings.rate, b1=_MOMENTUM)


def critic_optimizer(settings: GeneratorSettings) -> Any:
    """Return Adam at the critics' rate."""
    return optax.adam(settings.critic_rate, b1=_MOMENTUM)


def draws(
    generator: np.random.Generator,
    count: int,
    shape: Shape,
    settings: GeneratorSettings,
    left: float,
) -> CriticDraws:
    """Draw for `count` clips and samples, along the first axis.

    Args:
        generator: Source of the draws.
        count: Number of clips, and of samples.
        shape: Frames and bands of a clip.
        settings: Settings of the training.
        left: Remaining share of the training, from 1 down to 0.
    """
    deviation = np.float32(settings.jitter * left)
    noise = [deviation * smooth(generator, count, shape) for _ in range(2)]
    return CriticDraws(latents(generator, count, settings), *noise)


def smooth(generator: np.random.Generator, count: int, shape: Shape) -> Any:
    """Draw random fields of few waves, of deviation 1 on average over a clip: (count, *shape).

    Noise on the critics' input stabilizes training (Sønderby et al. 2017). A student of teachers'
    votes needs it: samples alone carry no information about directions in which no sample lies.
    White noise has a direction for each of a thousand numbers, but votes are few, and clips differ
    in slow waves.
    """
    frames, bands = (_cosines(side) for side in shape)
    waves = generator.standard_normal((count, len(frames), len(bands)), np.float32)
    scale = np.float32(np.sqrt(shape[0] * shape[1] / (len(frames) * len(bands))))
    return scale * (frames.T @ waves @ bands)


@functools.lru_cache(maxsize=16)
def _cosines(side: int) -> Any:
    """Return the slowest orthonormal cosines of a side, (waves, side): a quarter of all."""
    waves = np.arange(-(-side // 4))[:, None]
    rows = np.cos(np.pi * waves * (np.arange(side) + 0.5) / side)
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def latents(generator: np.random.Generator, count: int, settings: GeneratorSettings) -> Any:
    """Draw latent vectors, (count, latent)."""
    return generator.standard_normal((count, settings.latent), np.float32)


def critic_loss(
    critic: SampleCritic,
    clip: jax.Array,
    own: CriticDraws,
    decoder: Decoder,
    settings: GeneratorSettings,
) -> jax.Array:
    """Return the binary cross-entropy of a critic on one clip and one sample, a scalar.

    Args:
        critic: Critic that learns.
        clip: Real clip, (frames, bands).
        own: Random draws for this clip and sample.
        decoder: Decoder that makes the sample.
        settings: Settings of the training; the target for real clips is 1 less its `smoothing`
            (Salimans et al. 2016).
    """
    return real_loss(critic, clip + own.on_clip, settings) + jax.nn.softplus(
        critic(decoder(own.latent) + own.on_sample)
    )


def real_loss(critic: SampleCritic, shown: jax.Array, settings: GeneratorSettings) -> jax.Array:
    """Return the binary cross-entropy of a critic on a real clip, a scalar."""
    word = critic(shown)
    smoothing = settings.smoothing
    return (1 - smoothing) * jax.nn.softplus(-word) + smoothing * jax.nn.softplus(word)


@functools.partial(jax.jit, static_argnames=("settings",))
def critic_moved(state: GameState, gradients: Any, settings: GeneratorSettings) -> GameState:
    """Return the state after a step of the critic along gradients."""
    updates, memory = critic_optimizer(settings).update(gradients, state.critic_memory)
    return state._replace(critic=optax.apply_updates(state.critic, updates), critic_memory=memory)


@functools.partial(jax.jit, static_argnames=("settings",))
def decoder_moved(state: GameState, own: CriticDraws, settings: GeneratorSettings) -> GameState:
    """Return the state after a generator step against the critic."""

    def loss(decoder: Decoder) -> jax.Array:
        shown = jax.vmap(decoder)(own.latent) + own.on_sample
        return jnp.mean(jax.nn.softplus(-jax.vmap(state.critic)(shown)))

    gradients = jax.grad(loss)(state.decoder)
    updates, memory = decoder_optimizer(settings).update(gradients, state.decoder_memory)
    decoder = optax.apply_updates(state.decoder, updates)
    return state._replace(
        decoder=decoder,
        decoder_memory=memory,
        average=averaged(state.average, decoder, settings.averaging),
    )
