"""A labelling phase: phones are teachers, and public samples get labels that no phone gave alone.

Every phone votes on every sample, by a model that it keeps or by what it has labelled; a secure sum
adds the votes up with noise. The label with the most votes in each noisy histogram is proposed, and
a second sum asks who agrees with it, because the largest of several noisy numbers does not confirm
itself. Where enough phones agree, the proposal is the answer (confident aggregation, Papernot et
al., ICLR 2018, Algorithm 1; here no party sees a ballot).

A phone weights its ballot so that its own budget holds. Once that is spent, it adds zeros and its
share of the noise, which no one else can tell from a ballot.
"""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError, MalformedMessageError
from earshot_protocol.geometry import Geometry
from earshot_protocol.overriding import override
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.parameters import (
    LARGEST_CROWD,
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
from earshot_protocol.phases.plan import Plan, SecureSum, SumPartTask
from earshot_protocol.privacy.accounting import Expense, expenses, unspent
from earshot_protocol.privacy.significance import PValue
from earshot_protocol.summations import Opening
from earshot_protocol.voting.teacher_ballots import Agreement, OneHot, Weighted
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_protocol.wire import LARGEST_DIMENSIONS, Matrix

VOTES = "votes"
"""Name of the first part of the plan, the votes for a label of each sample, and of its private
step."""
CHECK = "check"
"""Name of the second part, the agreement with the label that has the most votes."""
LARGEST_SAMPLES = 4096
LARGEST_WEIGHT = 16
SMALLEST_NOISE, LARGEST_NOISE = 1e-6, 1e9
"""Deviations in votes, far below and far above any use, whose costs can still be computed."""

PerSample = Meta(max_length=LARGEST_SAMPLES)
LabelIndex = Annotated[int, Meta(ge=0, lt=LARGEST_LABELS)]
Answer = Annotated[int, Meta(ge=-1, lt=LARGEST_LABELS)]
"""Index into the labels; −1 where a sample has no answer."""


class LabellingParameters(Parameters, frozen=True, kw_only=True, tag="labelling"):
    """Everything that phones and server must agree on before a labelling phase.

    Attributes:
        phones: Number of phones that are enrolled, n.
        labels: Labels from which phones choose, L; 2 at least.
        encoder: Name of the encoder whose embeddings the samples are.
        samples: Public samples to be labelled, B of them, in the encoder's projection to d
            dimensions.
        votes_noise: Standard deviation of the noise on the votes for each label, σ₂, in votes.
        check_noise: Standard deviation of the noise on how many agree, σ₁, in votes.
        threshold: Number that must agree, noise included, for a sample to have an answer, T.
        largest_weight: Most votes that a phone may cast, W.
        delta: Value of δ for which costs are stated.
        dropout: Largest fraction of phones that may vanish, ρ.
        corrupted: Largest fraction of phones that an adversary may control, γ.
        step_seconds: Time for which a step waits for phones, in seconds.
        noise_crowd: Most phones whose noise a sum counts on.
    """

    encoder: EncoderName
    samples: Matrix
    votes_noise: float
    check_noise: float
    threshold: float
    largest_weight: int = 1
    delta: float = 1e-6

    @property
    def dimensions(self) -> int:
        """Dimensions of the projection that the samples lie in, d."""
        return self.samples.columns

    @property
    @override
    def reads(self) -> Embeddings:
        return Embeddings(self.encoder, self.dimensions)

    @property
    @override
    def weights(self) -> tuple[int, ...]:
        """Possible weights W, …, 1, and 0 for a phone that has spent its budget."""
        return tuple(range(self.largest_weight, -1, -1))

    @override
    def plan(self) -> Plan:
        """Return the votes and the check, at their costs for a phone of the largest weight."""
        votes, check = self._sums(self.largest_weight)
        return Plan((SecureSum(VOTES, LabelSamples, votes), SecureSum(CHECK, CheckLabels, check)))

    @override
    def expenses(self, weight: int, recordings: int | None = None) -> tuple[Expense, ...]:
        """Return a weight's expenses: the same noise hides a light ballot at a lower cost."""
        spent = expenses if weight else unspent
        votes, check = self._sums(weight)
        return spent(VOTES, votes) + spent(CHECK, check)

    def _sums(self, weight: int) -> tuple[VoteSum, VoteSum]:
        """Return the sums of the votes and of the check if no phone weighs more."""
        samples, survivors = self.samples.rows, self.noise_survivors
        votes, agreement = Weighted(OneHot(len(self.labels)), weight), Weighted(Agreement(), weight)
        return (
            VoteSum(votes, samples, self.votes_noise, self.delta, survivors),
            VoteSum(agreement, samples, self.check_noise, self.delta, survivors),
        )

    @override
    def check(self) -> None:
        super().check()
        checks.whole("the number of labels", len(self.labels), 2, LARGEST_LABELS)
        checks.whole("the number of samples", self.samples.rows, 1, LARGEST_SAMPLES)
        checks.whole("dimensions", self.dimensions, 1, LARGEST_DIMENSIONS)
        checks.between("votes_noise", self.votes_noise, SMALLEST_NOISE, LARGEST_NOISE)
        checks.between("check_noise", self.check_noise, SMALLEST_NOISE, LARGEST_NOISE)
        checks.whole("largest_weight", self.largest_weight, 1, LARGEST_WEIGHT)
        checks.probability("delta", self.delta)
        self._check_samples()
        most = self.phones * self.largest_weight
        if not 0 < self.threshold <= most:
            raise InvalidParametersError(
                f"threshold={self.threshold}: must be above 0 and at most {most}, the votes of all "
                f"{self.phones} phones"
            )

    def _check_samples(self) -> None:
        try:
            samples = self.samples.array()
        except MalformedMessageError as error:
            raise InvalidParametersError(f"samples: {error}") from error
        without = int((~samples.any(axis=1)).sum())
        if without:
            raise InvalidParametersError(
                f"samples: {without} of {len(samples)} are zeros in all dimensions; a sample needs "
                "a direction, by which phones compare it with what they heard"
            )


class LabelSamples(SumPartTask, frozen=True, kw_only=True, tag="label-samples"):
    """Vote for one label of each sample, or none; opens the secure sum of votes.

    `choices` are those of the phase's labels (`Parameters.agreed_hierarchy`).
    """

    parameters: LabellingParameters
    choices: Choices = ()
    opening: Opening = msgspec.field(name="advertise")


class CheckLabels(SumPartTask, frozen=True, kw_only=True, tag="check-labels"):
    """State whether you agree with each sample's proposed label; opens the check's secure sum.

    `proposed` has an index into the labels for each sample: the one with the most noisy votes.
    """

    proposed: Annotated[tuple[LabelIndex, ...], PerSample]
    opening: Opening = msgspec.field(name="advertise")


class Labelled(NamedCentroids, frozen=True, kw_only=True, tag="labelled"):
    """The samples with their answers, and the privacy spent.

    Attributes:
        geometry: Kind of distance to the samples: spherical.
        centroids: Samples that were labelled.
        labels: Answer for each sample, an index into `label_names`; -1 where fewer than `threshold`
            agreed with the label that had the most votes. `names` are the answers that stand clear
            of the noise.
        label_names: Labels of the phase, L.
        label_votes: Noisy sum of the votes, per sample and label.
        agreement: Noisy number that agreed with the label with the most votes, per sample.
        threshold: Threshold of the parameters, T.
        name_p_values: P-value of each sample's name; where it is large, noise may have given that
            label the most votes.
        encoder: Encoder whose embeddings the samples are.
        privacy: Privacy that a phone of the largest weight spent; others have spent less.
    """

    geometry: Geometry
    centroids: Matrix
    labels: Annotated[tuple[Answer, ...], PerSample]
    label_names: Annotated[tuple[LabelName, ...], PerLabel]
    label_votes: Annotated[tuple[Annotated[tuple[int, ...], PerLabel], ...], PerSample]
    agreement: Annotated[tuple[int, ...], PerSample]
    threshold: Annotated[float, Meta(gt=0, le=LARGEST_CROWD * LARGEST_WEIGHT)]
    name_p_values: Annotated[tuple[PValue, ...], PerSample]
    encoder: EncoderName
    privacy: Releases

    @property
    def answered(self) -> int:
        """Number of samples that have an answer."""
        return sum(label >= 0 for label in self.labels)


LABELLING = Kind(LabellingParameters, (LabelSamples, CheckLabels), (), Labelled)
"""Labelling phases, which label public samples and protect whole phones."""
