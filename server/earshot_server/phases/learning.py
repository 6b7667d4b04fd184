"""Server's part in a learning phase (thesis, Algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import WrongStateError
from earshot_protocol.overriding import override
from earshot_protocol.phases.learning import (
    LABEL_VOTE,
    Cluster,
    GlobalCentroids,
    LocalCentroids,
    PhaseParameters,
    Result,
    TopCentroids,
)
from earshot_protocol.phases.plan import PartTask, SumPartTask
from earshot_protocol.privacy.laws import NoiseLaw
from earshot_protocol.privacy.significance import are_clear, count_p_values, name_p_values
from earshot_protocol.summations import Opening
from earshot_protocol.voting import ballots
from earshot_protocol.wire import Matrix
from earshot_server.discovery.interface import CentroidDiscovery
from earshot_server.discovery.merging import merged
from earshot_server.discovery.optics import Optics
from earshot_server.phases.expected import Expected, counts, names
from earshot_server.phases.snapshot import Snapshot, Totals


def most_candidates(parameters: PhaseParameters) -> int:
    """Return the largest number of global centroids that such a crowd votes on."""
    return Optics().allowed(parameters.phones * parameters.top_local_centroids)


class LearningPhase(Snapshot, kw_only=True):
    """Learning phase at the start of a step.

    Attributes:
        parameters: Parameters of the phase.
        local: Union of the centroids that phones published, float32, little-endian.
        clusters: Index of each of its rows' global centroid; negative for none
            (`FoundCentroids.clusters`).
        centroids: Global centroids.
        centroid_votes: Votes for each global centroid.
        top: Indices of the global centroids that the first vote kept.
        label_votes: Votes for each kept centroid, by label.
        labels: Label of each kept centroid; -1 if none is clear of the noise.
        centroid_p_values: P-values of the kept centroids.
        name_p_values: P-values of their labels.
    """

    parameters: PhaseParameters
    local: bytes = b""
    clusters: tuple[int, ...] = ()
    centroids: Matrix | None = None
    centroid_votes: tuple[int, ...] = ()
    top: tuple[int, ...] = ()
    label_votes: tuple[tuple[int, ...], ...] = ()
    labels: tuple[int, ...] = ()
    centroid_p_values: tuple[float, ...] = ()
    name_p_values: tuple[float, ...] = ()

    @override
    @staticmethod
    def expected(parameters: PhaseParameters, part: str) -> Expected:
        """Return the expected inputs, with the most candidates that such a crowd can have."""
        kept, labels = parameters.top_global_centroids, len(parameters.labels)
        if part == LABEL_VOTE:
            shape, votes, hurdle = (kept, labels), parameters.label_votes, names(kept * labels)
            return Expected(shape=shape, places=kept, votes=votes, hurdle=hurdle)
        votes, found = parameters.centroid_votes, most_candidates(parameters)
        return Expected(shape=(found,), places=kept, votes=votes, hurdle=counts(found))

    @override
    @staticmethod
    def expected_answer(parameters: PhaseParameters) -> LocalCentroids:
        """Return an example of an answer: k* centroids."""
        rows, columns = parameters.top_local_centroids, parameters.dimensions
        centroids = Matrix.of(np.zeros((rows, columns), dtype=np.float32))
        return LocalCentroids(phase=bytes(16), sender=parameters.phones - 1, centroids=centroids)

    @override
    def shape(self, part: str) -> tuple[int, ...]:
        """Return the shape: an entry per candidate, then one per centroid and label."""
        if part == LABEL_VOTE:
            return len(self.top), len(self.parameters.labels)
        return (self.candidates().rows,)

    @override
    def release_task(self, part: str) -> PartTask:
        return Cluster(phase=self.phase, index=0, parameters=self.parameters, choices=self.choices)

    @override
    def sum_task(self, part: str, opening: Opening) -> SumPartTask:
        kind = TopCentroids if part == LABEL_VOTE else GlobalCentroids
        return kind(phase=self.phase, centroids=self.candidates(), opening=opening)

    @override
    def take_answers(
        self, part: str, answers: Mapping[int, LocalCentroids], discovery: CentroidDiscovery
    ) -> None:
        """Cluster the published centroids (step 6 of Algorithm 1)."""
        points = np.concatenate([answers[phone].centroids.array() for phone in sorted(answers)])
        self.local = points.astype("<f4").tobytes()
        discovered = discovery.discover(points, self.parameters.geometry)
        self.clusters = tuple(discovered.clusters.tolist())
        self.centroids = Matrix.of(discovered.centroids)

    @override
    def take_total(self, part: str, total: Totals) -> None:
        """Keep the best centroids (steps 9 and 10), or label them (steps 13 and 14).

        Unlike in the thesis, a label that is not clear of the noise is dropped.
        """
        noise = self.noise(part)
        if part == LABEL_VOTE:
            self.label_votes = tuple(map(tuple, total.tolist()))
            self.name_p_values = name_p_values(total, noise)
            clear = are_clear(self.name_p_values, len(total))
            self.labels = tuple(np.where(clear, ballots.winning_labels(total), -1).tolist())
        else:
            self.centroid_votes = tuple(total.tolist())
            self.top = tuple(self._kept(total, noise).tolist())
            self.centroid_p_values = count_p_values(total[list(self.top)], noise, len(total))

    def _kept(self, total: Totals, noise: NoiseLaw) -> npt.NDArray[np.int64]:
        """Return the candidates with the most votes; if too many are clear, merge neighbours.

        Unlike in the thesis, an environment that was found in two parts is kept once.
        """
        most = min(self.parameters.top_global_centroids, len(total))
        clear = np.flatnonzero(are_clear(count_p_values(total, noise), len(total)))
        if len(clear) <= most:
            return ballots.top_candidates(total, most)
        return clear[merged(self.candidates().array()[clear], total[clear], most)]

    @override
    def published(self) -> Result:
        return Result(
            phase=self.phase,
            geometry=self.parameters.geometry,
            centroids=self.candidates(),
            labels=self.labels,
            label_names=self.parameters.labels,
            centroid_votes=tuple(self.centroid_votes[place] for place in self.top),
            label_votes=self.label_votes,
            centroid_p_values=self.centroid_p_values,
            name_p_values=self.name_p_values,
            encoder=self.parameters.encoder,
            privacy=self.parameters.plan().releases(),
        )

    def local_centroids(self) -> npt.NDArray[np.float32] | None:
        """Return the published centroids, float32 (points, dimensions); None before discovery."""
        if not self.local:
            return None
        return np.frombuffer(self.local, dtype="<f4").reshape(-1, self.parameters.dimensions)

    def candidates(self) -> Matrix:
        """Return the centroids that are voted on or published: all, or once known the top ones.

        Raises:
            WrongStateError: No centroids have been found yet.
        """
        if self.centroids is None:
            raise WrongStateError("no centroids have been found yet")
        if not self.top:
            return self.centroids
        return Matrix.of(self.centroids.array()[list(self.top)])
