"""A trained generator of clips."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from numpy.typing import NDArray

from earshot_protocol import checks
from earshot_studies.pate_aae.generators.networks import Decoder, Shape
from earshot_studies.pate_aae.generators.origin import Origin
from earshot_studies.pate_aae.generators.settings import GeneratorSettings

_AT_ONCE = 256
"""Samples per step, fixed so that one compiled program serves all counts."""


@dataclass(frozen=True)
class Generator:
    """A trained decoder and its origin.

    Attributes:
        decoder: Network from a latent vector to a clip.
        shape: Frames and bands of a clip.
        settings: Settings of the network and its training.
        origin: Sound that the generator learned from, and the privacy of its samples.
    """

    decoder: Decoder
    shape: Shape
    settings: GeneratorSettings
    origin: Origin

    def samples(self, count: int, seed: int) -> NDArray[np.float32]:
        """Make clips from latent vectors of N(0, I).

        Args:
            count: Number of clips; the first clips do not depend on it.
            seed: Seed of the latent vectors, at least 0.

        Returns:
            float32 (count, frames, bands) in [−1, 1].

        Raises:
            InvalidParametersError: The count or the seed is out of range.
        """
        checks.whole("count", count, 0)
        checks.whole("seed", seed, 0)
        found = np.empty((count, *self.shape), dtype=np.float32)
        for block, start in enumerate(range(0, count, _AT_ONCE)):
            own = np.random.default_rng([seed, block])
            latents = own.standard_normal((_AT_ONCE, self.decoder.latent), np.float32)
            clips = np.asarray(_decoded(self.decoder, latents))
            found[start : start + _AT_ONCE] = clips[: count - start]
        return found


@jax.jit
def _decoded(decoder: Decoder, latents: Any) -> jax.Array:
    return jax.vmap(decoder)(latents)
