"""The noise of a statistics phase, derived from its cost, and the defaults."""

from __future__ import annotations

import msgspec

from earshot_protocol.phases.statistics import StatisticsParameters
from earshot_protocol.privacy.calibration import noise_multipliers

EPSILON = 1.0
"""Cost of a phase, per phone."""
CONTACTS = 8
"""Length to which phones project their counts, B."""


def affordable(parameters: StatisticsParameters, epsilon: float) -> StatisticsParameters:
    """Return the same phase with the least noise with which it is (ε, δ)-private, per phone.

    Args:
        parameters: Parameters of the phase; its noise does not count.
        epsilon: Value of ε for the phase.

    Raises:
        InvalidParametersError: A value is out of range, or the secure sum uses up δ.
    """
    (noise,) = noise_multipliers(
        epsilon,
        parameters.delta,
        [1.0],
        [parameters.entries],
        survivors=parameters.summation.survivors,
    )
    return msgspec.structs.replace(parameters, noise=noise)
