"""What a labelling phase answered, sample by sample."""

from __future__ import annotations

from dataclasses import dataclass

from earshot_protocol.phases.labelling import CHECK, VOTES, Labelled
from earshot_server.dashboard import charts, histograms, outcomes, wording
from earshot_server.records import PhaseRecord

MOST_SAMPLES = 1000
"""On a page; files have all."""


@dataclass(frozen=True)
class Sample:
    """One sample.

    Attributes:
        number: from 1.
        answer: the label that enough phones agree with; empty without one.
        name: that label where it stands clear of the noise, or that there is none.
        why_unnamed: what is in doubt, or missing; empty where it has a name.
        agreement: how many agree with the label that has the most votes, noise included.
        label_votes: for each label: the sum and the strength of its colour.
        label: the label with the most votes.
        p_value: of that label.
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
class Samples:
    """What a labelling phase answered.

    Attributes:
        rows: all samples, by number.
        votes_radius: of the noise in each number of votes.
        check_radius: of the noise in each number that agrees.
    """

    rows: tuple[Sample, ...]
    votes_radius: int
    check_radius: int

    @property
    def shown(self) -> tuple[Sample, ...]:
        """Those that a page has room for."""
        return self.rows[:MOST_SAMPLES]


def samples(record: PhaseRecord, labelled: Labelled) -> Samples:
    """The samples of a published labelling phase."""
    largest = max((max(votes) for votes in labelled.label_votes), default=0)
    return Samples(
        tuple(_sample(labelled, row, largest) for row in range(len(labelled.labels))),
        histograms.sum_noise(record, VOTES).radius(),
        histograms.sum_noise(record, CHECK).radius(),
    )


def _sample(labelled: Labelled, row: int, largest: int) -> Sample:
    answer, name = labelled.labels[row], labelled.names[row]
    votes = labelled.label_votes[row]
    return Sample(
        number=row + 1,
        answer=labelled.label_names[answer] if answer >= 0 else "",
        name=name or wording.UNNAMED,
        why_unnamed="" if name else outcomes.answer_of(labelled, row),
        agreement=labelled.agreement[row],
        label_votes=tuple((each, charts.heat(each, largest)) for each in votes),
        label=max(range(len(votes)), key=votes.__getitem__),
        p_value=labelled.name_p_values[row],
    )
