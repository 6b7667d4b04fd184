"""How often each label occurs, over time (thesis, section 7.2).

There are two sources. *Global* labels are those of published environments, of learning and
discovery phases: few, and already paid for. *Private* histograms are those of statistics phases:
each phone counts its own contacts, and a secure sum adds the counts up. Both are sums of the
phones' numbers and of their noise, so each is shown with the interval in which the true number
lies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.named_centroids import NamedCentroids
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import HISTOGRAM, Statistics
from earshot_protocol.privacy.laws import NoiseLaw, SkellamNoise
from earshot_protocol.privacy.significance import LEVEL, count_p_values
from earshot_server.dashboard.wording import window
from earshot_server.records import PhaseRecord

CONFIDENCE = 1 - LEVEL
"""How often an interval holds the true number."""


class Interval(NamedTuple):
    """A noisy count as published, where the true one lies, and whether it may be noise alone."""

    published: float
    least: float
    most: float
    p_value: float | None = None
    """See `significance.count_p_values`; None where it was not tested."""

    @property
    def clear(self) -> bool:
        """Whether it was tested, and stands clear of the noise."""
        return self.p_value is not None and self.p_value <= LEVEL

    @classmethod
    def around(cls, published: float, radius: float, p_value: float | None = None) -> Interval:
        """Of a count that cannot be negative."""
        return cls(published, max(0, published - radius), max(0, published + radius), p_value)


@dataclass(frozen=True)
class Histogram:
    """How often each label occurs in one phase.

    Attributes:
        phase: identifier, 16 bytes.
        finished: when it was published, in seconds since 1970.
        counts: by label: votes for it, or contacts in a statistics phase.
        noise: in each count, in steps.
        inputs: the phones whose numbers were added up.
        asked: what phones were asked for; numbers compare where it is the same.
        environments: by label, the environments that were given it; empty in a statistics phase.
        days: of which contacts were counted, in words; empty where that is not limited.
        step: steps that a count of one has in the sum that it comes from.
    """

    phase: bytes
    finished: float
    counts: dict[str, Interval]
    noise: NoiseLaw
    inputs: int
    asked: tuple[object, ...]
    environments: dict[str, int]
    days: str = ""
    step: float = 1.0

    @property
    def radius(self) -> float:
        """What the noise of a count does not exceed, with probability `CONFIDENCE`."""
        return self.radius_at(CONFIDENCE)

    def radius_at(self, confidence: float) -> float:
        """What the noise of a count does not exceed, with this probability."""
        return self.noise.radius(confidence) / self.step


def global_histograms(records: Iterable[PhaseRecord]) -> tuple[Histogram, ...]:
    """Votes for each label over all environments of a phase that found some, oldest phase first.

    Phases without such a result are left out, and so are labelled samples: they are what somebody
    chose, and how often a label occurs among them says nothing of what phones hear.
    """
    return _oldest_first(
        _of_environments(record, record.ending)
        for record in records
        if isinstance(record.ending, Result | Discovered)
    )


def private_histograms(records: Iterable[PhaseRecord]) -> tuple[Histogram, ...]:
    """Contacts with each label in a statistics phase, oldest phase first; others are left out."""
    return _oldest_first(
        contacts(record, record.ending)
        for record in records
        if isinstance(record.ending, Statistics)
    )


def contacts(record: PhaseRecord, published: Statistics) -> Histogram:
    """The histogram of one statistics phase."""
    noise = sum_noise(record, HISTOGRAM)
    untested = [None] * len(published.contacts)
    counts = {
        name: Interval.around(count, noise.radius(), p_value)
        for name, count, p_value in zip(
            published.label_names,
            published.contacts,
            published.p_values or untested,
            strict=True,
        )
    }
    lasts = published.until - published.since if published.until and published.since else None
    asked = (getattr(record.parameters, "contacts", 0), lasts)
    made = _histogram(record, HISTOGRAM, counts, noise, asked, {})
    return replace(made, days=window(published.since, published.until))


def _of_environments(record: PhaseRecord, published: NamedCentroids) -> Histogram:
    """The histogram of one phase that found environments."""
    votes, vote = published.label_votes, published.vote
    noise = sum_noise(record, published.named_in, max(1, len(votes)))
    sums = [sum(row[index] for row in votes) for index in range(len(published.label_names))]
    p_values = count_p_values([round(vote * each) for each in sums], noise)
    counts, named = {}, {}
    for name, votes_for, p_value in zip(published.label_names, sums, p_values, strict=True):
        counts[name] = Interval.around(votes_for, noise.radius() / vote, p_value)
        named[name] = published.names.count(name)
    kind = record.parameters.kind
    asked = kind, *(getattr(record.parameters, name, 0) for name in ("label_votes", "cells"))
    return replace(_histogram(record, published.named_in, counts, noise, asked, named), step=vote)


def _histogram(
    record: PhaseRecord,
    part: str,
    counts: dict[str, Interval],
    noise: NoiseLaw,
    asked: tuple[object, ...],
    environments: dict[str, int],
) -> Histogram:
    return Histogram(
        record.phase,
        record.finished or 0.0,
        counts,
        noise,
        summed_inputs(record, part),
        asked,
        environments,
    )


def by_frequency(histograms: Sequence[Histogram]) -> tuple[str, ...]:
    """All labels, the most frequent first; of equally frequent ones, by name."""
    totals: Counter[str] = Counter()
    for histogram in histograms:
        totals.update({label: count.published for label, count in histogram.counts.items()})
    return tuple(sorted(totals, key=lambda label: (-totals[label], label)))


def agreed_parameters(record: PhaseRecord) -> Parameters:
    """The parameters that the phones of a phase were told: for those that joined, once it runs."""
    if not record.steps:
        return record.parameters
    return msgspec.structs.replace(record.parameters, phones=record.joined)


def summed_inputs(record: PhaseRecord, name: str) -> int:
    """How many phones' inputs are in the sum of that part of a published phase."""
    parameters = agreed_parameters(record)
    step = parameters.plan().released_in(name)
    answered = (each.answered for each in record.steps if step and each.step == step.name)
    return next(answered, parameters.phones)


def sum_noise(record: PhaseRecord, name: str, entries: int = 1) -> NoiseLaw:
    """The noise of a published sum.

    Args:
        record: of a published phase.
        name: of the part of the phase's plan.
        entries: how many entries of the sum are added up.
    """
    part = agreed_parameters(record).plan().part(name)
    if not isinstance(part, SecureSum):
        return SkellamNoise(0.0)
    return part.mechanism.noise(entries * summed_inputs(record, name))


def _oldest_first(histograms: Iterable[Histogram]) -> tuple[Histogram, ...]:
    return tuple(sorted(histograms, key=lambda histogram: histogram.finished))
