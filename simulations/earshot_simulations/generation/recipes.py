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
NORM = 1.0
"""To which a clip's gradient is clipped."""
