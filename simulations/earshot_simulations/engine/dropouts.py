"""Which phones vanish, and in which step."""

from __future__ import annotations

import math

import numpy as np

from earshot_protocol.phase import STEPS, Step


def draw_dropouts(phones: int, dropout: float, seed: int) -> dict[Step, tuple[int, ...]]:
    """⌊ρn⌋ phones, each gone for good from a step drawn uniformly from all steps.

    Args:
        phones: n.
        dropout: ρ.
        seed: of the simulation.

    Returns:
        Per step, the phones that vanish before they answer it, ascending.
    """
    generator = np.random.default_rng([seed, 0xD])
    total = math.floor(round(dropout * phones, 6))
    vanishing = generator.choice(phones, total, replace=False)
    steps = generator.integers(len(STEPS), size=total)
    return {
        step: tuple(sorted(vanishing[steps == place].tolist())) for place, step in enumerate(STEPS)
    }
