"""Server's part in a labelling phase: proposing labels, and counting the phones that agree."""

from __future__ import annotations

import numpy as np

from earshot_protocol.errors import WrongStateError
from earshot_protocol.geometry import Geometry
from earshot_protocol.overriding import override
from earshot_protocol.phases.labelling import (
    CHECK,
    VOTES,
    CheckLabels,
    Labelled,
    LabellingParameters,
    LabelSamples,
)
from earshot_protocol.phases.plan import SecureSum, SumPartTask
from earshot_protocol.privacy.laws import SkellamNoise
from earshot_protocol.privacy.significance import answer_p_values
from earshot_protocol.summations import Opening
from earshot_protocol.voting import ballots
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_server.phases.expected import Expected, counts, least_clear
from earshot_server.phases.snapshot import Snapshot, Totals


class LabellingPhase(Snapshot, kw_only=True):
    """Labelling phase at the start of a step.

    Attributes:
        parameters: Parameters of the phase.
        label_votes: Noisy sums of votes, per sample and label.
        agreement: Noisy number of phones that agree with the leading label, per sample.
        name_p_values: P-value of the leading label, per sample.
    """

    parameters: LabellingParameters
    label_votes: tuple[tuple[int, ...], ...] = ()
    agreement: tuple[int, ...] = ()
    name_p_values: tuple[float, ...] = ()

    @override
    @staticmethod
    def expected(parameters: LabellingParameters, part: str) -> Expected:
        """Return the expected inputs: every phone has a vote on every sample."""
        samples, labels = parameters.samples.rows, len(parameters.labels)
        known = "if every phone knows every sample and all give the same answers"
        if part == VOTES:
            return Expected(
                shape=(samples, labels),
                places=samples,
                place="sample",
                votes=samples,
                hurdle=counts(samples * labels),
                provided=known,
                remedy="--epsilon",
            )

        return Expected(
            shape=(samples, 1),
            places=samples,
            place="sample",
            votes=samples,
            hurdle=counts(samples, parameters.threshold),
            honest="honest phones that agree",
            provided=known,
            enough="make an answer that stands clear of the noise",
            can="get such an answer",
            remedy="--epsilon",
            verb="label",
        )

    @override
    def shape(self, part: str) -> tuple[int, ...]:
        """Return the shape: an entry per sample and label, then one per sample."""
        samples = self.parameters.samples.rows
        return (samples, len(self.parameters.labels)) if part == VOTES else (samples, 1)

    @override
    def sum_task(self, part: str, opening: Opening) -> SumPartTask:
        if part == VOTES:
            return LabelSamples(
                phase=self.phase,
                parameters=self.parameters,
                choices=self.choices,
                opening=opening,
            )
        return CheckLabels(phase=self.phase, proposed=self.proposed(), opening=opening)

    @override
    def take_total(self, part: str, total: Totals) -> None:
        """Store the votes, from which labels are proposed, or the agreement with these."""
        if part == VOTES:
            self.label_votes = tuple(map(tuple, total.tolist()))
            return
        self.agreement = tuple(total[:, 0].tolist())
        # Operators add discrete Gaussian noise. Skellam noise of equal variance has heavier tails,
        # so no p-value is too small.
        votes, check = (SkellamNoise(self.noise(each).deviation ** 2) for each in (VOTES, part))
        self.name_p_values = answer_p_values(self.label_votes, self.agreement, votes, check)

    def proposed(self) -> tuple[int, ...]:
        """Return the label of each sample with the most noisy votes; of equal ones, the first."""
        return tuple(ballots.winning_labels(np.array(self.label_votes)).tolist())

    @override
    def published(self) -> Labelled:
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
    """Return the default number of phones that must agree: more than noise alone reaches.

    Noise alone reaches it for any of the samples with probability at most `LEVEL`. It is not a
    majority; p-values show whether a label has more votes than the runner-up.

    Args:
        parameters: Parameters of the phase, with any threshold.

    Returns:
        Threshold T, in votes; at most their number.
    """
    parameters.check()
    part = parameters.plan().part(CHECK)
    if not isinstance(part, SecureSum):
        raise WrongStateError(f"'{CHECK}' is not a secure sum")
    noise = part.mechanism.noise(parameters.phones)
    clear = least_clear((noise,), parameters.samples.rows)
    return float(min(clear, parameters.phones * parameters.largest_weight))
