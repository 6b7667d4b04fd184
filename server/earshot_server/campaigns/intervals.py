"""Intervals of what noisy sums tell: counts, shares, and changes, at a stated confidence.

A sum's total is T = X + N: X contacts that occur as independent events do (Poisson, mean μ), and N
the noise of its entries, of known variance and nearly normal. An interval holds the value to which
μ leads, and so covers noise and chance. Each is a score interval: it holds every value that the
totals do not contradict, with the variance that they would have at that value. Nothing is divided
by a number that may be noise (E. C. Fieller, 1954): a ratio has a figure only where its denominator
is clear.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Iterable
from statistics import NormalDist
from typing import NamedTuple

import msgspec

CONFIDENCE = 0.95
_LARGEST_G = 0.25
"""Largest g of a denominator D, Fieller's ratio z² Var(D) / D²: below 1, intervals are bounded."""


class PublishedFigure(msgspec.Struct, frozen=True, kw_only=True):
    """A published number with its interval.

    Attributes:
        value: The number, as totals give it; noise may move it below 0.
        least: Lower end of the interval.
        most: Upper end.
    """

    value: float
    least: float
    most: float

    def over(self, divisor: float) -> PublishedFigure:
        """Return the figure and its interval divided by a known number above 0."""
        return PublishedFigure(
            value=self.value / divisor, least=self.least / divisor, most=self.most / divisor
        )


class NoisySum(NamedTuple):
    """Total of some entries of a secure sum.

    Attributes:
        total: The total, in contacts.
        variance: Variance of its noise, which is its own.
        common: Loadings of errors that it shares with other weeks under the same map: independent
            ones, of variance 1. Empty where the total has none.
    """

    total: float
    variance: float
    common: tuple[float, ...] = ()

    @property
    def error(self) -> float:
        """Variance of the noise and of the common errors."""
        return self.variance + self.covariance(self)

    def covariance(self, other: NoisySum) -> float:
        """Return the covariance of the errors that this total shares with that of another week."""
        return math.fsum(map(operator.mul, self.common, other.common))

    def is_clear(self, deviations: float) -> bool:
        """Return whether the total is so far above noise and chance that others may be over it."""
        varies = deviations**2 * (self.error + self.total)
        return self.total > 0 and varies < _LARGEST_G * self.total**2


def together(sums: Iterable[NoisySum]) -> NoisySum:
    """Return the total of sums with independent noise, and common errors of the same kinds."""
    listed = list(sums)
    return NoisySum(
        math.fsum(each.total for each in listed),
        math.fsum(each.variance for each in listed),
        tuple(
            map(math.fsum, itertools.zip_longest(*(each.common for each in listed), fillvalue=0.0))
        ),
    )


def level(confidence: float, intervals: int = 1) -> float:
    """Return the standard deviations that intervals reach so that all of them hold together.

    Args:
        confidence: Least probability that all intervals hold their values (Bonferroni).
        intervals: Number of the intervals.
    """
    return NormalDist().inv_cdf(1 - (1 - confidence) / (2 * intervals))


def count(of: NoisySum, deviations: float) -> PublishedFigure:
    """Return a count with its interval: all μ ≥ 0 with (T − μ)² ≤ z² (v + μ).

    Args:
        of: The total T, and the variance v of its errors.
        deviations: Standard deviations z that the interval reaches.
    """
    square = deviations**2
    middle = of.total + square / 2
    half = deviations * math.sqrt(max(0.0, of.error + of.total + square / 4))
    return PublishedFigure(
        value=of.total, least=max(0.0, middle - half), most=max(0.0, middle + half)
    )


def share(
    part: NoisySum, whole: NoisySum, deviations: float, covariance: float | None = None
) -> PublishedFigure | None:
    """Return the share of a part in the whole with its interval; None if the whole is not clear.

    With s the share, T the part and D the whole, T − s D has mean 0 and variance v − 2 s c + s² w +
    s (1 − s) M, M the contacts of the whole, for which D stands. The interval is all s from 0 to 1
    for which it is within z standard deviations.

    Args:
        part: The part T, and the variance v of its errors.
        whole: The whole D, and the variance w of its errors.
        deviations: Standard deviations z that the interval reaches.
        covariance: Covariance c of both errors; by default v, as for one of independent entries
            that make up the whole.
    """
    if covariance is None:
        covariance = part.error
    if not whole.is_clear(deviations):
        return None
    square = deviations**2
    ends = _ends(
        whole.total**2 - square * (whole.error - whole.total),
        part.total * whole.total + square * (whole.total / 2 - covariance),
        part.total**2 - square * part.error,
    )
    least, most = (min(1.0, max(0.0, end)) for end in ends)
    return PublishedFigure(value=part.total / whole.total, least=least, most=most)


class RateChange(NamedTuple):
    """A rate beside the rate before.

    Attributes:
        sign: 1 if the rate rose, −1 if it fell, 0 if noise and chance may explain the difference.
        change: Relative change, 0 for none, with its interval; None if the rate before is not
            clear.
    """

    sign: int
    change: PublishedFigure | None


def compared(now: NoisySum, before: NoisySum, ratio: float, deviations: float) -> RateChange:
    """Compare a rate with the rate before.

    With r the rate over the rate before, c the number of phones now over that before, k the
    covariance of common errors and M the contacts before, T − r c T' has mean 0 and variance v − 2
    r c k + r² c² v' + (r c + r² c²) M, for which T' stands where it is positive. The interval is
    all r for which it is within z standard deviations. The rate rose or fell if r = 1 is not among
    them, whether or not the rate before is clear.

    Args:
        now: The total T now, and the variance v of its errors.
        before: The total T' before, and the variance v' of its errors.
        ratio: Phones now over phones before, c.
        deviations: Standard deviations z that the interval reaches.
    """
    square, base = deviations**2, before.total * ratio
    contacts, error = max(0.0, base), before.error * ratio**2
    common = now.covariance(before) * ratio
    difference = now.total - base
    variance = now.error - 2 * common + error + (1 + ratio) * contacts
    sign = 0 if difference**2 <= square * variance else int(math.copysign(1, difference))
    if not before.is_clear(deviations):
        return RateChange(sign, None)
    ends = _ends(
        base**2 - square * (error + ratio * contacts),
        now.total * base + square * (contacts / 2 - common),
        now.total**2 - square * now.error,
    )
    least, most = (max(0.0, end) - 1 for end in ends)
    return RateChange(sign, PublishedFigure(value=now.total / base - 1, least=least, most=most))


def _ends(curvature: float, middle: float, constant: float) -> tuple[float, float]:
    """Return the roots of a x² − 2 m x + c, a above 0, or its minimum where it has none."""
    half = math.sqrt(max(0.0, middle**2 - curvature * constant))
    return (middle - half) / curvature, (middle + half) / curvature
