"""Public clips beside sensitive ones, and the share of each in a step of a private training.

Public clips need no noise, so their gradients are exact. They are added after the noise, as
post-processing: they depend on the sensitive clips only through weights that came from noisy sums.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from earshot_studies.pate_aae.generators.private_training import Loss
from earshot_studies.pate_aae.generators.randomness import Randomness
from earshot_studies.pate_aae.generators.settings import GeneratorSettings
from earshot_studies.pate_aae.generators.start import Start


class Beside:
    """Mean gradients of a start's clips, and their mixture with others.

    Args:
        start: Start whose clips and share are used; without one, other gradients remain unchanged.
        loss: Loss at module level, see `private_training.Loss`.
        draws: Function that makes a loss's random draws, as in `private_training.NoisyGradients`.
        batch: Public clips in a step.
        settings: Settings passed to the loss.
        randomness: Source of batches and draws.
    """

    def __init__(
        self,
        start: Start[Any] | None,
        loss: Loss,
        draws: Callable[[np.random.Generator, int, int], Any],
        batch: int,
        settings: GeneratorSettings,
        randomness: Randomness,
    ) -> None:
        self._start, self._loss, self._draws = start, loss, draws
        self._batch, self._settings, self._randomness = batch, settings, randomness

    def mixed(self, number: int, gradients: Any, moving: Any, still: Any, lesson: int = 0) -> Any:
        """Return the gradients of a step: `share` of the given ones, the rest of public ones.

        Args:
            number: Number of the step.
            gradients: Gradients of sensitive clips, through noise or votes.
            moving: Networks that the gradients belong to.
            still: Other values that the loss depends on.
            lesson: Number of the lesson within the step, each of which has a batch of its own.
        """
        if self._start is None:
            return gradients
        generator = self._randomness.generator("beside", number, lesson)
        places = generator.integers(0, len(self._start.clips), self._batch)
        clips, own = self._start.clips[places], self._draws(generator, self._batch, number)
        return _mixed(
            gradients, moving, clips, own, still, self._start.share, self._loss, self._settings
        )


@functools.partial(jax.jit, static_argnames=("loss", "settings"))
def _mixed(
    gradients: Any,
    moving: Any,
    clips: Any,
    own: Any,
    still: Any,
    share: Any,
    loss: Loss,
    settings: GeneratorSettings,
) -> Any:
    each = jax.vmap(functools.partial(loss, settings=settings), (None, 0, 0, None))
    public = jax.grad(lambda networks: jnp.mean(each(networks, clips, own, still)))(moving)
    return jax.tree.map(lambda one, other: share * one + (1 - share) * other, gradients, public)
