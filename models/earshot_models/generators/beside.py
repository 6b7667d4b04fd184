"""Public clips beside sensitive ones: what each has in a step of a private training.

Public clips need no noise, so their gradients are what they are. They are added after the noise, as
post-processing: they meet nothing of the sensitive clips but weights that came of noisy sums.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from earshot_models.generators.private_training import Loss
from earshot_models.generators.randomness import Randomness
from earshot_models.generators.settings import Settings
from earshot_models.generators.start import Start


class Beside:
    """Mean gradients of a start's clips, and their mixture with others.

    Args:
        start: whose clips and share count; without one, others stay as they are.
        loss: at module level, see `private_training.Loss`.
        draws: what a loss is random by, as in `private_training.NoisyGradients`.
        batch: public clips in a step.
        settings: handed to the loss.
        randomness: of batches and draws.
    """

    def __init__(
        self,
        start: Start[Any] | None,
        loss: Loss,
        draws: Callable[[np.random.Generator, int, int], Any],
        batch: int,
        settings: Settings,
        randomness: Randomness,
    ) -> None:
        self._start, self._loss, self._draws = start, loss, draws
        self._batch, self._settings, self._randomness = batch, settings, randomness

    def mixed(self, number: int, gradients: Any, moving: Any, still: Any, lesson: int = 0) -> Any:
        """What a step moves along: `share` of the given gradients, the rest of public ones.

        Args:
            number: of the step.
            gradients: of sensitive clips, through noise or votes.
            moving: networks that they are of.
            still: whatever else the loss looks at.
            lesson: which of a step's several, each with a batch of its own.
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
    settings: Settings,
) -> Any:
    each = jax.vmap(functools.partial(loss, settings=settings), (None, 0, 0, None))
    public = jax.grad(lambda networks: jnp.mean(each(networks, clips, own, still)))(moving)
    return jax.tree.map(lambda one, other: share * one + (1 - share) * other, gradients, public)
