"""A learning phase finds and names environments (thesis, Algorithm 1)."""

from __future__ import annotations

import functools
from typing import Annotated

import msgspec
from msgspec import Meta

from earshot_protocol import checks
from earshot_protocol.errors import MalformedMessageError, UnexpectedMessageError
from earshot_protocol.geometry import Geometry
from earshot_protocol.overriding import override
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.parameters import (
    LARGEST_LABELS,
    Choices,
    Embeddings,
    EncoderName,
    Kind,
    LabelName,
    Parameters,
    PerLabel,
    Releases,
)
from earshot_protocol.phases.plan import (
    LocalRelease,
    Plan,
    ReleaseAnswer,
    ReleaseTask,
    SecureSum,
    SumPartTask,
)
from earshot_protocol.privacy.local_mechanisms import (
    BestGaussianLloyd,
    BestLaplaceLloyd,
    GaussianLloyd,
    LaplaceLloyd,
    Selection,
    SelectionMethod,
)
from earshot_protocol.privacy.mechanisms import BallotSum, Mechanism
from earshot_protocol.privacy.significance import PValue
from earshot_protocol.summations import Opening
from earshot_protocol.wire import LARGEST_DIMENSIONS, Answer, Matrix

LOCAL_CENTROIDS = "local centroids"
CENTROID_VOTE = "centroid vote"
LABEL_VOTE = "label vote"
"""Names of the parts of the plan; each vote's is also the name of its private step."""
CLUSTER = "cluster"
SELECT = "select"
"""Names of the private steps behind local centroids."""

LARGEST_RECORDINGS = 10**6
LARGEST_LOCAL_CENTROIDS = 256
LARGEST_GLOBAL_CENTROIDS = 4096
LARGEST_RUNS = 16
"""Most runs on average; a phone computes 27 times as many, so that its time does not reveal how
many count."""

PerCentroid = Meta(max_length=LARGEST_GLOBAL_CENTROIDS)


class Budget(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Privacy budget of each private step, as ε in the recording unit.

    ε1 to ε4 of the thesis: `selection` is spent once per published local centroid.
    """

    clustering: float
    selection: float
    centroid_vote: float
    label_vote: float

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Return the names of the budget's values, as people write them."""
        return tuple(name.replace("_", "-") for name in cls.__struct_fields__)

    def check(self) -> None:
        """Refuse values that are not a budget.

        Raises:
            InvalidParametersError: A value is not a finite number of at least 10⁻⁹.
        """
        for name, value in zip(self.names(), msgspec.structs.astuple(self), strict=True):
            checks.epsilon(f"budget {name}", value)


class PhaseParameters(Parameters, frozen=True, kw_only=True, tag="learning"):
    """Everything that phones and server must agree on before a learning phase.

    Attributes:
        phones: Number of phones that are enrolled, n.
        recordings: Public, nominal number of recordings of a phone, N; noise and iterations depend
            on it, never on the true number.
        dimensions: Dimensions of the points that phones cluster.
        geometry: Kind of distance between points.
        encoder: Name of the encoder whose embeddings are clustered.
        labels: Equivalence classes of environments, L.
        local_centroids: Number of centroids that a phone computes, k.
        top_local_centroids: Number of these that a phone publishes, k*.
        top_global_centroids: Number of global centroids that the first vote keeps, g*.
        centroid_votes: Number of ones allowed in a ballot of the first vote, v_centroids.
        label_votes: Number of ones allowed in a ballot of the second vote, v_labels.
        dropout: Largest fraction of phones that may vanish, ρ.
        corrupted: Largest fraction of phones that an adversary may control, γ.
        budget: Privacy budget of each private step, ε1 to ε4.
        delta: Value of δ of the clustering step, used where its noise is Gaussian (spherical
            geometry).
        selection_method: Method by which the published centroids are chosen.
        clustering_runs: Average number of clusterings of which a phone keeps the best; with 1, it
            clusters exactly once.
        step_seconds: Time for which a step waits for phones, in seconds.
        noise_crowd: Most phones whose noise a sum counts on.
    """

    recordings: int
    dimensions: int
    geometry: Geometry
    encoder: EncoderName
    local_centroids: int
    top_local_centroids: int
    top_global_centroids: int
    centroid_votes: int
    label_votes: int
    budget: Budget
    delta: float = 1e-6
    selection_method: SelectionMethod = SelectionMethod.NOISY_MAX
    clustering_runs: int = 1

    @property
    @override
    def reads(self) -> Embeddings:
        return Embeddings(self.encoder, self.dimensions)

    @override
    def plan(self) -> Plan:
        """Return local centroids, the vote for centroids, and the vote for labels."""
        return _plan(self)

    def _clustering(self) -> Mechanism:
        """Return the mechanism of the geometry; one run, or the best of several."""
        epsilon, recordings, runs = self.budget.clustering, self.recordings, self.clustering_runs
        if self.geometry is Geometry.SPHERICAL:
            if runs > 1:
                return BestGaussianLloyd(epsilon, self.delta, recordings, runs)
            return GaussianLloyd(epsilon, self.delta, recordings)
        if runs > 1:
            return BestLaplaceLloyd(epsilon, recordings, runs)
        return LaplaceLloyd(epsilon, recordings)

    @override
    def check(self) -> None:
        self.budget.check()
        super().check()
        checks.whole("recordings", self.recordings, 1, LARGEST_RECORDINGS)
        checks.whole("dimensions", self.dimensions, 1, LARGEST_DIMENSIONS)
        checks.whole("local_centroids", self.local_centroids, 1, LARGEST_LOCAL_CENTROIDS)
        checks.whole("top_local_centroids", self.top_local_centroids, 1, self.local_centroids)
        checks.whole("top_global_centroids", self.top_global_centroids, 1, LARGEST_GLOBAL_CENTROIDS)
        checks.whole("centroid_votes", self.centroid_votes, 1, self.top_global_centroids)
        checks.whole("label_votes", self.label_votes, 1, self.top_global_centroids)
        checks.probability("delta", self.delta)
        checks.whole("clustering_runs", self.clustering_runs, 1, LARGEST_RUNS)


# Every phone needs it several times in each step, and a simulation has many phones.
@functools.lru_cache(maxsize=64)
def _plan(parameters: PhaseParameters) -> Plan:
    budget, recordings = parameters.budget, parameters.recordings
    selection = Selection(
        budget.selection, parameters.top_local_centroids, recordings, parameters.selection_method
    )
    survivors = parameters.noise_survivors
    centroid_vote = BallotSum(budget.centroid_vote, parameters.centroid_votes, survivors)
    label_vote = BallotSum(budget.label_vote, parameters.label_votes, survivors)
    return Plan(
        (
            LocalRelease(
                LOCAL_CENTROIDS, Cluster, {CLUSTER: parameters._clustering(), SELECT: selection}
            ),
            SecureSum(CENTROID_VOTE, GlobalCentroids, centroid_vote),
            SecureSum(LABEL_VOTE, TopCentroids, label_vote),
        )
    )


class Cluster(ReleaseTask, frozen=True, kw_only=True, tag="cluster"):
    """Steps 3 to 5: cluster your points, select the top centroids, publish them.

    `choices` are those of the phase's labels (`Parameters.agreed_hierarchy`).
    """

    parameters: PhaseParameters
    choices: Choices = ()

    @override
    def check_answer(self, phone: int, answer: Answer) -> None:
        """Refuse an answer that is not a matrix of k* × d local centroids for this task."""
        super().check_answer(phone, answer)
        if not isinstance(answer, LocalCentroids):
            raise UnexpectedMessageError(
                f"phone {phone}: {type(answer).__name__} where LocalCentroids is expected"
            )
        rows, columns = self.parameters.top_local_centroids, self.parameters.dimensions
        matrix = answer.centroids
        if (matrix.rows, matrix.columns) != (rows, columns):
            raise MalformedMessageError(
                f"phone {phone}: {matrix.rows} × {matrix.columns} centroids; this phase takes "
                f"{rows} × {columns}"
            )
        matrix.array()


class LocalCentroids(ReleaseAnswer, frozen=True, kw_only=True, tag="local-centroids"):
    """The k* noisy centroids of one phone."""

    centroids: Matrix


class GlobalCentroids(SumPartTask, frozen=True, kw_only=True, tag="global-centroids"):
    """Step 7: the candidates of the centroid vote; opens its secure sum."""

    centroids: Matrix
    opening: Opening = msgspec.field(name="advertise")


class TopCentroids(SumPartTask, frozen=True, kw_only=True, tag="top-centroids"):
    """Step 11: the centroids that were kept, to be labelled; opens the second secure sum."""

    centroids: Matrix
    opening: Opening = msgspec.field(name="advertise")


class Result(NamedCentroids, frozen=True, kw_only=True, tag="result"):
    """The labelled centroids and the privacy spent: the end of a phase.

    Attributes:
        geometry: Kind of distance to the centroids.
        centroids: Centroids that the first vote kept.
        labels: Index into `label_names` of each centroid; -1 where it is unnamed, because no
            label's votes stand clear of the noise.
        label_names: Labels of the phase, L.
        centroid_votes: Noisy sum of the first vote, per centroid.
        label_votes: Noisy sum of the second vote, per centroid and label.
        centroid_p_values: P-value of each centroid's votes; where it is large, they may be noise
            (`count_p_values` over all candidates of the vote).
        name_p_values: P-value of each centroid's most frequent label (`name_p_values`).
        encoder: Encoder whose embeddings the centroids are among.
        privacy: Privacy that the phase spent.
    """

    geometry: Geometry
    centroids: Matrix
    labels: Annotated[tuple[Annotated[int, Meta(ge=-1, lt=LARGEST_LABELS)], ...], PerCentroid]
    label_names: Annotated[tuple[LabelName, ...], PerLabel]
    centroid_votes: Annotated[tuple[int, ...], PerCentroid]
    label_votes: Annotated[tuple[Annotated[tuple[int, ...], PerLabel], ...], PerCentroid]
    centroid_p_values: Annotated[tuple[PValue, ...], PerCentroid]
    name_p_values: Annotated[tuple[PValue, ...], PerCentroid]
    encoder: EncoderName
    privacy: Releases

    @property
    def leading(self) -> tuple[int | None, ...]:
        """Label with the most votes of each centroid, noise or not; None without labels."""
        return tuple(
            max(range(len(votes)), key=votes.__getitem__, default=None)
            for votes in self.label_votes
        )


LEARNING = Kind(
    PhaseParameters, (Cluster, GlobalCentroids, TopCentroids), (LocalCentroids,), Result
)
