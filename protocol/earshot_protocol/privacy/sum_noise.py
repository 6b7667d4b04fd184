"""Noise on the entries of a sum, by its source: shares of many phones, or two operators.

Phones' shares add up to the noise that a mechanism promises if at least n' of them are honest and
stay. An operator adds the whole noise by itself, so that nothing depends on the crowd: the other
operator learns no more than this noise allows, and the published total has both
(docs/decisions/0056-two-operators.md).
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import ClassVar

import msgspec
import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.privacy.conversions import secure_sum_delta
from earshot_protocol.privacy.events import (
    DiscreteLaplaceSum,
    Pure,
    SkellamSum,
    ZeroConcentrated,
)
from earshot_protocol.privacy.laws import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    NoiseLaw,
    SkellamNoise,
)
from earshot_protocol.privacy.noise import (
    Size,
    discrete_gaussian,
    discrete_laplace,
    polya_share,
    polya_share_bound,
    skellam_share,
    skellam_share_bound,
)
from earshot_protocol.randomness import RandomBytes

Vector = npt.NDArray[np.int64]

OPERATORS = 2
"""Operators that add the whole noise, each its own."""
FINENESS = 2**16
"""Steps per unit of a scale or variance, stated as a whole number: the same for all parties."""
_LARGEST = 2**62
"""Largest such number: a standard deviation of 2^23, or a scale of 2^46."""


@dataclass(frozen=True)
class LaplaceShares:
    """Discrete Laplace noise in Pólya shares, one a phone.

    Attributes:
        scale: Scale of the noise on an entry.
        survivors: Least number of phones that stay and add their share honestly, n'.
    """

    scale: float
    survivors: int
    name: ClassVar[str] = "discrete Laplace noise"

    def law(self, inputs: float) -> DiscreteLaplaceNoise:
        """Return the law of the noise on an entry of a sum over this many phones' inputs."""
        return DiscreteLaplaceNoise(self.scale, inputs / self.survivors)

    def share(self, size: Size, random: RandomBytes = os.urandom) -> Vector:
        """Draw one phone's share, int64."""
        return polya_share(self.scale, self.survivors, size, random)

    def share_bound(self, probability: float) -> int:
        """Return a magnitude that an entry of a share exceeds with at most this probability.

        Raises:
            InvalidParametersError: The scale is too large for shares.
        """
        return polya_share_bound(self.scale, self.survivors, probability)

    def event(self, l1: float) -> DiscreteLaplaceSum:
        """Return the event of a sum whose neighbours are this far apart."""
        return DiscreteLaplaceSum(self.scale, l1)

    def delta(self, epsilon: float) -> float:
        """Return the δ of the secure sum at this ε."""
        return secure_sum_delta(epsilon)


@dataclass(frozen=True)
class SkellamShares:
    """Skellam noise in shares, one a phone.

    Attributes:
        variance: Variance of the noise on an entry.
        survivors: Least number of phones that stay and add their share honestly, n'.
    """

    variance: float
    survivors: int
    name: ClassVar[str] = "Skellam noise"

    def law(self, inputs: float) -> SkellamNoise:
        """Return the law of the noise on an entry of a sum over this many phones' inputs."""
        return SkellamNoise(self.variance * inputs / self.survivors)

    def share(self, size: Size, random: RandomBytes = os.urandom) -> Vector:
        """Draw one phone's share, int64."""
        return skellam_share(self.variance, self.survivors, size, random)

    def share_bound(self, probability: float) -> int:
        """Return a magnitude that an entry of a share exceeds with at most this probability."""
        return skellam_share_bound(self.variance, self.survivors, probability)

    def event(self, l1: float, l2: float) -> SkellamSum:
        """Return the event of a sum whose neighbours are this far apart."""
        return SkellamSum(self.variance, l1, l2)


class _WholeNoise(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="law"):
    """Noise that each operator adds to every entry; it is stated in an offer of a sum."""

    def share(self, size: Size, random: RandomBytes = os.urandom) -> Vector:
        """Return zeros: phones add nothing."""
        return np.zeros(size, dtype=np.int64)

    def share_bound(self, probability: float) -> int:
        """Return 0: phones add nothing."""
        return 0


class WholeLaplace(_WholeNoise, frozen=True, tag="discrete-laplace"):
    """Discrete Laplace noise, whole from each of two operators.

    Attributes:
        fine_scale: Scale in 2^-16 votes.
    """

    fine_scale: int
    name: ClassVar[str] = LaplaceShares.name

    @classmethod
    def of(cls, scale: float) -> WholeLaplace:
        """Return noise of at least this scale."""
        return cls(math.ceil(scale * FINENESS))

    @property
    def scale(self) -> float:
        """Scale of one operator's noise, in votes."""
        return self.fine_scale / FINENESS

    def check(self) -> None:
        """Refuse noise outside the samplers' range.

        Raises:
            InvalidParametersError: The scale is out of range.
        """
        checks.whole("fine_scale", self.fine_scale, 1, _LARGEST)

    def law(self, inputs: float) -> DiscreteLaplaceNoise:
        """Return the law of both operators' noise on an entry, whatever the number of inputs."""
        return DiscreteLaplaceNoise(self.scale, OPERATORS)

    def reach(self, length: int) -> int:
        """Return a bound that noise on `length` entries exceeds with probability at most 2^-80.

        The noise is that of both operators together. Integers alone are used, so that all parties
        get the same: 0.7 is above ln 2.
        """
        return 2 * (7 * self.fine_scale * (_bits(length) + 2) // (10 * FINENESS) + 1)

    def drawn(self, size: Size, random: RandomBytes = os.urandom) -> Vector:
        """Draw one operator's noise, int64."""
        return discrete_laplace(self.scale, size, random)

    def protects_as(self, other: NoiseOfOperators) -> bool:
        """Return whether this noise is of the same kind as the other, and at least as large."""
        return isinstance(other, WholeLaplace) and self.fine_scale >= other.fine_scale

    def event(self, l1: float) -> Pure:
        """Return the event of a sum whose neighbours are this far apart: one operator's noise.

        The other operator knows its own noise, so that noise does not count against it.
        """
        return Pure(l1 / self.scale)

    def delta(self, epsilon: float) -> float:
        """Return 0: nothing in the sum fails by chance."""
        return 0.0


class WholeGaussian(_WholeNoise, frozen=True, tag="discrete-gaussian"):
    """Discrete Gaussian noise, whole from each of two operators.

    Attributes:
        fine_variance: Parameter σ² of one operator's noise on an entry, in 2^-16.
    """

    fine_variance: int
    name: ClassVar[str] = "discrete Gaussian noise"

    @classmethod
    def of(cls, variance: float) -> WholeGaussian:
        """Return noise of at least this variance."""
        return cls(math.ceil(variance * FINENESS))

    @property
    def variance(self) -> float:
        """Parameter σ² of one operator's noise."""
        return self.fine_variance / FINENESS

    def check(self) -> None:
        """Refuse noise outside the samplers' range.

        Raises:
            InvalidParametersError: The variance is out of range.
        """
        checks.whole("fine_variance", self.fine_variance, 1, _LARGEST)

    def law(self, inputs: float) -> NoiseLaw:
        """Return the law of both operators' noise on an entry, whatever the number of inputs."""
        return DiscreteGaussianNoise(self.variance, OPERATORS)

    def reach(self, length: int) -> int:
        """Return a bound that noise on `length` entries exceeds with probability at most 2^-80.

        The noise is that of both operators together, for which P(noise > t) ≤ exp(−t² / (2 · 2σ²)).
        Integers alone are used, as for `WholeLaplace`.
        """
        parts = 4 * self.fine_variance * (_bits(length) + 1) * 7
        return math.isqrt(parts // (10 * FINENESS)) + 1

    def drawn(self, size: Size, random: RandomBytes = os.urandom) -> Vector:
        """Draw one operator's noise, int64."""
        return discrete_gaussian(math.sqrt(self.variance), size, random)

    def protects_as(self, other: NoiseOfOperators) -> bool:
        """Return whether this noise is of the same kind as the other, and at least as large."""
        return isinstance(other, WholeGaussian) and self.fine_variance >= other.fine_variance

    def event(self, l1: float, l2: float) -> ZeroConcentrated:
        """Return the event of a sum whose neighbours are this far apart: one operator's noise.

        Discrete Gaussian noise on whole vectors costs as continuous noise does (Canonne, Kamath and
        Steinke, NeurIPS 2020, Theorem 14). The other operator knows its own noise, so that noise
        does not count against it.
        """
        return ZeroConcentrated(l2 * l2 / (2 * self.variance))


NoiseOfOperators = WholeLaplace | WholeGaussian
LaplaceSumNoise = LaplaceShares | WholeLaplace
GaussianSumNoise = SkellamShares | WholeGaussian
SumNoise = LaplaceSumNoise | GaussianSumNoise


def _bits(length: int) -> int:
    """Return at least the log2 of one over the probability for each of `length` entries."""
    return 80 + length.bit_length()


def laplace(scale: float, survivors: int | None) -> LaplaceSumNoise:
    """Return discrete Laplace noise of this scale.

    Args:
        scale: Scale of the noise on an entry, in votes.
        survivors: Least number of phones that stay and add their share honestly; None where each of
            two operators adds the whole noise.
    """
    return WholeLaplace.of(scale) if survivors is None else LaplaceShares(scale, survivors)


def gaussian(variance: float, survivors: int | None) -> GaussianSumNoise:
    """Return nearly normal noise of this variance; arguments as for `laplace`."""
    return WholeGaussian.of(variance) if survivors is None else SkellamShares(variance, survivors)
