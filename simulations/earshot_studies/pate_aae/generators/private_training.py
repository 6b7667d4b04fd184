"""Training on sensitive clips by noisy gradients: DP-SGD (Abadi et al., CCS 2016).

In each step every clip is in the batch with a fixed probability, independently; its gradient of all
trained networks is clipped as one vector; Gaussian noise is added to the sum. Clipping, batches
and noise are JAX Privacy's (`clipping.clipped_grad`, `batch_selection`, `noise_addition`). All uses
of the noisy sum in a step, and all that follows, are post-processing: a training costs what `steps`
Gaussian mechanisms of multiplier `noise` cost under Poisson sampling at `rate`, for neighbours of
which one has one clip more; the number of clips is public. Numbers in a clip's gradient that are
not finite count as 0 before clipping (`nan_safe`), so no clip can end a training.

There are two limits. Noise is floating-point: it is drawn in 64 bits, because JAX's of 32 bits ends
at 5.2 deviations, beyond which an outlier could be seen; but the last bits of a sum of
floating-point numbers are not protected (Mironov, CCS 2012). And it is threefry's, whose keys have
64 bits; each step has its own, from 256 secret bits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax_privacy import batch_selection, clipping, noise_addition

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_studies.pate_aae.generators.clips import Clips
from earshot_studies.pate_aae.generators.origin import Origin, OriginKind
from earshot_studies.pate_aae.generators.randomness import Randomness
from earshot_studies.pate_aae.generators.settings import GeneratorSettings

_WIDE = 4
"""Room of one call of a compiled program, in deviations above a batch's mean size."""

Loss = Callable[..., jax.Array]
"""Loss of one clip, a scalar: `loss(moving, clip, draws, still, settings=…)`."""


@dataclass(frozen=True)
class PrivateTraining:
    """Everything on which the cost of a private training depends.

    Attributes:
        noise: Deviation of the noise on a sum of gradients, over the norm that each is clipped to.
        rate: Probability that a clip is in a batch.
        norm: Norm to which a clip's gradient is clipped.
        steps: Number of batches, fixed in advance as the budget depends on it.

    Raises:
        InvalidParametersError: A number is out of range.
    """

    noise: float
    rate: float
    norm: float
    steps: int

    def __post_init__(self) -> None:
        checks.positive("noise", self.noise)
        checks.positive("rate", self.rate, 1)
        checks.positive("norm", self.norm)
        checks.whole("steps", self.steps)


class NoisyGradients:
    """Mean gradients of random batches of sensitive clips, with noise.

    Args:
        clips: Clips, (clips, frames, bands), checked.
        training: Rate, norm and noise.
        loss: Loss at module level, as programs are cached by it; see `Loss`.
        draws: Function that makes a loss's random draws, from a generator, a number of clips and a
            step's number.
        settings: Settings passed to the loss.
        randomness: Source of batches, draws and noise.
    """

    def __init__(
        self,
        clips: Clips,
        training: PrivateTraining,
        loss: Loss,
        draws: Callable[[np.random.Generator, int, int], Any],
        settings: GeneratorSettings,
        randomness: Randomness,
    ) -> None:
        self._clips = clips
        self._training = training
        self._draws = draws
        self._randomness = randomness
        self._expected = training.rate * len(clips)
        spread = math.sqrt(self._expected * (1 - training.rate))
        self._room = min(len(clips), math.ceil(self._expected + _WIDE * spread))
        self._clipped, sensitivity = _clipped_sum(loss, settings, training.norm)
        self._deviation = training.noise * sensitivity

    def at(self, number: int, moving: Any, still: Any) -> Any:
        """Return the gradient of a step: clipped gradients' sum and noise, over the expected batch.

        Args:
            number: Number of the step, each of which has its own batch, draws and noise.
            moving: Networks that the gradient belongs to.
            still: Other values that the loss depends on; they must be published or derived from
                noisy gradients, as `moving` must.
        """
        batches = self.batches(number)
        generator = self._randomness.generator("draws", number)
        total: Any = None
        for places in batches:
            part = self._clipped(
                moving, self._clips[places], self._draws(generator, len(places), number), still,
                places < 0,
            )  # fmt: skip
            total = part if total is None else jax.tree.map(jnp.add, total, part)
        key = self._randomness.key("noise", number)
        return noised(total, key, self._deviation, self._expected)

    def batches(self, number: int) -> list[np.ndarray[Any, Any]]:
        """Return a step's batch as indices of clips, with −1 for padding.

        It is nearly always one array, and all arrays have the same length. A batch is never
        truncated, because the accounting assumes Poisson sampling.
        """
        sampling = batch_selection.CyclicPoissonSampling(self._training.rate, iterations=1)
        generator = self._randomness.generator("batch", number)
        (places,) = sampling.batch_iterator(len(self._clips), generator)
        parts: list[np.ndarray[Any, Any]] = batch_selection.split_and_pad_global_batch(
            places, self._room
        )
        return parts


def noised(total: Any, key: Any, deviation: float, expected: float) -> Any:
    """Return (sum + noise) / expected, float32.

    Args:
        total: Sums of clipped gradients, arrays in any nesting.
        key: Key of the noise, used once.
        deviation: Deviation of the noise on each number.
        expected: Clips in a batch on average.
    """
    with jax.enable_x64(True):
        wide = _noise_added(total, key, deviation)
        return jax.tree.map(lambda leaf: (leaf / expected).astype(jnp.float32), wide)


@jax.jit
def _noise_added(total: Any, key: Any, deviation: Any) -> Any:
    """Add the noise in 64 bits."""
    wide = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), total)
    privatizer = noise_addition.gaussian_privatizer(
        stddev=deviation, prng_key=key, dtype=jnp.float64
    )
    noisy, _ = privatizer.update(wide, privatizer.init(wide))
    return noisy


@functools.lru_cache(maxsize=64)
def _clipped_sum(loss: Loss, settings: GeneratorSettings, norm: float) -> tuple[Any, float]:
    """Return a compiled program for the sum of clipped gradients, and its sensitivity to a clip."""
    clipped = clipping.clipped_grad(
        functools.partial(loss, settings=settings), l2_clip_norm=norm, batch_argnums=(1, 2),
        keep_batch_dim=False, nan_safe=True,
    )  # fmt: skip

    @jax.jit
    def program(moving: Any, clips: Any, draws: Any, still: Any, padding: Any) -> Any:
        return clipped(moving, clips, draws, still, is_padding_example=padding)

    return program, float(clipped.sensitivity())


def about_cost(origin: Origin) -> dict[str, Any]:
    """Return the cost of a training on sensitive clips, for its checkpoint.

    Raises:
        InvalidParametersError: The origin is not private.
    """
    if origin.kind is not OriginKind.DP:
        raise InvalidParametersError(
            "origin: must be private, with the epsilon, delta and unit that this training costs"
        )
    return {"epsilon": origin.epsilon, "delta": origin.delta, "unit": origin.unit}
