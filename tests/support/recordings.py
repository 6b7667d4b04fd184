"""What a phone in a test has heard: a second of noise, or points in a plane of embeddings."""

from __future__ import annotations

import numpy as np

from earshot_client.encoder import default_encoder, rate_of

RATE = rate_of(default_encoder())
NOISE = np.random.default_rng(1).normal(0, 0.1, RATE)
POINTS = np.array([[-0.5, 0.1], [-0.4, 0], [-0.6, 0], [0.5, 0.1], [0.4, 0]], dtype=np.float32)
CHOICES = ("tram", "bus", None, "garden", "park")
"""The choice of each point in a poll; for the classes bus and park, tram and garden are choices."""
