"""The budget of a learning phase, derived from its cost, and the defaults.

This is the one place for the defaults of the thesis's local route: code that simulates, starts,
prices or proposes a learning phase reads them here.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec

from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.learning import Budget, PhaseParameters
from earshot_protocol.privacy.calibration import largest_scale
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import Unit

BUDGETS: Mapping[Geometry, Budget] = MappingProxyType(
    {
        Geometry.EUCLIDEAN: Budget(
            clustering=1.0, selection=0.25, centroid_vote=0.5, label_vote=0.5
        ),
        # Sound needs the whole default limit of a phone: private clustering pays for every
        # dimension, from one phone's recordings alone.
        Geometry.SPHERICAL: Budget(
            clustering=2.0, selection=0.125, centroid_vote=0.25, label_vote=0.5
        ),
    }
)
"""Default budgets per recording: with two centroids published, ε = 2.5 in the plane and 3 for
sound."""
DIMENSIONS = 24
"""Dimensions in which sound is clustered, d."""
RECORDINGS = 200
"""Recordings of a phone, N: about seven a day, kept for 28 days. A phone's own ledger counts at
least `COUNTED_RECORDINGS`."""
LOCAL_CENTROIDS = 6
TOP_LOCAL_CENTROIDS = 2
TOP_GLOBAL_CENTROIDS = 10
"""Default numbers of centroids, k, k* and g*."""
CENTROID_VOTES = 3
"""Ones in a ballot of the first vote. A ballot of the second has one for each centroid that was
kept: one recording changes a ballot by at most two however many ones it may have, so a phone names
every place that it knows (docs/decisions/0042)."""

ONE_OF_THEM = (
    "give one of them; an ε of the whole phase is split like the default budget, and a budget "
    "gives the ε of each step"
)
"""Reason for refusing an ε together with a budget."""


# Simulations, forecasts and reports need the same phase repeatedly.
@functools.lru_cache(maxsize=64)
def affordable(
    parameters: PhaseParameters, epsilon: float, unit: Unit = Unit.RECORDING
) -> PhaseParameters:
    """Return the same phase with its budget scaled so that it costs at most ε, and hardly less.

    The split of the budget between the steps stays unchanged. The cost is the composed one
    (`composed_epsilon`) at the phase's own δ.

    Args:
        parameters: Parameters of the phase; only the proportions of its budget count.
        epsilon: Value of ε for the whole phase, at least 10⁻⁹.
        unit: Unit in which the phase is to cost ε.

    Raises:
        InvalidParametersError: The value of ε or δ is out of range, or δ is at most the failure
            probability of the secure sums, so that no budget fits.
    """

    def scaled(scale: float) -> PhaseParameters:
        budget = Budget(*(scale * each for each in msgspec.structs.astuple(parameters.budget)))
        return msgspec.structs.replace(parameters, budget=budget)

    def events(scale: float) -> Iterable[Event]:
        return [each.event(unit) for each in scaled(scale).plan().mechanisms.values()]

    return scaled(largest_scale(events, epsilon, parameters.delta, least=1e-7, most=1e4))
