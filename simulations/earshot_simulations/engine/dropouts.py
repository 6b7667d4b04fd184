"""Which phones vanish, and in which step."""

from __future__ import annotations

import numpy as np

from earshot_protocol.phases.parameters import Parameters


def draw_dropouts(parameters: Parameters, seed: int) -> dict[str, tuple[int, ...]]:
    """⌊ρn⌋ phones, each gone for good from a step drawn uniformly from all steps.

    Args:
        parameters: of the phase.
        seed: of the simulation.

    Returns:
        By the name of the step, the phones that vanish before they answer it, ascending.
    """
    generator = np.random.default_rng([seed, 0xD])
    total = parameters.phones - parameters.least_survivors
    vanishing = generator.choice(parameters.phones, total, replace=False)
    steps = parameters.plan().steps
    drawn = generator.integers(len(steps), size=total)
    return {
        step.name: tuple(sorted(vanishing[drawn == place].tolist()))
        for place, step in enumerate(steps)
    }
