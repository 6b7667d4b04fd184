"""The server's part in a labelling phase: what is proposed, and what enough phones agree with."""

from __future__ import annotations

import math

import numpy as np

from earshot_protocol.errors import WrongStateError
from earshot_protocol.geometry import Geometry
from earshot_protocol.phases.labelling import (
    CHECK,
    VOTES,
    CheckLabels,
    Labelled,
    LabellingParameters,
    LabelSamples,
)
from earshot_protocol.phases.plan import SecureSum, SumPartTask
from earshot_protocol.privacy.laws import NoiseLaw, SkellamNoise
from earshot_protocol.privacy.significance import answer_p_values
from earshot_protocol.secure_sum.messages import AdvertiseKeys
from earshot_protocol.voting import ballots
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_server.phases.expected import Expected, counts, least_clear
from earshot_server.phases.snapshot import Snapshot, Totals


class LabellingPhase(Snapshot, kw_only=True):
    """A labelling phase at the start of a step.

    Attributes:
        parameters: of the phase.
        label_votes: per sample and label, the noisy sum of votes.
        agreement: per sample, the noisy number that agreed with the label that has the most.
        name_p_values: per sample, of that label.
    """

    parameters: LabellingParameters
    label_votes: tuple[tuple[int, ...], ...] = ()
    agreement: tuple[int, ...] = ()
    name_p_values: tuple[float, ...] = ()

    @staticmethod
    def expected(parameters: LabellingParameters, part: str) -> Expected:
        """See `Snapshot.expected`: every phone has a vote on every sample."""
        samples, labels = parameters.samples.rows, len(parameters.labels)
        known = "if every phone knows every sample and answers alike"
        if part == VOTES:
            return Expected(
                shape=(samples, labels),
                places=samples,
                place="sample",
                votes=samples,
                needed=counts(samples * labels),
                provided=known,
                remedy="--epsilon",
            )

        def needed(noise: NoiseLaw) -> int:
            return max(math.ceil(parameters.threshold), counts(samples)(noise))

        return Expected(
            shape=(samples, 1),
            places=samples,
            place="sample",
            votes=samples,
            needed=needed,
            honest="honest phones that agree",
            provided=known,
            enough="make an answer that stands clear of the noise",
            can="get such an answer",
            remedy="--epsilon",
        )

    def shape(self, part: str) -> tuple[int, ...]:
        """See `Snapshot.shape`: one entry a sample and label, then one a sample."""
        samples = self.parameters.samples.rows
        return (samples, len(self.parameters.labels)) if part == VOTES else (samples, 1)

    def sum_task(self, part: str, advertise: AdvertiseKeys) -> SumPartTask:
        """See `Snapshot.sum_task`."""
        if part == VOTES:
            return LabelSamples(
                phase=self.phase,
                parameters=self.parameters,
                choices=self.choices,
                advertise=advertise,
            )
        return CheckLabels(phase=self.phase, proposed=self.proposed(), advertise=advertise)

    def take_total(self, part: str, total: Totals) -> None:
        """The label with the most votes is proposed; what enough agree with is an answer."""
        if part == VOTES:
            self.label_votes = tuple(map(tuple, total.tolist()))
            return
        self.agreement = tuple(total[:, 0].tolist())
        votes, check = (SkellamNoise(self.noise(each).deviation ** 2) for each in (VOTES, part))
        self.name_p_values = answer_p_values(self.label_votes, self.agreement, votes, check)

    def proposed(self) -> tuple[int, ...]:
        """The label of each sample that has the most noisy votes; of equal ones the first."""
        return tuple(ballots.winning_labels(np.array(self.label_votes)).tolist())

    def published(self) -> Labelled:
        """See `Snapshot.published`."""
        threshold = self.parameters.threshold
        answers = zip(self.proposed(), self.agreement, strict=True)
        return Labelled(
            phase=self.phase,
            geometry=Geometry.SPHERICAL,
            centroids=self.parameters.samples,
            labels=tuple(label if agreed >= threshold else NONE for label, agreed in answers),
            label_names=self.parameters.labels,
            label_votes=self.label_votes,
            agreement=self.agreement,
            threshold=threshold,
            name_p_values=self.name_p_values,
            encoder=self.parameters.encoder,
            privacy=self.parameters.plan().releases(),
        )


def usual_threshold(parameters: LabellingParameters) -> float:
    """How many must agree where nobody says: more than noise alone lets agree with any sample.

    That is no majority. Whether a label has more votes than the runner-up, p-values say.

    Args:
        parameters: of the phase, with any threshold.

    Returns:
        T, in votes; never more than there are.
    """
    parameters.check()
    part = parameters.plan().part(CHECK)
    if not isinstance(part, SecureSum):
        raise WrongStateError(f"'{CHECK}' is no secure sum")
    noise = part.mechanism.noise(parameters.phones)
    clear = least_clear((noise,), parameters.samples.rows)
    return float(min(clear, parameters.phones * parameters.largest_weight))
