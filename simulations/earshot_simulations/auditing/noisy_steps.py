"""Real steps of private training, watched: the sums of clipped gradients and noise that it makes.

The steps are `earshot_models.generators.private_training`'s own, with batches, clipping and noise.
Only the loss is ours: its gradient is ten times the clip, which tells the most. Each clip has a
pixel of its own, so one step is one trial for each of many clips; empty ones are missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from earshot_models.generators import private_training
from earshot_models.generators.clips import Clips
from earshot_models.generators.private_training import NoisyGradients, PrivateTraining
from earshot_models.generators.randomness import Randomness, secret_of
from earshot_models.generators.settings import Settings
from earshot_simulations.auditing.laws import Numbers

STEEP = 10.0
"""By how much gradients are longer than a clip of one full pixel."""


@dataclass(frozen=True)
class Steps:
    """What many clips leave in some steps of real trainings.

    Attributes:
        there: what is found at the pixels of clips that are in the data, (trials, steps), in norms
            that gradients are clipped to.
        missing: the same at pixels of clips that are not.
    """

    there: Numbers
    missing: Numbers


def steep(moving: Any, clip: Any, draws: Any, still: Any, settings: Settings) -> Any:
    """A loss whose gradient is the clip, ten times."""
    del draws, still, settings
    return STEEP * (moving * clip).sum()


def steps(training: PrivateTraining, clips: int, there: int, trials: int, seed: int) -> Steps:
    """Trainings of so many steps, some of whose clips are there and the others empty.

    Args:
        training: audited.
        clips: of each training.
        there: how many of them are no empty ones, at most half.
        trials: on each of two neighbours, at least.
        seed: of the trainings.
    """
    rows = np.eye(clips, dtype=np.float32).reshape(clips, 1, clips)
    rows[there:] = 0.0  # an empty clip has no gradient
    trainings = -(-trials // there)
    found = np.stack(
        [transcript(training, rows, seed + number) for number in range(trainings)]
    )  # (trainings, steps, clips)
    each = np.moveaxis(found, 2, 1)
    return Steps(
        each[:, :there].reshape(-1, training.steps),
        each[:, there : 2 * there].reshape(-1, training.steps),
    )


def transcript(training: PrivateTraining, clips: Clips, seed: int) -> Numbers:
    """All noisy sums of one training, (steps, pixels), in norms that gradients are clipped to."""
    gradients = _gradients(training, clips, seed)
    moving = np.zeros(clips.shape[1:], dtype=np.float32)
    expected = training.rate * len(clips)
    sums = [
        np.asarray(gradients.at(number, moving, ()), dtype=np.float64).ravel()
        for number in range(training.steps)
    ]
    return np.stack(sums) * expected / training.norm


def batches(training: PrivateTraining, clips: int, seed: int) -> Numbers:
    """Which clips were in the batch of each step, 0 or 1, (steps, clips)."""
    gradients = _gradients(training, np.zeros((clips, 1, 1), np.float32), seed)
    found = np.zeros((training.steps, clips))
    for number in range(training.steps):
        for places in gradients.batches(number):
            np.add.at(found[number], places[places >= 0], 1)
    return found


def _gradients(training: PrivateTraining, clips: Clips, seed: int) -> NoisyGradients:
    return private_training.NoisyGradients(
        clips, training, steep, _no_draws, Settings(), Randomness(secret_of(seed))
    )


def _no_draws(generator: np.random.Generator, count: int, number: int) -> Any:
    del generator, number
    return np.zeros((count, 1), dtype=np.float32)
