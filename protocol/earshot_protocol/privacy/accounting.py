"""What a phase costs, step by step, in both units of privacy.

The table uses basic composition (thesis Theorem 8.3): a view that anyone can check by hand.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from earshot_protocol.geometry import Geometry
from earshot_protocol.phase import Parameters, StatisticsParameters
from earshot_protocol.privacy.mechanisms import (
    BallotSum,
    Cost,
    GaussianLloyd,
    LaplaceLloyd,
    Mechanism,
    NoisyMax,
    Unit,
)

CLUSTER = "cluster"
SELECT = "select"
CENTROID_VOTE = "centroid vote"
LABEL_VOTE = "label vote"
HISTOGRAM = "histogram"


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One release of one step, counted in one unit."""

    step: str
    unit: Unit
    epsilon: float
    delta: float
    mechanism: str


def releases(step: str, mechanism: Mechanism) -> tuple[Release, ...]:
    """What one step costs, in each unit."""
    costs = ((unit, mechanism.cost(unit)) for unit in Unit)
    return tuple(
        Release(step, unit, cost.epsilon, cost.delta, mechanism.name) for unit, cost in costs
    )


def total(spent: Iterable[Release]) -> dict[Unit, Cost]:
    """The sum of all releases per unit (basic composition); δ is capped at 1."""
    spent = tuple(spent)
    return {
        unit: Cost(
            sum(release.epsilon for release in spent if release.unit is unit),
            min(1.0, sum(release.delta for release in spent if release.unit is unit)),
        )
        for unit in Unit
    }


def phase_mechanisms(parameters: Parameters) -> dict[str, Mechanism]:
    """The mechanism of each private step of a phase, in order, by the step's name."""
    if isinstance(parameters, StatisticsParameters):
        # A phone counts its newest contacts only, so one more recording may displace another: the
        # histogram moves by at most 2, and by `contacts` with the whole phone, as a ballot does.
        return {
            HISTOGRAM: BallotSum(
                parameters.epsilon, parameters.contacts, parameters.honest_survivors
            )
        }
    budget, recordings = parameters.budget, parameters.recordings
    clustering: Mechanism = (
        GaussianLloyd(budget.clustering, parameters.delta, recordings)
        if parameters.geometry is Geometry.SPHERICAL
        else LaplaceLloyd(budget.clustering, recordings)
    )
    return {
        CLUSTER: clustering,
        SELECT: NoisyMax(budget.selection, parameters.top_local_centroids, recordings),
        CENTROID_VOTE: BallotSum(
            budget.centroid_vote, parameters.centroid_votes, parameters.honest_survivors
        ),
        LABEL_VOTE: BallotSum(
            budget.label_vote, parameters.label_votes, parameters.honest_survivors
        ),
    }


def phase_releases(parameters: Parameters) -> tuple[Release, ...]:
    """Every release that a phase under these parameters makes."""
    return tuple(
        release
        for step, mechanism in phase_mechanisms(parameters).items()
        for release in releases(step, mechanism)
    )
