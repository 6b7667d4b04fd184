"""Histograms of how often each label occurs, over time (thesis, section 7.2).

There are two sources. *Global* labels are those of environments that learning and discovery phases
published: few, and at no further cost. *Private* histograms are those of statistics phases: each
phone counts its own contacts, and a secure sum adds up the counts. Both are noisy sums, so each
number is shown with the interval in which the true one lies. A label's contacts are those that
people labelled and those that the phase's places named, together.

A discovery phase does not count. Its number for a label is the length of the summed embeddings of
the label's recordings, where a phone's matrix over all labels has length at most 1: it grows with
the number of phones that heard the label, and with the similarity of their recordings.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import msgspec

from earshot_protocol.phases.discovery import LABELS, Discovered
from earshot_protocol.phases.learning import LABEL_VOTE, Result
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import HISTOGRAM, Statistics, StatisticsParameters
from earshot_protocol.privacy.laws import NoiseLaw, SkellamNoise
from earshot_protocol.privacy.mechanisms import GRID
from earshot_protocol.privacy.significance import LEVEL, count_p_values
from earshot_server.dashboard.languages import noted
from earshot_server.dashboard.wording import window
from earshot_server.phases.statistics import steps
from earshot_server.records import PhaseRecord

CONFIDENCE = 1 - LEVEL
"""Probability that an interval contains the true number."""
VOTES, LENGTHS, CONTACTS = noted("votes"), noted("lengths"), noted("contacts")
"""Kinds of numbers in a histogram."""


class LengthNoise(NamedTuple):
    """Noise in the published length of a row of vectors.

    The noise on the entries is nearly normal, so a row's squared length follows a non-central χ²
    law. Published is the root of the squared length less the noise's mean contribution, at least 0.

    Attributes:
        deviation: Standard deviation of the noise on each entry.
        dimensions: Number of entries of the row.
    """

    deviation: float
    dimensions: int

    def radius(self, confidence: float) -> float:
        """Return a bound on |true − published length| that holds with probability `confidence`.

        Noise lengthens most if the true length is 0: χ²(d) > r² + d. It shortens a length ℓ by more
        than r only if ℓ ≥ r, most likely at ℓ = r, to zero: χ²(d, r²) < d. The bound covers both.
        """
        return self.deviation * _length_radius(confidence, self.dimensions)


@functools.lru_cache(maxsize=256)
def _length_radius(confidence: float, dimensions: int) -> float:
    """Return the radius for noise of standard deviation 1."""
    from scipy.optimize import brentq
    from scipy.stats import chi2, ncx2

    chance = 1.0 - confidence
    longer = math.sqrt(max(0.0, float(chi2.isf(chance, dimensions)) - dimensions))

    def beyond(radius: float) -> float:
        there = radius**2
        rise = float(ncx2.sf(4 * there + dimensions, dimensions, there))
        return float(ncx2.cdf(dimensions, dimensions, there)) + rise - chance

    low = high = max(longer, 1.0)
    while beyond(high) > 0:
        low, high = high, 2 * high
    return high if low == high else max(longer, float(brentq(beyond, low, high)))


class CountInterval(NamedTuple):
    """Published noisy count, interval of the true one, and the p-value against noise alone."""

    published: float
    least: float
    most: float
    p_value: float
    """P-value of the count (see `significance.count_p_values`)."""

    @property
    def clear(self) -> bool:
        """Whether the count is clear of the noise."""
        return self.p_value <= LEVEL

    @classmethod
    def around(cls, published: float, radius: float, p_value: float) -> CountInterval:
        """Return the interval around a published count, cut off at 0."""
        return cls(published, max(0, published - radius), max(0, published + radius), p_value)


@dataclass(frozen=True)
class Histogram:
    """Histogram of how often each label occurs in one phase.

    Attributes:
        phase: Identifier of the phase, 16 bytes.
        finished: Time of publication, in seconds since 1970.
        counts: Number for each label, by label.
        noise: Noise in each of them, in steps.
        inputs: Number of phones whose numbers were added up.
        asked: Request that phones answered; numbers are comparable if it is equal.
        environments: Number of environments with each label; empty for statistics. In a discovery
            phase, number of prototypes of each label.
        what: Kind of the numbers: `VOTES`, `LENGTHS` or `CONTACTS`.
        days: Days of which contacts were counted, as text; empty if not limited.
        step: Steps of the underlying sum in a count of one.
        unknown: Number without a label; None if the phase has none.
    """

    phase: bytes
    finished: float
    counts: dict[str, CountInterval]
    noise: NoiseLaw | LengthNoise
    inputs: int
    asked: tuple[object, ...]
    environments: dict[str, int]
    what: str
    days: str = ""
    step: float = 1.0
    unknown: CountInterval | None = None

    @property
    def radius(self) -> float:
        """Bound on the noise of a count that holds with probability `CONFIDENCE`."""
        return self.radius_at(CONFIDENCE)

    def radius_at(self, confidence: float) -> float:
        """Return the bound on the noise of a count that holds with this probability."""
        return self.noise.radius(confidence) / self.step


def global_histograms(records: Iterable[PhaseRecord]) -> tuple[Histogram, ...]:
    """Return the votes for each label over all environments of each phase, oldest phase first.

    Of a discovery phase, return the lengths of its labels.

    Phases that found no environments are left out, and so are labelling phases: their samples were
    selected, so the frequency of labels among them says nothing about what phones hear.
    """
    return _oldest_first(
        _of_labels(record, record.ending)
        if isinstance(record.ending, Discovered)
        else _of_environments(record, record.ending)
        for record in records
        if isinstance(record.ending, Result | Discovered)
    )


def private_histograms(records: Iterable[PhaseRecord]) -> tuple[Histogram, ...]:
    """Return the contacts with each label in statistics phases, oldest first; omit other phases."""
    return _oldest_first(
        contacts(record, record.ending)
        for record in records
        if isinstance(record.ending, Statistics)
    )


def contacts(record: PhaseRecord, published: Statistics) -> Histogram:
    """Return the histogram of one statistics phase."""
    parameters = record.parameters
    if not isinstance(parameters, StatisticsParameters):
        raise TypeError(parameters)
    one, both = (sum_noise(record, HISTOGRAM, entries) for entries in (1, 2))
    step = steps(parameters)
    counts = {
        name: CountInterval.around(count, both.radius() / step, min(p_values))
        for name, count, *p_values in zip(
            published.label_names,
            published.assigned,
            published.labelled_p_values,
            published.named_p_values,
            strict=True,
        )
    }
    lasts = published.until - published.since if published.until and published.since else None
    # Contacts named by other places do not compare.
    asked = (published.contacts, lasts, parameters.places)
    made = _histogram(record, HISTOGRAM, counts, both, asked, {}, CONTACTS)
    return replace(
        made,
        days=window(published.since, published.until),
        step=step,
        unknown=CountInterval.around(
            published.unknown, one.radius() / step, published.unknown_p_value
        ),
    )


def _of_environments(record: PhaseRecord, published: Result) -> Histogram:
    """Return the histogram of one learning phase."""
    votes = published.label_votes
    noise = sum_noise(record, LABEL_VOTE, max(1, len(votes)))
    sums = [sum(row[index] for row in votes) for index in range(len(published.label_names))]
    p_values = count_p_values(sums, noise)
    counts, named = {}, {}
    for name, votes_for, p_value in zip(published.label_names, sums, p_values, strict=True):
        counts[name] = CountInterval.around(votes_for, noise.radius(), p_value)
        named[name] = published.names.count(name)
    asked = record.parameters.kind, getattr(record.parameters, "label_votes", 0)
    return _histogram(record, LABEL_VOTE, counts, noise, asked, named, VOTES)


def _of_labels(record: PhaseRecord, found: Discovered) -> Histogram:
    """Return the histogram of a discovery phase: the joint length of each label's prototypes.

    With several kinds of sound per label, that is the root of the sum of their squared lengths.
    Rows that are not prototypes, as they are not clear of the noise, are not included.
    """
    kinds = getattr(record.parameters, "kinds", 1)
    noise = length_noise(record, LABELS, kinds)
    radius, labels = noise.radius(CONFIDENCE) / GRID, found.label_names
    counts = {}
    for label, name in enumerate(labels):
        own = [
            row
            for row, (each, choice) in enumerate(zip(found.labels, found.choices, strict=True))
            if each == label and not choice
        ]
        length = math.hypot(*(found.lengths[row] for row in own))
        p_value = min((found.name_p_values[row] for row in own), default=1.0)
        counts[name] = CountInterval.around(length, radius, p_value)
    named = {name: found.names.count(name) for name in labels}
    # Rows of choices take a share of a phone's vector, so lengths with and without do not compare.
    finer = getattr(record.parameters, "rows", 0) > len(labels)
    asked = record.parameters.kind, LENGTHS, finer, kinds
    made = _histogram(record, LABELS, counts, noise, asked, named, LENGTHS)
    return replace(made, step=GRID)


def _histogram(
    record: PhaseRecord,
    part: str,
    counts: dict[str, CountInterval],
    noise: NoiseLaw | LengthNoise,
    asked: tuple[object, ...],
    environments: dict[str, int],
    what: str,
) -> Histogram:
    return Histogram(
        record.phase,
        record.finished or 0.0,
        counts,
        noise,
        summed_inputs(record, part),
        asked,
        environments,
        what,
    )


def by_frequency(histograms: Sequence[Histogram]) -> tuple[str, ...]:
    """Return all labels, the most frequent first; equally frequent ones by name."""
    totals: Counter[str] = Counter()
    for histogram in histograms:
        totals.update({label: count.published for label, count in histogram.counts.items()})
    return tuple(sorted(totals, key=lambda label: (-totals[label], label)))


def agreed_parameters(record: PhaseRecord) -> Parameters:
    """Return the parameters that phones received: once a phase runs, for those that joined."""
    if not record.steps:
        return record.parameters
    return msgspec.structs.replace(record.parameters, phones=record.joined)


def summed_inputs(record: PhaseRecord, name: str) -> int:
    """Return the number of phones in the sum of this part of a published phase."""
    parameters = agreed_parameters(record)
    step = parameters.plan().released_in(name)
    answered = (each.answered for each in record.steps if step and each.step == step.name)
    return next(answered, parameters.phones)


def sum_noise(record: PhaseRecord, name: str, entries: int = 1) -> NoiseLaw:
    """Return the law of the noise of a published sum.

    Args:
        record: Record of a published phase.
        name: Name of the part of the phase's plan.
        entries: Number of entries of the sum that are added up.
    """
    part = agreed_parameters(record).plan().part(name)
    if not isinstance(part, SecureSum):
        return SkellamNoise(0.0)
    return part.mechanism.noise(summed_inputs(record, name)).times(entries)


def length_noise(record: PhaseRecord, name: str, rows: int = 1) -> LengthNoise:
    """Return the noise in the length of rows of a published sum, in steps.

    Args:
        record: Record of a published discovery phase.
        name: Name of the part of the phase's plan.
        rows: Largest number of rows whose joint length is meant.
    """
    dimensions = getattr(record.parameters, "dimensions", 1)
    return LengthNoise(sum_noise(record, name).deviation, rows * dimensions)


def _oldest_first(histograms: Iterable[Histogram]) -> tuple[Histogram, ...]:
    return tuple(sorted(histograms, key=lambda histogram: histogram.finished))
