"""What a phase makes of its phones' answers: centroids, votes and counts, and the next sum.

A function here changes a snapshot and says which secure sum follows; steps, deadlines and stores
are the coordinator's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidParametersError, TooManyDropoutsError, WrongStateError
from earshot_protocol.messages import Matrix
from earshot_protocol.phase import Parameters, PhaseParameters, StatisticsParameters, Step
from earshot_protocol.privacy import accounting
from earshot_protocol.privacy.mechanisms import BallotSum, Unit
from earshot_protocol.privacy.noise import LARGEST_SHARED_SCALE
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.voting import ballots
from earshot_protocol.voting.sums import vote_sum
from earshot_server.discovery.interface import Discovery
from earshot_server.phases.snapshot import Snapshot

Totals = npt.NDArray[np.int64]


class Opens(NamedTuple):
    """A secure sum that is to follow: the vote that it adds up, and the shape of a ballot."""

    vote: str
    shape: tuple[int, ...]

    def parameters(self, parameters: Parameters) -> SumParameters:
        """Of the sum, under those of its phase.

        Raises:
            InvalidParametersError: no safe graph exists for these fractions and this many phones.
        """
        return vote_sum(parameters, _ballots_of(parameters, self.vote), self.shape)


def first(parameters: Parameters) -> Opens | None:
    """The sum that a phase begins with; None if it begins with local centroids."""
    if isinstance(parameters, StatisticsParameters):
        return Opens(accounting.HISTOGRAM, (len(parameters.labels),))
    return None


def discover(state: Snapshot, published: Mapping[int, Matrix], discovery: Discovery) -> Opens:
    """Step 6 of Algorithm 1: cluster what phones published; opens the first vote.

    Raises:
        TooManyDropoutsError: fewer than (1 − ρ)n phones published.
        EarshotError: what the discovery raises where there is nothing to find.
    """
    parameters = state.learning
    least = least_answers(parameters)
    if len(published) < least:
        raise TooManyDropoutsError(
            f"{len(published)} of {parameters.phones} phones published centroids; "
            f"at least {least} are needed"
        )
    points = np.concatenate([published[phone].array() for phone in sorted(published)])
    state.local = points.astype("<f4").tobytes()
    found = discovery.discover(points, parameters.geometry)
    state.clusters = tuple(found.clusters.tolist())
    state.centroids = Matrix.of(found.centroids)
    return Opens(accounting.CENTROID_VOTE, (len(found.centroids),))


def keep_top_centroids(state: Snapshot, totals: Totals) -> Opens:
    """Steps 9 and 10: keep the best centroids; opens the second vote."""
    parameters = state.learning
    state.centroid_votes = tuple(totals.tolist())
    kept = ballots.top_candidates(totals, min(parameters.top_global_centroids, len(totals)))
    state.top = tuple(kept.tolist())
    return Opens(accounting.LABEL_VOTE, (len(kept), len(parameters.labels)))


def label_centroids(state: Snapshot, totals: Totals) -> None:
    """Steps 13 and 14; a centroid for which noise left no positive count has no label."""
    winners = np.where(totals.max(axis=1) > 0, ballots.winning_labels(totals), -1)
    state.label_votes = tuple(map(tuple, totals.tolist()))
    state.labels = tuple(winners.tolist())


def publish_histogram(state: Snapshot, totals: Totals) -> None:
    """Section 7.2: the noisy counts are the statistics."""
    state.contacts = tuple(totals.tolist())


AFTER_SUM: dict[Step, Callable[[Snapshot, Totals], Opens | None]] = {
    Step.CENTROID_VOTE_UNMASK: keep_top_centroids,
    Step.LABEL_VOTE_UNMASK: label_centroids,
    Step.HISTOGRAM_UNMASK: publish_histogram,
}
"""The last step of a sum → what is made of its total."""


def least_answers(parameters: PhaseParameters) -> int:
    """(1 − ρ)n, the phones that a step needs."""
    return Opens(accounting.CENTROID_VOTE, (1,)).parameters(parameters).least_survivors


def check_feasible(parameters: Parameters) -> None:
    """Refuse parameters under which no phase can run, before any work.

    Raises:
        InvalidParametersError: says which parameter is wrong and what would be accepted.
    """
    parameters.check()
    if parameters.honest_survivors < 1:
        raise InvalidParametersError(
            f"dropout={parameters.dropout} and corrupted={parameters.corrupted}: together they "
            "must stay below 1"
        )
    for step, mechanism in accounting.phase_mechanisms(parameters).items():
        if isinstance(mechanism, BallotSum):
            _check_scale(step, mechanism)
            vote_sum(parameters, mechanism, (1,))


def _check_scale(vote: str, mechanism: BallotSum) -> None:
    if mechanism.scale > LARGEST_SHARED_SCALE:
        least = mechanism.sensitivity(Unit.RECORDING) / LARGEST_SHARED_SCALE
        raise InvalidParametersError(
            f"budget {vote.replace(' ', '-')}={mechanism.epsilon}: must be at least {least:.3g}"
        )


def _ballots_of(parameters: Parameters, vote: str) -> BallotSum:
    mechanism = accounting.phase_mechanisms(parameters)[vote]
    if not isinstance(mechanism, BallotSum):  # pragma: no cover - every sum is one of ballots
        raise WrongStateError(f"'{vote}' is not a vote")
    return mechanism
