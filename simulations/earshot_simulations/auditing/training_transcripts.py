"""Private trainings of generators, watched from the place where they meet clips to their end.

Each training gets its noisy gradients from `NoisyGradients.at` and all else of its generator must
follow from these. So they are noted in a training on some clips and handed to a training on others:
whatever of the clips gets past them makes the two generators differ.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from earshot_models.generators import dp_gan, origin, private_autoencoder, private_training
from earshot_models.generators.clips import Clips
from earshot_models.generators.generator import Generator
from earshot_models.generators.private_training import NoisyGradients, PrivateTraining
from earshot_models.generators.settings import Settings
from earshot_simulations.auditing.watching import replaced

SHAPE = (6, 5)
STEPS = 3
_NO_NOISE = 1e-12
_ORIGIN = origin.private(1.0, 1e-5, "clip")
_SETTINGS = Settings(width=8, latent=4, critic_width=8, batch=4)
TRAINING = PrivateTraining(1.0, 0.5, 0.01, STEPS)
"""With a norm that is shorter than any clip's gradient."""


@dataclass(frozen=True)
class System:
    """A private training.

    Attributes:
        name: in words.
        module: that its noisy gradients are found in.
        train: clips and seed to a generator.
    """

    name: str
    module: Any
    train: Callable[[Clips, int], Generator]


SYSTEMS = (
    System(
        "adversarial autoencoder",
        private_autoencoder,
        lambda clips, seed: private_autoencoder.train_private_autoencoder(
            clips, _SETTINGS, TRAINING, _ORIGIN, seed=seed
        ),
    ),
    System(
        "DP-GAN",
        dp_gan,
        lambda clips, seed: dp_gan.train_dp_gan(clips, _SETTINGS, TRAINING, _ORIGIN, seed=seed),
    ),
)


def clips_of(seed: int) -> Clips:
    """Some at random, and such as no sound is."""
    generator = np.random.default_rng(seed)
    rows = generator.uniform(-1, 1, (9, *SHAPE)).astype(np.float32)
    rows[0], rows[1], rows[2] = 1.0, -1.0, 0.0
    return rows


def longest_gradient(system: System, seed: int) -> float:
    """The longest that a clip's part in a sum of gradients is, over steps of a real training.

    Each clip is alone in its batch, and there is hardly any noise.
    """
    longest = 0.0
    clips = clips_of(seed)

    class Measuring(NoisyGradients):
        def __init__(self, given: Clips, training: PrivateTraining, *others: Any) -> None:
            super().__init__(given, training, *others)
            alone = replace(training, noise=_NO_NOISE, rate=1.0)
            self.each = [
                NoisyGradients(given[place : place + 1], alone, *others)
                for place in range(len(given))
            ]

        def at(self, number: int, moving: Any, still: Any) -> Any:
            nonlocal longest
            for one in self.each:
                longest = max(longest, _length(one.at(number, moving, still)))
            return super().at(number, moving, still)

    with replaced(system.module, NoisyGradients=Measuring), _noise_of_numpy():
        system.train(clips, seed)
    return longest


def depends_on_noisy_gradients_alone(system: System, seed: int) -> bool:
    """Whether a generator follows from noisy gradients, and from nothing else of the clips."""
    with noted(system) as gradients, _noise_of_numpy():
        first = system.train(clips_of(seed), seed)
    others = clips_of(seed + 1)[::-1].copy()
    with repeated(system, gradients):
        second = system.train(others, seed)
    alike = np.array_equal(first.samples(16, seed), second.samples(16, seed))
    return alike and not gradients


@contextlib.contextmanager
def noted(system: System) -> Iterator[list[Any]]:
    """The noisy gradients of a training that runs meanwhile, in their order."""
    gradients: list[Any] = []

    class Noting(NoisyGradients):
        def at(self, number: int, moving: Any, still: Any) -> Any:
            gradients.append(super().at(number, moving, still))
            return gradients[-1]

    with replaced(system.module, NoisyGradients=Noting):
        yield gradients


@contextlib.contextmanager
def repeated(system: System, gradients: list[Any]) -> Iterator[None]:
    """The same gradients for a training that runs meanwhile, whatever it learns from."""

    class Repeating(NoisyGradients):
        def at(self, number: int, moving: Any, still: Any) -> Any:
            return gradients.pop(0)

    with replaced(system.module, NoisyGradients=Repeating):
        yield


@contextlib.contextmanager
def _noise_of_numpy() -> Iterator[None]:
    """Noise that takes seconds less to compile; what real noise is like is seen in real steps."""
    generator = np.random.default_rng(0)

    def noised(total: Any, key: Any, deviation: float, expected: float) -> Any:
        def one(leaf: Any) -> Any:
            noise = deviation * generator.standard_normal(leaf.shape)
            return np.asarray((np.asarray(leaf) + noise) / expected, dtype=np.float32)

        return jax.tree.map(one, total)

    with replaced(private_training, noised=noised):
        yield


def _length(gradient: Any) -> float:
    leaves = [np.asarray(leaf, dtype=np.float64).ravel() for leaf in jax.tree.leaves(gradient)]
    return float(np.linalg.norm(np.concatenate(leaves)))
