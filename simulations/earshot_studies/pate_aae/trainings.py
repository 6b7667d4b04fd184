"""Recordings of real private trainings, for audits of their noisy gradients.

The steps are those of `generators.private_training`, with its batches, clipping and noise. Audits
of single steps use a loss whose gradient is ten times the clip, so that clipping always applies.
Each clip has its own pixel, so one step is one trial for each of many clips; an empty clip is an
absent one. Whole trainings of generators may depend on clips only through `NoisyGradients.at`. To
test this, its results are recorded in a training on some clips and replayed in a training on
others: any other dependence makes the two generators differ.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import jax
import numpy as np

from earshot_protocol.arrays import Numbers
from earshot_simulations.auditing.watching import replaced
from earshot_studies.pate_aae.generators import (
    dp_gan,
    origin,
    private_autoencoder,
    private_training,
)
from earshot_studies.pate_aae.generators.clips import Clips
from earshot_studies.pate_aae.generators.generator import Generator
from earshot_studies.pate_aae.generators.private_training import NoisyGradients, PrivateTraining
from earshot_studies.pate_aae.generators.randomness import Randomness, secret_of
from earshot_studies.pate_aae.generators.settings import GeneratorSettings

STEEP = 10.0
"""Norm of the gradient of a clip of one full pixel."""
SHAPE = (6, 5)
STEPS = 3
_NO_NOISE = 1e-12
_ORIGIN = origin.private(1.0, 1e-5, "clip")
_SETTINGS = GeneratorSettings(width=8, latent=4, critic_width=8, batch=4)
TRAINING = PrivateTraining(1.0, 0.5, 0.01, STEPS)
"""Training with a norm that is shorter than any clip's gradient."""


@dataclass(frozen=True)
class Parts:
    """Parts of a private training; others than the product's own are planted faults.

    Attributes:
        gradients: Type that makes noisy gradients.
        randomness: Type of its randomness.
        training: Function from the training that is accounted for to the one that runs.
    """

    gradients: type[NoisyGradients] = NoisyGradients
    randomness: type[Randomness] = Randomness
    training: Callable[[PrivateTraining], PrivateTraining] = lambda own: own

    def of(self, training: PrivateTraining, clips: Clips, seed: int) -> NoisyGradients:
        """Return the noisy gradients of steep losses."""
        own = self.randomness(secret_of(seed))
        running = self.training(training)
        return self.gradients(clips, running, steep, _no_draws, GeneratorSettings(), own)


SOUND = Parts()


@dataclass(frozen=True)
class Steps:
    """Traces of many clips in some steps of real trainings.

    Attributes:
        there: Values at the pixels of clips that are in the data, (trials, steps), in multiples of
            the clipping norm.
        missing: Values at pixels of clips that are not in the data, likewise.
    """

    there: Numbers
    missing: Numbers


def steep(moving: Any, clip: Any, draws: Any, still: Any, settings: GeneratorSettings) -> Any:
    """Return a loss whose gradient is the clip, ten times."""
    del draws, still, settings
    return STEEP * (moving * clip).sum()


def steps(
    training: PrivateTraining, clips: int, there: int, trials: int, seed: int, parts: Parts = SOUND
) -> Steps:
    """Run the steps of trainings in which some clips are present and the others empty.

    Args:
        training: Training to audit.
        clips: Clips of each training.
        there: Number of clips that are not empty, at most half.
        trials: Trials on each of two neighbours, at least.
        seed: Seed of the trainings.
        parts: Parts of the training.
    """
    rows = np.eye(clips, dtype=np.float32).reshape(clips, 1, clips)
    rows[there:] = 0.0  # an empty clip has no gradient
    trainings = -(-trials // there)
    found = np.stack(
        [transcript(training, rows, seed + number, parts) for number in range(trainings)]
    )  # (trainings, steps, clips)
    each = np.moveaxis(found, 2, 1)
    return Steps(
        each[:, :there].reshape(-1, training.steps),
        each[:, there : 2 * there].reshape(-1, training.steps),
    )


def transcript(training: PrivateTraining, clips: Clips, seed: int, parts: Parts = SOUND) -> Numbers:
    """Return all noisy sums of one training, (steps, pixels), in multiples of the norm."""
    gradients = parts.of(training, clips, seed)
    moving = np.zeros(clips.shape[1:], dtype=np.float32)
    expected = training.rate * len(clips)
    sums = [
        np.asarray(gradients.at(number, moving, ()), dtype=np.float64).ravel()
        for number in range(training.steps)
    ]
    return np.stack(sums) * expected / training.norm


def batches(training: PrivateTraining, clips: int, seed: int, parts: Parts = SOUND) -> Numbers:
    """Return whether each clip is in the batch of each step, 0 or 1, (steps, clips)."""
    gradients = parts.of(training, np.zeros((clips, 1, 1), np.float32), seed)
    found = np.zeros((training.steps, clips))
    for number in range(training.steps):
        for places in gradients.batches(number):
            np.add.at(found[number], places[places >= 0], 1)
    return found


def _no_draws(generator: np.random.Generator, count: int, number: int) -> Any:
    del generator, number
    return np.zeros((count, 1), dtype=np.float32)


@dataclass(frozen=True)
class PrivateSystem:
    """A private training of a generator.

    Attributes:
        name: Name of the system.
        module: Module that looks up `NoisyGradients`.
        train: Function from clips and a seed to a generator.
    """

    name: str
    module: Any
    train: Callable[[Clips, int], Generator]


SYSTEMS = (
    PrivateSystem(
        "adversarial autoencoder",
        private_autoencoder,
        lambda clips, seed: private_autoencoder.train_private_autoencoder(
            clips, _SETTINGS, TRAINING, _ORIGIN, seed=seed
        ),
    ),
    PrivateSystem(
        "DP-GAN",
        dp_gan,
        lambda clips, seed: dp_gan.train_dp_gan(clips, _SETTINGS, TRAINING, _ORIGIN, seed=seed),
    ),
)


def longest_gradient(system: PrivateSystem, seed: int) -> float:
    """Return the largest norm of a clip's part in a sum of gradients, over steps of a training.

    Each clip is alone in its batch, with almost no noise.
    """
    longest = 0.0

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
        system.train(_clips(seed), seed)
    return longest


def depends_on_noisy_gradients_alone(system: PrivateSystem, seed: int) -> bool:
    """Return whether a generator depends on clips only through noisy gradients."""
    gradients: list[Any] = []

    class Noting(NoisyGradients):
        def at(self, number: int, moving: Any, still: Any) -> Any:
            gradients.append(super().at(number, moving, still))
            return gradients[-1]

    class Repeating(NoisyGradients):
        def at(self, number: int, moving: Any, still: Any) -> Any:
            return gradients.pop(0)

    with replaced(system.module, NoisyGradients=Noting), _noise_of_numpy():
        first = system.train(_clips(seed), seed)
    others = _clips(seed + 1)[::-1].copy()
    with replaced(system.module, NoisyGradients=Repeating):
        second = system.train(others, seed)
    alike = np.array_equal(first.samples(16, seed), second.samples(16, seed))
    return alike and not gradients


def _clips(seed: int) -> Clips:
    """Return random clips, and constant ones."""
    generator = np.random.default_rng(seed)
    rows = generator.uniform(-1, 1, (9, *SHAPE)).astype(np.float32)
    rows[0], rows[1], rows[2] = 1.0, -1.0, 0.0
    return rows


@contextlib.contextmanager
def _noise_of_numpy() -> Iterator[None]:
    """Replace JAX's noise, which takes seconds to compile; `transcript` has the real one."""
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
