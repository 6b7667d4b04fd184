"""Noise that is drawn as integers: discrete Laplace and Gaussian, and shares of noise.

Floating-point samples of real-valued noise have gaps that reveal the secret (Mironov, CCS 2012).
Here a sample is decided by comparing 128 uniform bits with thresholds that were computed to 60
digits; the lower 64 bits are only drawn when the upper ones tie. A sample's law differs from the
named one by a statistical distance below 2^-127 for each decision (a binary digit, a coin, an entry
of a table), and never by a rounded noise value.
"""

from __future__ import annotations

import bisect
import decimal
import functools
import math
import os
from collections.abc import Iterable
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.randomness import RandomBytes

Size = int | tuple[int, ...]

_CONTEXT = decimal.Context(prec=60, Emin=decimal.MIN_EMIN, Emax=decimal.MAX_EMAX)
_GRID = 2**128

LARGEST_SCALE = 2.0**52
"""Largest scale of discrete Laplace and Gaussian noise: samples stay below 2^60."""
LARGEST_SHARED_SCALE = 2.0**14
"""Largest scale of Pólya shares, whose table has about 89 entries per unit of scale."""
LARGEST_RATE = 2.0**26
"""Largest rate of the Poisson variables that make a Skellam share."""
SMALLEST_SIGMA = 2.0**-10
_DOUBT = 2.0**-40
"""Difference far above the error of a double-precision acceptance probability (about 2^-49)."""


def discrete_laplace(
    scale: float, size: Size, random: RandomBytes = os.urandom
) -> npt.NDArray[np.int64]:
    """Draw integers x with probability proportional to exp(−|x| / scale).

    A sample is the difference of two geometric variables P(g) ∝ α^g, α = exp(−1/scale). As α^g
    factors over the binary digits of g, these are independent: digit j is one with probability
    α^(2^j) / (1 + α^(2^j)). Digits j with α^(2^j) < 2^-128 are zero.

    Args:
        scale: Sensitivity over ε, positive, at most 2^52.
        size: Shape of the result.
        random: Source of bytes; a seeded one belongs in simulations only.

    Raises:
        InvalidParametersError: The scale is not positive, finite and at most 2^52.
    """
    digits = _laplace_digits(checks.positive("scale", scale, LARGEST_SCALE))
    count = _count(size)
    shape = (2, len(digits.high), count)
    words = _words(math.prod(shape), random).reshape(shape)
    ones = _below(words, digits.high[:, None], digits.low[:, None], random)
    weights = np.left_shift(1, np.arange(len(digits.high)))
    minuend, subtrahend = np.einsum("sjc,j->sc", ones, weights, dtype=np.int64)
    difference: npt.NDArray[np.int64] = minuend - subtrahend
    return difference.reshape(size)


def polya_share(
    scale: float, shares: int, size: Size, random: RandomBytes = os.urandom
) -> npt.NDArray[np.int64]:
    """Draw one of `shares` independent integers that add up to exactly `discrete_laplace` noise.

    A share is X − Y with X, Y ~ NegativeBinomial(1/shares, α), α = exp(−1/scale): a geometric
    variable is infinitely divisible (Goryczka and Xiong, IEEE TDSC 2017, section 5.1).

    Args:
        scale: Scale of the sum's noise; positive, at most 2^14.
        shares: Least number of shares that are added, n'.
        size: Shape of the result.
        random: Source of bytes; a seeded one belongs in simulations only.

    Raises:
        InvalidParametersError: The scale or the number of shares is out of range.
    """
    return _difference(_shared_table(scale, shares), size, random)


def polya_share_bound(scale: float, shares: int, probability: float) -> int:
    """Return a B with P(|share| > B) ≤ probability, for one entry of `polya_share`.

    A union bound: |X − Y| > B needs X > B or Y > B, so B is the smallest integer with 2 P(X > B) ≤
    probability, read from the table that is sampled from.

    Args:
        scale: Scale as in `polya_share`.
        shares: Number of shares as in `polya_share`.
        probability: Probability between 0 and 1, such as 2^-60.

    Raises:
        InvalidParametersError: A parameter is out of range.
    """
    table = _shared_table(scale, shares)
    checks.probability("probability", probability)
    needed = _GRID - int(_CONTEXT.multiply(Decimal(probability), Decimal(_GRID // 2)))
    return bisect.bisect_left(range(len(table.high)), needed, key=table.value)


def skellam_share(
    variance: float, shares: int, size: Size, random: RandomBytes = os.urandom
) -> npt.NDArray[np.int64]:
    """Draw one of `shares` independent integers whose sum is Skellam noise of this variance.

    A share is X − Y with X, Y ~ Poisson(variance / (2 · shares)): Poisson variables add up
    (Agarwal, Kairouz and Liu, NeurIPS 2021).

    Args:
        variance: Variance of the sum's noise; positive.
        shares: Least number of shares that are added, n'.
        size: Shape of the result.
        random: Source of bytes; a seeded one belongs in simulations only.

    Raises:
        InvalidParametersError: The number of shares or the rate of a share is out of range, see
            `skellam_rate`.
    """
    return _difference(_poisson_table(skellam_rate(variance, shares)).above, size, random)


def skellam_share_bound(variance: float, shares: int, probability: float) -> int:
    """Return a B with P(|share| > B) ≤ probability, for one entry of `skellam_share`.

    A union bound: |X − Y| > B needs one of both to be further than B / 2 from some number between
    them, so B is twice the least distance from their rate that each exceeds with half of the
    probability, read from the table that is sampled from.

    Args:
        variance: Variance as in `skellam_share`.
        shares: Number of shares as in `skellam_share`.
        probability: Probability between 0 and 1, such as 2^-60.

    Raises:
        InvalidParametersError: A parameter is out of range.
    """
    rate = skellam_rate(variance, shares)
    table = _poisson_table(rate)
    checks.probability("probability", probability)
    quarter = int(_CONTEXT.multiply(Decimal(probability), Decimal(_GRID // 4)))
    places = range(len(table.above.high))
    largest = table.least + bisect.bisect_left(places, _GRID - quarter, key=table.above.value)
    smallest = table.least + bisect.bisect_left(places, quarter, key=table.above.value)
    return 2 * math.ceil(max(largest - rate, rate - smallest))


def skellam_rate(variance: float, shares: int) -> float:
    """Return the rate of the two Poisson variables that make a share.

    Raises:
        InvalidParametersError: The rate is not above 0 and at most 2^26, at which the table has 2 ·
            10^5 entries; the message says which variance would be accepted.
    """
    most = 2 * LARGEST_RATE * checks.whole("shares", shares)
    return checks.positive("variance", variance, most) / (2 * shares)


def discrete_gaussian(
    sigma: float, size: Size, random: RandomBytes = os.urandom
) -> npt.NDArray[np.int64]:
    """Draw integers x with probability proportional to exp(−x² / (2σ²)).

    Rejection from discrete Laplace noise of scale t = ⌊σ⌋ + 1, accepted with probability exp(−(|x|
    − σ²/t)² / (2σ²)) (Canonne, Kamath and Steinke, NeurIPS 2020, Algorithm 3).

    Args:
        sigma: Parameter σ, from 2^-10 to 2^52 − 1; the variance is at most σ².
        size: Shape of the result.
        random: Source of bytes; a seeded one belongs in simulations only.

    Raises:
        InvalidParametersError: The value of σ is not a number in this range.
    """
    sigma = checks.between("sigma", sigma, SMALLEST_SIGMA, LARGEST_SCALE - 1)
    count = _count(size)
    accepted = np.empty(0, dtype=np.int64)
    while len(accepted) < count:
        missing = count - len(accepted)
        proposals = discrete_laplace(math.floor(sigma) + 1, missing + missing // 2 + 8, random)
        passed = proposals[_gaussian_acceptance(proposals, sigma, random)]
        accepted = np.concatenate([accepted, passed])
    return accepted[:count].reshape(size)


class _Thresholds(NamedTuple):
    """Integers below 2^128 in two halves, uint64 of shape (thresholds,) each."""

    high: npt.NDArray[np.uint64]
    low: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, values: Iterable[int]) -> _Thresholds:
        halves = [divmod(min(value, _GRID - 1), 2**64) for value in values]
        table = np.array(halves, dtype=np.uint64).reshape(-1, 2)
        return cls(table[:, 0].copy(), table[:, 1].copy())

    def value(self, index: int) -> int:
        return int(self.high[index]) << 64 | int(self.low[index])


@functools.lru_cache(maxsize=256)
def _laplace_digits(scale: float) -> _Thresholds:
    """Return probabilities that the digits 0, 1, 2, … of a geometric variable are one."""
    with decimal.localcontext(_CONTEXT):
        thresholds = []
        power = (-1 / Decimal(scale)).exp()
        while _on_grid(power) > 0:
            thresholds.append(_on_grid(power / (1 + power)))
            power *= power
    return _Thresholds.of(thresholds)


@functools.lru_cache(maxsize=64)
def _polya_table(scale: float, shares: int) -> _Thresholds:
    """Return P(X ≤ 0), P(X ≤ 1), … < 1 of NegativeBinomial(1/shares, exp(−1/scale))."""
    thresholds = []
    with decimal.localcontext(_CONTEXT):
        ratio = (-1 / Decimal(scale)).exp()
        order = 1 / Decimal(shares)
        probability = (order * (1 - ratio).ln()).exp()
        cumulative = probability
        while cumulative * _GRID < _GRID - 1:
            thresholds.append(_on_grid(cumulative))
            probability *= ratio * (len(thresholds) - 1 + order) / len(thresholds)
            cumulative += probability
    return _Thresholds.of([*thresholds, _GRID])


class _PoissonTable(NamedTuple):
    """Table of P(X ≤ least), P(X ≤ least + 1), …; P(X < least) is below 2^-128."""

    least: int
    above: _Thresholds


@functools.lru_cache(maxsize=64)
def _poisson_table(rate: float) -> _PoissonTable:
    """Return the table of Poisson(rate): weights relative to the mode's, divided by their sum.

    Both ends are cut where everything beyond is below 2^-135 of the whole.
    """
    mode = math.floor(rate)
    with decimal.localcontext(_CONTEXT):
        exact, least = Decimal(rate), Decimal(2) ** -160
        above, below = [Decimal(1)], [Decimal(1)]
        # Behind a weight below 2^-160 that falls by r from one to the next, 2^-160 / (1 − r) is
        # left; rates of at most 2^26 keep 1 − r above 2^-24.
        while above[-1] > least:
            above.append(above[-1] * exact / (mode + len(above)))
        while len(below) <= mode and below[-1] > least:
            below.append(below[-1] * (mode + 1 - len(below)) / exact)
        weights = [*reversed(below), *above[1:]]
        whole = sum(weights)
        thresholds, cumulative = [], Decimal(0)
        for weight in weights:
            cumulative += weight
            thresholds.append(_on_grid(cumulative / whole))
    thresholds[-1] = _GRID
    return _PoissonTable(mode + 1 - len(below), _Thresholds.of(thresholds))


def _difference(table: _Thresholds, size: Size, random: RandomBytes) -> npt.NDArray[np.int64]:
    """Draw X − Y by a table of P(X ≤ least), P(X ≤ least + 1), …; `least` cancels.

    A draw is the number of thresholds at or below 128 uniform bits.
    """
    words = _words(2 * _count(size), random)
    draws = np.searchsorted(table.high, words, side="left")
    ties = table.high[draws] == words  # the last threshold is the largest that there is
    for index in np.flatnonzero(ties):
        uniform = int(words[index]) << 64 | int(_words(1, random)[0])
        draws[index] = bisect.bisect_right(range(len(table.high)), uniform, key=table.value)
    positive, negative = draws.reshape(2, -1)
    return (positive - negative).reshape(size)


def _shared_table(scale: float, shares: int) -> _Thresholds:
    scale = checks.positive("scale", scale, LARGEST_SHARED_SCALE)
    return _polya_table(scale, checks.whole("shares", shares))


def _gaussian_acceptance(
    proposals: npt.NDArray[np.int64], sigma: float, random: RandomBytes
) -> npt.NDArray[np.bool_]:
    """Toss coins with probability exp(−(|x| − σ²/t)² / (2σ²)), bool of shape (proposals,).

    Doubles settle the comparison where it is not close; the rest is settled in 128 bits, so the
    outcome is that of the integer comparison alone.
    """
    words = _words(len(proposals), random)
    centre = sigma * sigma / (math.floor(sigma) + 1)
    exponents = np.square((np.abs(proposals) - centre) / sigma) / 2
    differences = words * 2.0**-64 - np.exp(-exponents)
    accepted = differences < 0
    close = np.flatnonzero(np.abs(differences) < _DOUBT)
    exact = _Thresholds.of(_exact_acceptance(int(proposals[i]), sigma) for i in close)
    accepted[close] = _below(words[close], exact.high, exact.low, random)
    return accepted


def _exact_acceptance(proposal: int, sigma: float) -> int:
    with decimal.localcontext(_CONTEXT):
        variance = Decimal(sigma) * Decimal(sigma)
        distance = abs(proposal) - variance / (math.floor(sigma) + 1)
        return _on_grid((-distance * distance / (2 * variance)).exp())


def _on_grid(probability: Decimal) -> int:
    return int(probability * _GRID)


def _below(
    words: npt.NDArray[np.uint64],
    high: npt.NDArray[np.uint64],
    low: npt.NDArray[np.uint64],
    random: RandomBytes,
) -> npt.NDArray[np.bool_]:
    """Return whether 128 uniform bits, `words` their upper half, are below high · 2^64 + low."""
    below = words < high
    ties = np.nonzero(words == high)
    if len(ties[0]):
        limits = np.broadcast_to(low, words.shape)[ties]
        below[ties] = _words(len(limits), random) < limits
    return below


def _words(count: int, random: RandomBytes) -> npt.NDArray[np.uint64]:
    return np.frombuffer(random(8 * count), dtype="<u8")


def _count(size: Size) -> int:
    return math.prod(size) if isinstance(size, tuple) else size
