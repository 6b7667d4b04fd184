"""Random dropouts of simulated phones."""

from __future__ import annotations

import numpy as np

from earshot_protocol.phases.parameters import Parameters


def draw_dropouts(parameters: Parameters, seed: int) -> dict[str, tuple[int, ...]]:
    """Draw ⌊ρn⌋ phones, each gone for good from a step drawn uniformly from all steps.

    Args:
        parameters: Parameters of the phase.
        seed: Seed of the simulation.

    Returns:
        Numbers of the phones that vanish before they answer a step, ascending, by the step's name.
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
