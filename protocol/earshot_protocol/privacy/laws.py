"""Exact laws of the noise on an entry of a secure sum, by which published sums are read.

The noise depends on how many phones added their share: laws of more shares are of the same family.
Each has a characteristic function, from which tails are computed, and a moment generating function,
which bounds them.
"""

from __future__ import annotations

import functools
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from earshot_protocol.overriding import override

Floats = npt.NDArray[np.float64]

_LARGEST_REACH = 2**17
"""Reach of noise beyond which it is computed on a grid coarser than the integers."""
_FAR = 2**61
_NEGLIGIBLE = math.log(1e15)
_TILTS = np.linspace(0.002, 0.998, 499)


class NoiseLaw(ABC):
    """A symmetric law of whole numbers, the sum of independent shares; hashable."""

    @abstractmethod
    def times(self, factor: float) -> Self:
        """Return the law of `factor`, at least 0, times as much independent noise of this kind."""

    @property
    @abstractmethod
    def deviation(self) -> float:
        """Standard deviation."""

    @abstractmethod
    def coarser(self, grid: int) -> Self:
        """Return the approximate law of this noise in units of `grid`."""

    @abstractmethod
    def log_characteristic(self, angles: Floats) -> Floats:
        """Return log E[e^(itN)] at each angle t, which is real and at most 0."""

    @abstractmethod
    def log_moments(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return tilts θ > 0 and log E[e^(θN)] at each.

        Args:
            shares: Positions among the tilts that are worth trying, between 0 and 1, ascending.
        """

    @property
    def of_difference(self) -> Self:
        """Law of the noise on the difference of two entries: twice as much, by symmetry."""
        return self.times(2)

    def at_least(self, values: npt.ArrayLike) -> Floats:
        """Return P(noise ≥ value) for each value, with an absolute error below 10⁻¹².

        Noise that reaches further than 2^17 is computed on a grid of at most a thousandth of its
        scale, and values are rounded towards zero.
        """
        grid, tail = _tail(self)
        numbers = bounded(values)
        above = tail[np.clip(numbers // grid, 0, len(tail) - 1)]
        below = tail[np.clip(-((numbers - 1) // grid), 0, len(tail) - 1)]
        return np.where(numbers > 0, above, 1.0 - below)

    def radius(self, confidence: float = 0.95) -> int:
        """Return the smallest r for which the noise lies in [−r, r] with this probability."""
        grid, tail = _tail(self)
        return grid * int(np.argmax(2 * tail[1:] <= 1 - confidence))

    def tail_bound(self, probability: float) -> int:
        """Return a T that the noise exceeds with at most this probability, on either side.

        Chernoff's bound: P(noise > T) ≤ E[exp(θ · noise)] · exp(−θT) for every θ that has a moment.

        Args:
            probability: Probability of one side, between 0 and 1.
        """
        tilts, moments = self.log_moments(_TILTS)
        return math.ceil(float(np.min((moments - math.log(probability)) / tilts)))


@dataclass(frozen=True)
class DiscreteLaplaceNoise(NoiseLaw):
    """Difference X − Y with X, Y ~ NegativeBinomial(order, exp(−1/scale)).

    Order 1 is discrete Laplace noise. A phone's share has order 1/n', n' being the phones that are
    counted on, and orders add up: m phones that stayed make m/n' (`noise.polya_share`).

    Attributes:
        scale: Scale of discrete Laplace noise, above 0.
        order: Amount of that noise, at least 0.
    """

    scale: float
    order: float

    @override
    def times(self, factor: float) -> Self:
        return type(self)(self.scale, factor * self.order)

    @property
    @override
    def deviation(self) -> float:
        ratio = math.exp(-1 / self.scale)
        return math.sqrt(2 * self.order * ratio) / -math.expm1(-1 / self.scale)

    @override
    def coarser(self, grid: int) -> Self:
        return type(self)(self.scale / grid, self.order)

    @override
    def log_characteristic(self, angles: Floats) -> Floats:
        """Return the logarithm of ((1 − α)² / (1 − 2α cos t + α²))^order at each angle t."""
        ratio = math.exp(-1 / self.scale)
        # 1 − 2α cos t + α² as (1 − α)² + 4α sin²(t/2), which loses no digits near t = 0.
        growth = 4 * ratio * (np.sin(angles / 2) / -math.expm1(-1 / self.scale)) ** 2
        return np.asarray(-self.order * np.log1p(growth))

    @override
    def log_moments(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return tilts θ < 1/scale and the log of ((1 − α)² / ((1 − αe^θ)(1 − αe^−θ)))^order."""
        moments = self.order * (
            2 * math.log(-math.expm1(-1 / self.scale))
            - np.log(-np.expm1(-(1 - shares) / self.scale))
            - np.log(-np.expm1(-(1 + shares) / self.scale))
        )
        return shares / self.scale, moments


@dataclass(frozen=True)
class SkellamNoise(NoiseLaw):
    """Difference of two Poisson variables of the same rate, half the variance each.

    Attributes:
        variance: Variance of the noise, at least 0.
    """

    variance: float

    @override
    def times(self, factor: float) -> Self:
        return type(self)(factor * self.variance)

    def plus(self, other: SkellamNoise) -> SkellamNoise:
        """Return the law of the sum of both independent noises, or of their difference."""
        return SkellamNoise(self.variance + other.variance)

    @property
    @override
    def deviation(self) -> float:
        return math.sqrt(self.variance)

    @override
    def coarser(self, grid: int) -> Self:
        return type(self)(self.variance / grid**2)

    @override
    def log_characteristic(self, angles: Floats) -> Floats:
        """Return variance · (cos t − 1) at each angle t."""
        return np.asarray(-2 * self.variance * np.sin(angles / 2) ** 2)

    @override
    def log_moments(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return tilts θ and variance · (cosh θ − 1) at each.

        The best tilt for a tail of probability p is near √(2 ln 1/p) deviations for much noise and
        grows with ln(1 / variance) for little; 20 and 64 of them are beyond any that is needed.
        """
        largest = 64.0 if self.variance < 1 else min(64.0, 20 / math.sqrt(self.variance))
        tilts = shares * largest
        return tilts, 2 * self.variance * np.sinh(tilts / 2) ** 2


@dataclass(frozen=True)
class DiscreteGaussianNoise(NoiseLaw):
    """Sum of independent variables with probabilities proportional to exp(−x² / (2σ²)).

    Attributes:
        variance: Parameter σ² of each variable, at least 1: its variance, all but a part below
            10⁻⁶.
        order: Number of variables, at least 0.
    """

    variance: float
    order: float

    @override
    def times(self, factor: float) -> Self:
        return type(self)(self.variance, factor * self.order)

    @property
    @override
    def deviation(self) -> float:
        return math.sqrt(self.order * self.variance)

    @override
    def coarser(self, grid: int) -> Self:
        return type(self)(self.variance / grid**2, self.order)

    @override
    def log_characteristic(self, angles: Floats) -> Floats:
        """Return the logarithm of (θ(t) / θ(0))^order, θ(t) = Σ_k exp(−σ² (t + 2πk)² / 2).

        That is Poisson's summation of the law; angles are reduced to [−π, π], where five terms
        leave less than 10⁻³⁰ of the rest.
        """
        reduced = np.mod(angles + np.pi, 2 * np.pi) - np.pi
        shifts = 2 * np.pi * np.arange(-2, 3)
        exponents = -self.variance / 2 * (reduced[..., None] + shifts) ** 2
        whole = np.log(np.exp(-self.variance / 2 * shifts**2).sum())
        return np.asarray(self.order * (np.logaddexp.reduce(exponents, axis=-1) - whole))

    @override
    def log_moments(self, shares: Floats) -> tuple[Floats, Floats]:
        """Return tilts θ and order · σ² θ² / 2, which bounds the logarithm (Canonne et al.)."""
        tilts = shares * 20 / max(1.0, self.deviation)
        return tilts, self.order * self.variance * tilts**2 / 2


def bounded(values: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """Clip integers to a range that no noise reaches and in which differences still fit."""
    clipped: npt.NDArray[np.int64] = np.clip(np.asarray(values, dtype=object), -_FAR, _FAR)
    return clipped.astype(np.int64)


@functools.lru_cache(maxsize=64)
def _tail(law: NoiseLaw) -> tuple[int, Floats]:
    """Return a grid, and P(N ≥ j · grid) for j = 0, 1, …, as far as it is not negligible.

    The inverse transform of the characteristic function is taken numerically, at enough points for
    the probability beyond them to be below 10⁻¹⁵.
    """
    grid = 1 + _reach(law) // _LARGEST_REACH
    law = law.coarser(grid)
    size = 2 ** math.ceil(math.log2(2 * _reach(law) + 8))
    angles = 2 * np.pi * np.arange(size // 2 + 1) / size
    probabilities = np.fft.irfft(np.exp(law.log_characteristic(angles)), size)[1 : size // 2]
    # Rounding may leave a negligible probability below zero; zero is the safe value.
    tail = np.cumsum(np.append(0.0, probabilities.clip(0)[::-1]))[::-1]
    return grid, np.append(1.0 - tail[0], tail)


def _reach(law: NoiseLaw) -> int:
    """Return a bound exceeded with probability below 10⁻¹⁵, by the best Chernoff bound."""
    tilts, moments = law.log_moments(np.arange(1, 20) / 20)
    return math.ceil(float(((moments + _NEGLIGIBLE) / tilts).min()))
