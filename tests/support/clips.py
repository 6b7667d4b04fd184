"""Small clips for generators: bands of energy that move, between −1 and 1."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def moving_bands(count: int, shape: tuple[int, int] = (4, 6), seed: int = 0) -> NDArray[np.float32]:
    """Clips (count, *shape), each with one band that rises or falls."""
    generator = np.random.default_rng(seed)
    frames, bands = np.arange(shape[0])[:, None], np.arange(shape[1])
    start = generator.uniform(0, shape[1], (count, 1, 1))
    slope = generator.choice([-1.0, 1.0], (count, 1, 1)) * shape[1] / shape[0] / 2
    distance = bands - (start + slope * frames)
    return (2 * np.exp(-(distance**2)) - 1).astype(np.float32)
