"""Answers of a labelling phase, sample by sample."""

from __future__ import annotations

from dataclasses import dataclass

from earshot_protocol.phases.labelling import CHECK, VOTES, Labelled
from earshot_server.dashboard import charts, histograms, outcomes, wording
from earshot_server.dashboard.languages import gettext as _
from earshot_server.records import PhaseRecord

MOST_SAMPLES = 1000
"""Most samples on a page; the CSV files have all."""


@dataclass(frozen=True)
class Sample:
    """One sample.

    Attributes:
        number: Number of the sample, from 1.
        answer: Label that enough phones agree with; empty without one.
        name: The answer if it is clear of the noise, otherwise `wording.UNNAMED`.
        why_unnamed: Reason why the sample is unnamed; empty if it has a name.
        agreement: Phones that agree with the label that has the most votes, noise included.
        label_votes: Sum of votes for each label, and its colour's intensity.
        label: Label with the most votes, an index.
        p_value: P-value of that label.
    """

    number: int
    answer: str
    name: str
    why_unnamed: str
    agreement: int
    label_votes: tuple[tuple[int, int], ...]
    label: int
    p_value: float


@dataclass(frozen=True)
class SampleAnswers:
    """Answers of a labelling phase.

    Attributes:
        rows: All samples, by number.
        votes_radius: Bound on the noise in each number of votes, in 95 of 100 cases.
        check_radius: Bound on the noise in each number of phones that agree, in 95 of 100 cases.
    """

    rows: tuple[Sample, ...]
    votes_radius: int
    check_radius: int

    @property
    def shown(self) -> tuple[Sample, ...]:
        """Samples shown on a page."""
        return self.rows[:MOST_SAMPLES]


def samples(record: PhaseRecord, labelled: Labelled) -> SampleAnswers:
    """Return the samples of a published labelling phase."""
    sums = charts.heated(labelled.label_votes)
    return SampleAnswers(
        tuple(_sample(labelled, row, votes) for row, votes in enumerate(sums)),
        histograms.sum_noise(record, VOTES).radius(),
        histograms.sum_noise(record, CHECK).radius(),
    )


def _sample(labelled: Labelled, row: int, label_votes: tuple[tuple[int, int], ...]) -> Sample:
    answer, name = labelled.labels[row], labelled.names[row]
    votes = labelled.label_votes[row]
    return Sample(
        number=row + 1,
        answer=labelled.label_names[answer] if answer >= 0 else "",
        name=name or _(wording.UNNAMED),
        why_unnamed="" if name else outcomes.answer_of(labelled, row),
        agreement=labelled.agreement[row],
        label_votes=label_votes,
        label=max(range(len(votes)), key=votes.__getitem__),
        p_value=labelled.name_p_values[row],
    )
