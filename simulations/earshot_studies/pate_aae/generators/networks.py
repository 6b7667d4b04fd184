"""Encoder, decoder and critics that all generators share, for clips of any frames × bands.

Each is a function of one clip or of one latent vector; callers map it over a batch, or over an
ensemble of networks. None normalizes over a batch: a clip's gradient must not depend on others.

`Network.DENSE` and `Network.CONV` train on two cores. `Network.PAPER` has the shape of Yang et al.
(Interspeech 2021), section 4.1, on spectrograms: a residual layer, a convolution of stride 2, a
residual layer, a dense layer with ReLU; the decoder has dropout on the latent vector and the same
layers in reverse. The WaveNet of the paper, which makes sound sample by sample, is left out: it
takes days on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from earshot_studies.pate_aae.generators.settings import GeneratorSettings, Network

Key = Any
"""A key of jax.random."""
Shape = tuple[int, int]
Net = TypeVar("Net")


class _Dense(eqx.Module):
    """Two dense layers on a flat clip."""

    layers: tuple[eqx.nn.Linear, ...]

    def __init__(self, shape: Shape, width: int, key: Key) -> None:
        first, second = jax.random.split(key)
        self.layers = (
            eqx.nn.Linear(shape[0] * shape[1], width, key=first),
            eqx.nn.Linear(width, width, key=second),
        )

    def __call__(self, clip: jax.Array) -> jax.Array:
        signal = clip.reshape(-1)
        for layer in self.layers:
            signal = _leaky(layer(signal))
        return signal


class _DenseBack(eqx.Module):
    """Three dense layers from a latent vector to a clip (frames, bands), before tanh."""

    layers: tuple[eqx.nn.Linear, ...]
    shape: Shape = eqx.field(static=True)

    def __init__(self, shape: Shape, latent: int, width: int, key: Key) -> None:
        first, second, third = jax.random.split(key, 3)
        self.shape = shape
        self.layers = (
            eqx.nn.Linear(latent, width, key=first),
            eqx.nn.Linear(width, width, key=second),
            eqx.nn.Linear(width, shape[0] * shape[1], key=third),
        )

    def __call__(self, latent: jax.Array) -> jax.Array:
        signal = latent
        for layer in self.layers[:-1]:
            signal = _leaky(layer(signal))
        return self.layers[-1](signal).reshape(self.shape)


class _Conv(eqx.Module):
    """Two convolutions over four frames, of stride 2, with bands as channels; a dense layer."""

    convolutions: tuple[eqx.nn.Linear, ...]
    dense: eqx.nn.Linear

    def __init__(self, shape: Shape, width: int, key: Key) -> None:
        first, second, last = jax.random.split(key, 3)
        channels = _channels(width)
        self.convolutions = (
            eqx.nn.Linear(4 * shape[1], channels, key=first),
            eqx.nn.Linear(4 * channels, channels, key=second),
        )
        self.dense = eqx.nn.Linear(_halved(_halved(shape[0])) * channels, width, key=last)

    def __call__(self, clip: jax.Array) -> jax.Array:
        signal = clip
        for convolution in self.convolutions:
            signal = _leaky(jax.vmap(convolution)(_windows(signal)))
        return _leaky(self.dense(signal.reshape(-1)))


class _ConvBack(eqx.Module):
    """Two dense layers; two transposed convolutions that double the frames."""

    dense: tuple[eqx.nn.Linear, ...]
    convolutions: tuple[eqx.nn.Linear, ...]
    frames: int = eqx.field(static=True)

    def __init__(self, shape: Shape, latent: int, width: int, key: Key) -> None:
        keys = jax.random.split(key, 4)
        channels = _channels(width)
        self.frames, bands = shape
        self.dense = (
            eqx.nn.Linear(latent, width, key=keys[0]),
            eqx.nn.Linear(width, _halved(_halved(self.frames)) * channels, key=keys[1]),
        )
        self.convolutions = (
            eqx.nn.Linear(channels, 4 * channels, key=keys[2]),
            eqx.nn.Linear(channels, 4 * bands, key=keys[3]),
        )

    def __call__(self, latent: jax.Array) -> jax.Array:
        first, second = self.convolutions
        signal = latent
        for layer in self.dense:
            signal = _leaky(layer(signal))
        half = _halved(self.frames)
        signal = signal.reshape(_halved(half), -1)
        signal = _leaky(_overlapped(jax.vmap(first)(signal), half))
        return _overlapped(jax.vmap(second)(signal), self.frames)


class _Residual(eqx.Module):
    """Two convolutions over frames, added to their input."""

    first: eqx.nn.Conv1d
    second: eqx.nn.Conv1d

    def __init__(self, channels: int, key: Key) -> None:
        one, two = jax.random.split(key)
        self.first = eqx.nn.Conv1d(channels, channels, 3, padding=1, key=one)
        self.second = eqx.nn.Conv1d(channels, channels, 3, padding=1, key=two)

    def __call__(self, signal: jax.Array) -> jax.Array:
        return signal + self.second(jax.nn.relu(self.first(jax.nn.relu(signal))))


class _Paper(eqx.Module):
    """Residual layer, stride 2, residual layer, dense layer with ReLU; bands are channels."""

    entry: eqx.nn.Conv1d
    first: _Residual
    stride: eqx.nn.Conv1d
    second: _Residual
    dense: eqx.nn.Linear

    def __init__(self, shape: Shape, width: int, key: Key) -> None:
        keys = jax.random.split(key, 5)
        frames, bands = shape
        self.entry = eqx.nn.Conv1d(bands, width, 3, padding=1, key=keys[0])
        self.first = _Residual(width, keys[1])
        self.stride = eqx.nn.Conv1d(width, width, 3, 2, 1, key=keys[2])
        self.second = _Residual(width, keys[3])
        self.dense = eqx.nn.Linear(width * -(-frames // 2), width, key=keys[4])

    def __call__(self, clip: jax.Array) -> jax.Array:
        signal = self.second(self.stride(self.first(self.entry(clip.T))))
        return jax.nn.relu(self.dense(signal.reshape(-1)))


class _PaperBack(eqx.Module):
    """The layers of `_Paper` in reverse, instead of the paper's WaveNet."""

    dense: eqx.nn.Linear
    first: _Residual
    second: _Residual
    exit: eqx.nn.Conv1d
    frames: int = eqx.field(static=True)

    def __init__(self, shape: Shape, latent: int, width: int, key: Key) -> None:
        keys = jax.random.split(key, 4)
        self.frames, bands = shape
        self.dense = eqx.nn.Linear(latent, width * -(-self.frames // 2), key=keys[0])
        self.first = _Residual(width, keys[1])
        self.second = _Residual(width, keys[2])
        self.exit = eqx.nn.Conv1d(width, bands, 3, padding=1, key=keys[3])

    def __call__(self, latent: jax.Array) -> jax.Array:
        half = -(-self.frames // 2)
        signal = self.first(jax.nn.relu(self.dense(latent)).reshape(-1, half))
        signal = jnp.repeat(signal, 2, axis=1)[:, : self.frames]
        return self.exit(jax.nn.relu(self.second(signal))).T


_THERE = {Network.DENSE: _Dense, Network.CONV: _Conv, Network.PAPER: _Paper}
_BACK = {Network.DENSE: _DenseBack, Network.CONV: _ConvBack, Network.PAPER: _PaperBack}


class ClipEncoder(eqx.Module):
    """A network from a clip to an independent normal distribution of each latent number."""

    trunk: Any
    mean: eqx.nn.Linear
    spread: eqx.nn.Linear

    def __init__(self, shape: Shape, settings: GeneratorSettings, key: Key) -> None:
        trunk, mean, spread = jax.random.split(key, 3)
        self.trunk = _THERE[settings.network](shape, settings.width, trunk)
        self.mean = eqx.nn.Linear(settings.width, settings.latent, key=mean)
        self.spread = eqx.nn.Linear(settings.width, settings.latent, key=spread)

    def __call__(self, clip: jax.Array, noise: jax.Array) -> jax.Array:
        """Draw a latent vector for a clip, (latent,).

        Args:
            clip: Clip, (frames, bands).
            noise: Draw of N(0, I), (latent,).
        """
        signal = self.trunk(clip)
        spread = jnp.clip(self.spread(signal) - _NARROW, -8, 2)
        return self.mean(signal) + jnp.exp(spread) * noise


class Decoder(eqx.Module):
    """A network from a latent vector to a clip: the generator of all systems."""

    body: Any
    latent: int = eqx.field(static=True)
    dropout: float = eqx.field(static=True)

    def __init__(self, shape: Shape, settings: GeneratorSettings, key: Key) -> None:
        self.body = _BACK[settings.network](shape, settings.latent, settings.width, key)
        self.latent, self.dropout = settings.latent, settings.dropout

    def __call__(self, latent: jax.Array, chances: jax.Array | None = None) -> jax.Array:
        """Return a clip (frames, bands) in [−1, 1].

        Args:
            latent: Latent vector, (latent,).
            chances: Numbers from 0 to 1, (latent,); a latent number is dropped where this is below
                the decoder's dropout. None for no dropout.
        """
        if chances is not None and self.dropout:
            latent = jnp.where(chances < self.dropout, 0.0, latent / (1 - self.dropout))
        return jnp.tanh(self.body(latent))


class LatentCritic(eqx.Module):
    """A network that tells draws of N(0, I) from an encoder's latent vectors, by a logit."""

    layers: tuple[eqx.nn.Linear, ...]

    def __init__(self, settings: GeneratorSettings, key: Key) -> None:
        first, second, third = jax.random.split(key, 3)
        width = settings.critic_width
        self.layers = (
            eqx.nn.Linear(settings.latent, width, key=first),
            eqx.nn.Linear(width, width, key=second),
            eqx.nn.Linear(width, 1, key=third),
        )

    def __call__(self, latent: jax.Array) -> jax.Array:
        """Return a scalar, above 0 for a vector drawn from N(0, I)."""
        signal = latent
        for layer in self.layers[:-1]:
            signal = _leaky(layer(signal))
        return self.layers[-1](signal)[0]


class SampleCritic(eqx.Module):
    """A network that tells real clips from generated ones, by a logit from the encoder's trunk."""

    trunk: Any
    head: eqx.nn.Linear

    def __init__(self, shape: Shape, settings: GeneratorSettings, key: Key) -> None:
        trunk, head = jax.random.split(key)
        self.trunk = _THERE[settings.network](shape, settings.critic_width, trunk)
        self.head = eqx.nn.Linear(settings.critic_width, 1, key=head)

    def __call__(self, clip: jax.Array) -> jax.Array:
        """Return a scalar, above 0 for a real clip (frames, bands)."""
        return self.head(self.trunk(clip))[0]


def initialized(build: Callable[[Any], Net], generator: np.random.Generator, count: int = 0) -> Net:
    """Return networks with new weights.

    Weights are normal, of variance 1 / inputs (LeCun et al. 1998); biases are 0.

    Args:
        build: Function from a key of jax.random to a network; it is not run.
        generator: Source of the weights.
        count: Number of networks, along a first axis of all weights; 0 for one network without it.
    """

    def drawn(path: Any, leaf: Any) -> jax.Array:
        shape = (count, *leaf.shape) if count else leaf.shape
        if path[-1].name == "bias":
            return jnp.asarray(np.zeros(shape, np.float32))
        deviation = np.float32(np.sqrt(len(leaf) / leaf.size))
        return jnp.asarray(deviation * generator.standard_normal(shape, np.float32))

    networks: Net = jax.tree.map_with_path(drawn, jax.eval_shape(build, jax.random.key(0)))
    return networks


_NARROW = 2.0
"""Factor e^-2 on the initial deviations of an encoder, so that it learns to reconstruct first."""


def _leaky(signal: jax.Array) -> jax.Array:
    return jax.nn.leaky_relu(signal, 0.2)


def _channels(width: int) -> int:
    return max(1, width // 4)


def _halved(frames: int) -> int:
    """Return the number of windows of stride 2 over a number of frames."""
    return -(-frames // 2)


def _windows(signal: jax.Array) -> jax.Array:
    """Return four frames at every second place: (half the frames, 4 × channels).

    The signal is (frames, channels). A convolution is then one matrix product, which on a CPU is
    many times faster than XLA's own where each clip, or each of many networks, has its own weights
    or gradients.
    """
    frames, channels = signal.shape
    pairs = jnp.pad(signal, ((1, 1 + frames % 2), (0, 0))).reshape(-1, 2 * channels)
    return jnp.concatenate([pairs[:-1], pairs[1:]], axis=1)


def _overlapped(windows: jax.Array, frames: int) -> jax.Array:
    """Add windows of four frames where they overlap, and cut them to a number of frames.

    This is the reverse of `_windows`.
    """
    size = windows.shape[1] // 2
    pairs = jnp.pad(windows[:, :size], ((0, 1), (0, 0)))
    pairs += jnp.pad(windows[:, size:], ((1, 0), (0, 0)))
    return pairs.reshape(-1, size // 2)[1 : frames + 1]
