"""Default recipes for training each kind of generator, chosen on one public speaker of digits."""

from __future__ import annotations

from dataclasses import replace

from earshot_studies.pate_aae.generators.settings import GeneratorSettings, Network

OPEN = GeneratorSettings(network=Network.CONV, latent=16, steps=2000)
"""Recipe of an autoencoder without noise."""
NOISY = replace(OPEN, width=64, critic_width=64, steps=400, rate=5e-3, critic_rate=2e-3)
"""Recipe of an autoencoder that learns from noisy gradients: fewer weights, so less noise."""
JUDGED = replace(NOISY, rate=2e-3)
"""Recipe of a generator whose critic learns from noisy gradients."""
VOTED = replace(OPEN, width=64, critic_width=64, steps=600, batch=16, critic_rate=2e-3, jitter=1.0)
"""Recipe of a generator that learns from votes: `batch` samples are voted on in a step. Critics see
much noise, because votes on samples alone teach nothing."""
START = replace(OPEN, width=64, critic_width=64)
"""Recipe of public networks that the three may start with, with the same widths."""
VOTED_STARTED = replace(VOTED, jitter=0.3)
"""Recipe of a generator that starts with public networks, which know where sound lies, and learns
from votes."""
_EVEN = 2.0
"""Noise with which sensitive and public clips count alike."""
SHARED = f"1 / (1 + (noise / {_EVEN:g})²), half of it for votes"
"""The formulas of `share` and `voted_share`, in words."""
NORM = 1.0
"""Norm to which a clip's gradient is clipped."""


def share(noise: float) -> float:
    """Return the share of a step that sensitive clips have beside the public ones of a start.

    A noisy gradient and an exact but foreign one are weighed like this for the least squared error
    if the foreign one is as far off as noise of `_EVEN` makes the other: 1 / (1 + (noise /
    `_EVEN`)²).

    Args:
        noise: Standard deviation, over the norm of a clip's gradient.
    """
    return 1 / (1 + (noise / _EVEN) ** 2)


def voted_share(noise: float) -> float:
    """Return the share of a step where teachers vote, half of `share`.

    Votes say which samples are better, but nothing about places without samples: the other half
    keeps samples within sound.

    Args:
        noise: Standard deviation, over the number of teachers.
    """
    return share(noise) / 2
