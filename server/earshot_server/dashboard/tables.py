"""Content of the pages' tables and charts, row by row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from markupsafe import Markup

from earshot_protocol.phases.learning import CENTROID_VOTE, LABEL_VOTE, Result
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.secure_sum.interface import Asks
from earshot_server.dashboard import changes, charts, histograms, outcomes, sentences, wording
from earshot_server.dashboard.histograms import CountInterval, Histogram
from earshot_server.dashboard.languages import gettext as _
from earshot_server.records import PhaseRecord, StepRecord

MOST_ENVIRONMENTS = 100
"""Most environments on the map and in its tables."""
MOST_MULTIPLES = 12
"""Most labels that have a chart of their own."""


class StepRow(NamedTuple):
    """One step of a phase.

    Attributes:
        name: Name of the step.
        record: Record of the step; None before it has begun.
        helper: Whether it asks the helper of a sum by two operators.
    """

    name: str
    record: StepRecord | None
    helper: bool


def participation(record: PhaseRecord) -> tuple[StepRow, ...]:
    """Return every step of a phase, except those that a failed phase never reached."""
    asked = {step.step: step for step in record.steps}
    return tuple(
        StepRow(step.name, asked.get(step.name), step.asks is Asks.HELPER)
        for step in sentences.all_steps(record)
        if step.name in asked or record.ending is None
    )


@dataclass(frozen=True)
class Environment:
    """One published centroid.

    Attributes:
        number: Number on the map, from 1.
        name: Label of the centroid, or `wording.UNNAMED`.
        hue: Hue of its mark.
        votes: Votes to keep it.
        label_votes: Sum of votes for each label, and its colour's intensity.
        label: Index of its label; -1 if it is unnamed.
        why_unnamed: Reason why it is unnamed; empty if it has a name.
        doubt: Reason why the votes to keep it may be noise; empty if they are clear.
    """

    number: int
    name: str
    hue: int
    votes: int
    label_votes: tuple[tuple[int, int], ...]
    label: int
    why_unnamed: str
    doubt: str

    @property
    def winning_votes(self) -> int | None:
        """Votes for its label; None if it is unnamed."""
        return self.label_votes[self.label][0] if self.label >= 0 else None


@dataclass(frozen=True)
class Environments:
    """Environments found by a learning phase, those with the most votes first.

    Attributes:
        rows: Environments, at most `MOST_ENVIRONMENTS`.
        map: Map of the environments; None without any.
        explained: Share of the variance that the map shows; None if it shows all.
        vote_radius: Bound on the noise in `votes`, in 95 of 100 cases.
        label_radius: Bound on the noise in each label vote, in 95 of 100 cases.
    """

    rows: tuple[Environment, ...]
    map: Markup | None
    explained: float | None
    vote_radius: int
    label_radius: int


def environments(record: PhaseRecord, result: Result) -> Environments:
    """Return the environments of a published learning phase."""
    order = sorted(
        range(result.centroids.rows), key=lambda row: (-result.centroid_votes[row], row)
    )[:MOST_ENVIRONMENTS]
    sums = charts.heated(result.label_votes)
    rows = tuple(
        Environment(
            number=number,
            name=result.names[row] or _(wording.UNNAMED),
            hue=charts.HUES if (winner := _winner(result, row)) < 0 else winner % charts.HUES,
            votes=result.centroid_votes[row],
            label_votes=sums[row],
            label=winner,
            why_unnamed=outcomes.why_unnamed(result, row),
            doubt=outcomes.centroid_doubt(result, row),
        )
        for number, row in enumerate(order, start=1)
    )
    picture, explained = None, None
    if rows:
        plane, explained = charts.principal_plane(result.centroids.array())
        places = [charts.Place(row.number, row.name, row.hue, row.votes) for row in rows]
        title = _(
            "Map of %(number)s environments; the table lists them by number.", number=len(rows)
        )
        picture = charts.environment_map(places, plane[order], title)
    return Environments(
        rows,
        picture,
        explained,
        histograms.sum_noise(record, CENTROID_VOTE).radius(),
        histograms.sum_noise(record, LABEL_VOTE).radius(),
    )


def _winner(result: Result, row: int) -> int:
    return -1 if result.names[row] is None else result.labels[row]


class Bar(NamedTuple):
    """One label of a histogram, or the contacts without one, which are neither labelled nor named.

    Attributes:
        label: Name of the label; `wording.UNKNOWN` for contacts without one.
        counted: Contacts.
        drawn: Chart of the contacts.
        labelled: Number of them that people labelled.
        named: Number of them that the phase's places named.
    """

    label: str
    counted: CountInterval
    drawn: Markup
    labelled: float | None = None
    named: float | None = None


def histogram(record: PhaseRecord, published: Statistics) -> tuple[Bar, ...]:
    """Return the labels of a published statistics phase, the most frequent first, and unknowns."""
    histogram = histograms.contacts(record, published)
    counts, unknown = histogram.counts, histogram.unknown
    shown = [*counts.values(), *([unknown] if unknown else [])]
    largest = max([1, *(count.most for count in shown)])
    parts = zip(published.labelled, published.named, strict=True)
    by_label = dict(zip(published.label_names, parts, strict=True))
    bars = [
        Bar(label, counts[label], charts.interval_bar(counts[label], largest), *by_label[label])
        for label in histograms.by_frequency([histogram])
    ]
    if unknown:
        bars.append(Bar(_(wording.UNKNOWN), unknown, charts.interval_bar(unknown, largest)))
    return tuple(bars)


class LabelCourse(NamedTuple):
    """Course of one label over time: the newest count, and its chart."""

    label: str
    newest: CountInterval | None
    drawn: Markup


@dataclass(frozen=True)
class OverTime:
    """Histograms over time.

    Attributes:
        histograms: Histograms, newest first.
        labels: All labels, the most frequent first.
        courses: Charts of the first `MOST_MULTIPLES` labels.
        largest: Count at the upper edge of every chart.
        comparison: Comparison of the newest histogram with the previous comparable one; None if
            there is none.
    """

    histograms: tuple[Histogram, ...]
    labels: tuple[str, ...]
    courses: tuple[LabelCourse, ...]
    largest: float
    comparison: changes.Comparison | None


def over_time(published: Sequence[Histogram]) -> OverTime:
    """Return the course of each label.

    Args:
        published: Histograms, oldest first.
    """
    labels = histograms.by_frequency(published)
    shown = labels[:MOST_MULTIPLES]
    counts = {label: [each.counts.get(label) for each in published] for label in shown}
    present = [count.most for series in counts.values() for count in series if count is not None]
    largest = max([1, *present])
    times, asked = [each.finished for each in published], [each.asked for each in published]
    courses = tuple(
        LabelCourse(
            label, counts[label][-1], charts.over_time(counts[label], times, largest, asked)
        )
        for label in shown
    )
    newest_first = tuple(reversed(published))
    return OverTime(newest_first, labels, courses, largest, changes.since_before(published))
