"""Default recipes for training each kind of generator, chosen on one public speaker of digits."""

from __future__ import annotations

from dataclasses import replace

from earshot_studies.pate_aae.generators.settings import GeneratorSettings, Network

OPEN = GeneratorSettings(network=Network.CONV, latent=16, steps=2000)
"""Recipe of an autoencoder without noise."""
NOISY = replace(OPEN, width=64, critic_width=64, steps=400, rate=5e-3, critic_rate=2e-3)
"""Recipe of an autoencoder trained by noisy gradients: fewer weights, so less noise."""
JUDGED = replace(NOISY, rate=2e-3)
"""Recipe of a generator whose critic learns from noisy gradients."""
VOTED = replace(OPEN, width=64, critic_width=64, steps=600, batch=16, critic_rate=2e-3, jitter=1.0)
"""Recipe of a generator that learns from votes on `batch` samples per step. The critics' input has
much noise, because votes on samples alone teach nothing."""
START = replace(OPEN, width=64, critic_width=64)
"""Recipe of public networks that the three may start with, with the same widths."""
VOTED_STARTED = replace(VOTED, jitter=0.3)
"""Recipe of a generator that starts with public networks and learns from votes."""
_EVEN = 2.0
"""Noise at which sensitive and public clips have equal shares."""
SHARED = f"1 / (1 + (noise / {_EVEN:g})²), half of it for votes"
"""Formulas of `share` and `voted_share`, as text."""
NORM = 1.0
"""Norm to which a clip's gradient is clipped."""


def share(noise: float) -> float:
    """Return the share of sensitive clips in a step, beside the public ones of a start.

    1 / (1 + (noise / `_EVEN`)²) minimizes the squared error of a mixture of the noisy gradient and
    the exact public one, if the public one is as far off as noise of `_EVEN`.

    Args:
        noise: Standard deviation, over the norm of a clip's gradient.
    """
    return 1 / (1 + (noise / _EVEN) ** 2)


def voted_share(noise: float) -> float:
    """Return the share of votes in a step, half of `share`.

    Votes rank samples, but carry no information where there are none: the public clips keep samples
    close to sound.

    Args:
        noise: Standard deviation, over the number of teachers.
    """
    return share(noise) / 2
