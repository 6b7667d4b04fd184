"""Private mechanisms as values: each declares its sensitivity, its noise and its cost.

A mechanism declares its event and its cost, (ε, δ), in two units. In the *recording* unit
neighbours differ in one recording of one phone; in the *phone* unit they differ in everything that
one phone contributes, an absent phone counting as the zero vector. Mechanisms that a phone applies
by itself are in `local_mechanisms`.
"""

from __future__ import annotations

import enum
import math
import os
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.conversions import secure_sum_delta
from earshot_protocol.privacy.events import DiscreteLaplaceSum, Event, SkellamSum
from earshot_protocol.privacy.laws import DiscreteLaplaceNoise, NoiseLaw, SkellamNoise
from earshot_protocol.privacy.noise import (
    LARGEST_SHARED_SCALE,
    Size,
    polya_share,
    polya_share_bound,
    skellam_share,
    skellam_share_bound,
)
from earshot_protocol.randomness import RandomBytes


class Unit(enum.StrEnum):
    """Difference between neighbouring data sets."""

    RECORDING = "recording"
    """One recording of one phone, which is present or not."""
    PHONE = "phone"
    """Everything that one phone contributes, against zeros: its noise share is added all the
    same."""
    REPLACED_PHONE = "replaced phone"
    """Everything that one phone contributes, against the contribution of another one."""


GRID = 2**12
"""Steps per unit of length of a vector that is summed."""

LEDGER_UNITS = (Unit.RECORDING, Unit.PHONE)
"""Units that ledgers keep and policies limit."""


@dataclass(frozen=True)
class Cost:
    """An (ε, δ) guarantee of differential privacy."""

    epsilon: float
    delta: float


class Mechanism(Hashable, Protocol):
    """Interface of a mechanism for the ledger, the auditor and the reports."""

    @property
    def name(self) -> str:
        """Name of the mechanism in reports."""

    def event(self, unit: Unit) -> Event:
        """Return the event of one release, against neighbours that differ in `unit`."""

    def cost(self, unit: Unit) -> Cost:
        """Return (ε, δ) of one release, against neighbours that differ in `unit`."""


class SumMechanism(Mechanism, Protocol):
    """A mechanism whose noise the phones of a secure sum share."""

    @property
    def honest_survivors(self) -> int:
        """Least number of phones that stay and add their share honestly, n'."""

    @property
    def least_entry(self) -> int:
        """Least that one phone's input adds to an entry of the sum."""

    @property
    def largest_entry(self) -> int:
        """Most that one phone's input adds to an entry of the sum."""

    @property
    def largest_sum(self) -> int:
        """Most that one phone's input adds to all entries together."""

    def noise(self, inputs: float) -> NoiseLaw:
        """Return the law of the noise on an entry of a sum over this many phones' inputs.

        Phones that add no noise make the true noise smaller.
        """

    def noise_share(self, size: Size, random: RandomBytes = os.urandom) -> npt.NDArray[np.int64]:
        """Draw one phone's noise for an input of this size, int64.

        Raises:
            InvalidParametersError: The noise is too large to be shared by so few phones.
        """

    def share_bound(self, probability: float) -> int:
        """Return what an entry of input plus noise share exceeds in magnitude with ≤ `probability`.

        Raises:
            InvalidParametersError: The noise is too large to be shared by so few phones.
        """


@dataclass(frozen=True)
class BallotSum:
    """The secure sum of 0/1 ballots and Pólya noise shares: discrete Laplace noise of scale 2/ε.

    A ballot has at most `votes` ones. One recording can at most swap one winner for another, so the
    L1 sensitivity in the recording unit is 2 whatever `votes` is; a phone that leaves takes `votes`
    ones with it. The discrete Laplace mechanism is (sensitivity / scale)-DP (Ghosh, Roughgarden and
    Sundararajan, STOC 2009); shares of phones beyond the honest survivors only add independent
    noise. δ is that of the secure sum, see `secure_sum_delta`.

    Attributes:
        epsilon: Value of ε in the recording unit; the phone unit costs ε · votes / 2.
        votes: Most ones in a ballot, v.
        honest_survivors: Least number of phones that stay and add their share honestly, n'.
        largest_entry: Most that a ballot gives one candidate; `votes` for a histogram.

    Raises:
        InvalidParametersError: A value is not positive, or a count is not whole.
    """

    epsilon: float
    votes: int
    honest_survivors: int
    largest_entry: int = 1
    least_entry: ClassVar[int] = 0
    name: ClassVar[str] = "ballot sum with discrete Laplace noise"

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        checks.whole("votes", self.votes)
        checks.whole("honest_survivors", self.honest_survivors)
        checks.whole("largest_entry", self.largest_entry)

    @property
    def scale(self) -> float:
        """Scale of the discrete Laplace noise on every entry of the sum, in votes."""
        return self.sensitivity(Unit.RECORDING) / self.epsilon

    @property
    def largest_sum(self) -> int:
        """Most ones that one ballot adds to all entries together."""
        return self.votes

    def sensitivity(self, unit: Unit) -> int:
        """Return the L1 distance between sums of neighbours, in votes."""
        if unit is Unit.RECORDING:
            return 2
        return self.votes if unit is Unit.PHONE else 2 * self.votes

    def noise(self, inputs: float) -> DiscreteLaplaceNoise:
        """Return the law of the noise on an entry of a sum over this many ballots."""
        return DiscreteLaplaceNoise(self.scale, inputs / self.honest_survivors)

    def noise_share(self, size: Size, random: RandomBytes = os.urandom) -> npt.NDArray[np.int64]:
        """Draw one phone's share of the noise, int64."""
        return polya_share(self.scale, self.honest_survivors, size, random)

    def share_bound(self, probability: float) -> int:
        """Return what a noisy ballot's entry exceeds in magnitude with at most this probability."""
        if self.scale > LARGEST_SHARED_SCALE:
            least = self.sensitivity(Unit.RECORDING) / LARGEST_SHARED_SCALE
            raise InvalidParametersError(
                f"ε={self.epsilon}: must be at least {least:.3g}, or the noise cannot be shared"
            )
        return self.votes + polya_share_bound(self.scale, self.honest_survivors, probability)

    def event(self, unit: Unit) -> DiscreteLaplaceSum:
        """Return the event of discrete Laplace noise through the secure sum."""
        return DiscreteLaplaceSum(self.scale, self.sensitivity(unit))

    def cost(self, unit: Unit) -> Cost:
        """Return ε · sensitivity / 2, and the δ of the secure sum at that ε.

        In the phone unit this is vacuous once ε · votes / 2 exceeds about 28: δ reaches 1.
        """
        epsilon = self.epsilon * self.sensitivity(unit) / self.sensitivity(Unit.RECORDING)
        return Cost(epsilon, secure_sum_delta(epsilon))


@dataclass(frozen=True)
class VectorSum:
    """The secure sum of vectors of bounded length on a grid, and Skellam noise shares.

    A phone's vector has an L2 norm of at most `GRID` steps, whatever it holds: a phone that counts
    as zeros removes at most that much, and one that is replaced twice that. The vectors are
    `voting.vectors.quantized`; `voting.vectors` proves what one recording more or less moves.

    Attributes:
        noise_multiplier: Standard deviation of the noise on an entry over `GRID`.
        length: Number of entries of a vector.
        delta: Value of δ for which costs are stated.
        honest_survivors: Least number of phones that stay and add their share honestly, n'.
        signed: Whether entries may be negative.
        row: Number of entries that one recording adds to; by default all of them.

    Raises:
        InvalidParametersError: A value is out of range, or a count is not whole.
    """

    noise_multiplier: float
    length: int
    delta: float
    honest_survivors: int
    signed: bool = True
    row: int | None = None
    name: ClassVar[str] = "sum of bounded vectors with Skellam noise"

    def __post_init__(self) -> None:
        checks.positive("noise_multiplier", self.noise_multiplier)
        checks.whole("length", self.length, 1, GRID**2)
        checks.probability("delta", self.delta)
        checks.whole("honest_survivors", self.honest_survivors)
        checks.whole("row", self.length if self.row is None else self.row, 1, self.length)

    @property
    def variance(self) -> float:
        """Variance of the noise on every entry, in steps², when n' phones add their share."""
        return (self.noise_multiplier * GRID) ** 2

    @property
    def least_entry(self) -> int:
        """Least that one vector adds to an entry of the sum, in steps."""
        return -GRID if self.signed else 0

    @property
    def largest_entry(self) -> int:
        """Most that one vector adds to an entry of the sum, in steps."""
        return GRID

    @property
    def largest_sum(self) -> int:
        """Most that one vector adds to all entries together, in steps, by Cauchy and Schwarz."""
        return math.isqrt(self.length * GRID**2) + 1

    def sensitivity(self, unit: Unit) -> float:
        """Return the L2 distance between sums of neighbours, in steps."""
        if unit is Unit.RECORDING:
            # Its row by itself, and among others that it shortens; see `voting.vectors`.
            rounded, row = math.sqrt(self.length), self.length if self.row is None else self.row
            longest = GRID - rounded / 2
            return max(GRID, longest + math.sqrt(row), 2 / math.sqrt(5) * longest + rounded)
        return GRID if unit is Unit.PHONE else 2 * GRID

    def noise(self, inputs: float) -> SkellamNoise:
        """Return the law of the noise on an entry of a sum over this many vectors."""
        return SkellamNoise(self.variance * inputs / self.honest_survivors)

    def noise_share(self, size: Size, random: RandomBytes = os.urandom) -> npt.NDArray[np.int64]:
        """Draw one phone's share of the noise, int64."""
        return skellam_share(self.variance, self.honest_survivors, size, random)

    def share_bound(self, probability: float) -> int:
        """Return what a noisy vector's entry exceeds in magnitude with at most this probability."""
        return GRID + skellam_share_bound(self.variance, self.honest_survivors, probability)

    def event(self, unit: Unit) -> SkellamSum:
        """Return the event of Skellam noise through the secure sum."""
        distance = self.sensitivity(unit)
        return SkellamSum(self.variance, math.sqrt(self.length) * distance, distance)

    def cost(self, unit: Unit) -> Cost:
        """Return the ε of the event at `delta`, which includes the secure sum's share of δ."""
        return Cost(composed_epsilon((self.event(unit),), self.delta), self.delta)
