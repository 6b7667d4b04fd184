"""How often each label occurs, over time (thesis, section 7.2).

There are two sources. *Global* labels are those of published learning phases: few, and already
paid for. *Private* histograms are those of statistics phases: each phone counts its own contacts,
and a secure sum adds the counts up. Both are sums of the phones' numbers and of their noise, so
each is shown with the interval in which the true number lies.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from earshot_protocol.phases.learning import LABEL_VOTE, Result
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import SecureSum
from earshot_protocol.phases.statistics import HISTOGRAM, Statistics
from earshot_server.records import PhaseRecord

CONFIDENCE = 0.95
"""How often an interval holds the true number."""

_FINEST_SCALE = 512.0
"""Noise of a larger scale is computed on a coarser grid."""


class Interval(NamedTuple):
    """A noisy count as published, and where the true one lies."""

    published: int
    least: int
    most: int

    @classmethod
    def around(cls, published: int, radius: int) -> Interval:
        """Of a count that cannot be negative."""
        return cls(published, max(0, published - radius), max(0, published + radius))


class SumNoise(NamedTuple):
    """The noise in an entry of a sum.

    Attributes:
        scale: of the mechanism's discrete Laplace noise, in counts.
        order: of the negative binomial variables; 0 where there is no noise.
    """

    scale: float
    order: float

    def radius(self, confidence: float = CONFIDENCE) -> int:
        """What it does not exceed, with that probability."""
        return noise_radius(self.scale, self.order, confidence) if self.order else 0


@dataclass(frozen=True)
class Histogram:
    """How often each label occurs in one phase.

    Attributes:
        phase: identifier, 16 bytes.
        finished: when it was published, in seconds since 1970.
        counts: by label: votes for it in a learning phase, contacts in a statistics phase.
        noise: in each count.
        inputs: the phones whose numbers were added up.
        asked: what phones were asked for; numbers compare where it is the same.
        environments: by label, the environments that were given it; empty in a statistics phase.
    """

    phase: bytes
    finished: float
    counts: dict[str, Interval]
    noise: SumNoise
    inputs: int
    asked: tuple[object, ...]
    environments: dict[str, int]

    @property
    def radius(self) -> int:
        """What the noise of a count does not exceed, with probability `CONFIDENCE`."""
        return self.noise.radius()


def global_histograms(records: Iterable[PhaseRecord]) -> tuple[Histogram, ...]:
    """Votes for each label over all environments of a learning phase, oldest phase first.

    Phases without such a result are left out.
    """
    return _oldest_first(
        _of_environments(record, record.ending)
        for record in records
        if isinstance(record.ending, Result)
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
    parameters = record.parameters
    noise = sum_noise(record, HISTOGRAM)
    counts = {
        name: Interval.around(count, noise.radius())
        for name, count in zip(published.label_names, published.contacts, strict=True)
    }
    asked = (getattr(parameters, "contacts", 0),)
    return _histogram(record, HISTOGRAM, counts, noise, asked, {})


def _of_environments(record: PhaseRecord, published: Result) -> Histogram:
    """The histogram of one learning phase."""
    parameters, votes = record.parameters, published.label_votes
    noise = sum_noise(record, LABEL_VOTE, max(1, len(votes)))
    counts, named = {}, {}
    for index, name in enumerate(published.label_names):
        counts[name] = Interval.around(sum(row[index] for row in votes), noise.radius())
        named[name] = published.labels.count(index)
    asked = (getattr(parameters, "label_votes", 0),)
    return _histogram(record, LABEL_VOTE, counts, noise, asked, named)


def _histogram(
    record: PhaseRecord,
    part: str,
    counts: dict[str, Interval],
    noise: SumNoise,
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


def sum_noise(record: PhaseRecord, name: str, entries: int = 1) -> SumNoise:
    """The noise of a published sum.

    Args:
        record: of a published phase.
        name: of the part of the phase's plan.
        entries: how many entries of the sum are added up.
    """
    part = agreed_parameters(record).plan().part(name)
    if not isinstance(part, SecureSum):
        return SumNoise(0.0, 0.0)
    mechanism = part.mechanism
    order = entries * summed_inputs(record, name) / mechanism.honest_survivors
    return SumNoise(mechanism.scale, order)


@functools.lru_cache(maxsize=256)
def noise_radius(scale: float, order: float, confidence: float = CONFIDENCE) -> int:
    """The smallest r for which noise lies in [−r, r] with some probability.

    The noise is the difference of two variables NegativeBinomial(order, exp(−1/scale)). Order 1 is
    discrete Laplace noise; each phone that stays adds a share of order 1/n', n' of them being
    counted on, and orders add up. Its characteristic function is
    ((1 − α)² / (1 − 2α cos t + α²))^order, whose inverse transform is taken numerically.

    Args:
        scale: of the discrete Laplace noise, in counts.
        order: positive.
        confidence: the probability, at most 1 − 10⁻⁹, beyond which the transform has no digits.
    """
    # On a coarser grid the law hardly changes; the radius is rounded up to it.
    grid = max(1, math.ceil(scale / _FINEST_SCALE))
    ratio = math.exp(-grid / scale)
    deviation = math.sqrt(2 * order * ratio) / (1 - ratio)
    size = 2 ** math.ceil(math.log2(2 * (8 * deviation + 40 * scale / grid) + 8))
    angles = 2 * np.pi * np.arange(size // 2 + 1) / size
    # 1 − 2α cos t + α² as (1 − α)² + 4α sin²(t/2), which loses no digits near t = 0.
    growth = 4 * ratio * (np.sin(angles / 2) / (1 - ratio)) ** 2
    law = np.fft.irfft(np.exp(-order * np.log1p(growth)), size)
    within = law[0] + 2 * np.concatenate([[0.0], np.cumsum(law[1 : size // 2])])
    return grid * int(np.argmax(within >= confidence))


def _oldest_first(histograms: Iterable[Histogram]) -> tuple[Histogram, ...]:
    return tuple(sorted(histograms, key=lambda histogram: histogram.finished))
