"""How each kind of generator is trained, by default: chosen on one public speaker of digits."""

from __future__ import annotations

from dataclasses import replace

from earshot_models.generators.settings import Network, Settings

OPEN = Settings(network=Network.CONV, latent=16, steps=2000)
"""Of an autoencoder without noise."""
NOISY = replace(OPEN, width=64, critic_width=64, steps=400, rate=5e-3, critic_rate=2e-3)
"""Of an autoencoder that learns from noisy gradients: fewer weights, so less noise."""
JUDGED = replace(NOISY, rate=2e-3)
"""Of a generator whose critic learns from noisy gradients."""
VOTED = replace(OPEN, width=64, critic_width=64, steps=600, batch=16, critic_rate=2e-3, jitter=1.0)
"""Of a generator that learns from votes: `batch` samples are voted on in a step. Critics are shown
much noise, for votes on samples alone teach nothing."""
START = replace(OPEN, width=64, critic_width=64)
"""Of public networks that the three may start with: of their widths."""
VOTED_STARTED = replace(VOTED, jitter=0.3)
"""Of what starts with public networks and learns from votes: these know where sound lies."""
_EVEN = 2.0
"""Noise with which sensitive and public clips count alike."""
SHARED = f"1 / (1 + (noise / {_EVEN:g})²), half of it for votes"
"""What `share` and `voted_share` are, in words."""
NORM = 1.0
"""To which a clip's gradient is clipped."""


def share(noise: float) -> float:
    """Of a step, that sensitive clips have beside public ones of a start.

    So are a noisy gradient and an exact but foreign one weighed for the least squared error, if the
    foreign one is as far off as noise of `_EVEN` makes the other: 1 / (1 + (noise / `_EVEN`)²).

    Args:
        noise: deviation, over the norm of a clip's gradient.
    """
    return 1 / (1 + (noise / _EVEN) ** 2)


def voted_share(noise: float) -> float:
    """The same where teachers vote, half as large.

    Votes say which samples are better, and nothing of where there are none: what keeps samples
    among sound is the other half.

    Args:
        noise: deviation, over the number of teachers.
    """
    return share(noise) / 2
