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
from abc import ABC, abstractmethod
from collections.abc import Hashable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.overriding import override
from earshot_protocol.prio3.shapes import Counts, Norm, ballot
from earshot_protocol.privacy import sum_noise
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.laws import NoiseLaw
from earshot_protocol.privacy.noise import LARGEST_SHARED_SCALE, Size
from earshot_protocol.privacy.sum_noise import GaussianSumNoise, LaplaceSumNoise, SumNoise
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


class SumMechanism(ABC):
    """A mechanism on a secure sum, whose noise its phones share or its operators add.

    Attributes:
        summed: Name of the inputs' sum, without its noise.
        least_entry: Least that one phone's input adds to an entry of the sum.
        honest_survivors: Least number of phones that stay and add their share honestly, n'; None
            where each of two operators adds the whole noise.
    """

    summed: ClassVar[str]
    least_entry: ClassVar[int]
    honest_survivors: int | None

    @property
    def name(self) -> str:
        """Name of the sum, with its noise as phones or operators draw it."""
        return f"{self.summed} with {self.entry_noise.name}"

    @property
    @abstractmethod
    def entry_noise(self) -> SumNoise:
        """Noise on every entry of the sum, with where it comes from."""

    @property
    @abstractmethod
    def largest_entry(self) -> int:
        """Most that one phone's input adds to an entry of the sum."""

    @property
    @abstractmethod
    def largest_sum(self) -> int:
        """Most that one phone's input adds to all entries together."""

    @abstractmethod
    def event(self, unit: Unit) -> Event:
        """Return the event of one release, against neighbours that differ in `unit`."""

    @abstractmethod
    def cost(self, unit: Unit) -> Cost:
        """Return (ε, δ) of one release, against neighbours that differ in `unit`."""

    def noise(self, inputs: float) -> NoiseLaw:
        """Return the law of the noise on an entry of a sum over this many phones' inputs.

        Phones that add no noise make the true noise smaller.
        """
        return self.entry_noise.law(inputs)

    def noise_share(self, size: Size, random: RandomBytes = os.urandom) -> npt.NDArray[np.int64]:
        """Draw the noise that one phone adds, int64: zeros where operators add it.

        Raises:
            InvalidParametersError: The noise is too large to be shared by so few phones.
        """
        return self.entry_noise.share(size, random)

    def share_bound(self, probability: float) -> int:
        """Return a magnitude that an entry of input plus noise share exceeds with ≤ `probability`.

        Raises:
            InvalidParametersError: The noise is too large to be shared by so few phones.
        """
        return self.largest_entry + self.entry_noise.share_bound(probability)

    def proof(self, shape: tuple[int, ...]) -> Counts | Norm | None:
        """Return what a phone proves of its input to two operators; None if there is no proof.

        Args:
            shape: Shape of an input.
        """
        return None


@dataclass(frozen=True)
class BallotSum(SumMechanism):
    """The secure sum of 0/1 ballots with discrete Laplace noise of scale 2/ε.

    A ballot has at most `votes` ones. One recording can at most swap one winner for another, so the
    L1 sensitivity in the recording unit is 2 whatever `votes` is; a phone that leaves takes `votes`
    ones with it. The discrete Laplace mechanism is (sensitivity / scale)-DP (Ghosh, Roughgarden and
    Sundararajan, STOC 2009); shares of phones beyond the honest survivors, or another operator's
    noise, only add independent noise. δ is that of a secure sum with shares, see
    `secure_sum_delta`.

    Attributes:
        epsilon: Value of ε in the recording unit; the phone unit costs ε · votes / 2.
        votes: Most ones in a ballot, v.
        honest_survivors: Least number of phones that stay and add their share honestly, n'; None
            where each of two operators adds the whole noise.
        largest_entry: Most that a ballot gives one candidate; `votes` for a histogram.

    Raises:
        InvalidParametersError: A value is not positive, or a count is not whole.
    """

    epsilon: float
    votes: int
    honest_survivors: int | None
    largest_entry: int = 1
    least_entry: ClassVar[int] = 0
    summed: ClassVar[str] = "ballot sum"

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        checks.whole("votes", self.votes)
        check_survivors(self.honest_survivors)
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

    @property
    def entry_noise(self) -> LaplaceSumNoise:
        """Noise on every entry of the sum."""
        return sum_noise.laplace(self.scale, self.honest_survivors)

    def share_bound(self, probability: float) -> int:
        """Return a magnitude that a noisy ballot's entry exceeds with at most this probability."""
        if self.honest_survivors is not None and self.scale > LARGEST_SHARED_SCALE:
            least = self.sensitivity(Unit.RECORDING) / LARGEST_SHARED_SCALE
            raise InvalidParametersError(
                f"ε={self.epsilon}: must be at least {least:.3g}, or the noise cannot be shared"
            )
        return self.votes + self.entry_noise.share_bound(probability)

    @override
    def proof(self, shape: tuple[int, ...]) -> Counts | None:
        """Return that an input is of zeros and at most `votes` ones; None for larger entries."""
        length = math.prod(shape)
        return ballot(length, min(self.votes, length)) if self.largest_entry == 1 else None

    def event(self, unit: Unit) -> Event:
        """Return the event of discrete Laplace noise on the sum."""
        return self.entry_noise.event(self.sensitivity(unit))

    def cost(self, unit: Unit) -> Cost:
        """Return ε · sensitivity / 2, and the δ of the secure sum at that ε.

        With shares, in the phone unit, this is vacuous once ε · votes / 2 exceeds about 28: δ
        reaches 1.
        """
        epsilon = self.epsilon * (self.sensitivity(unit) / self.sensitivity(Unit.RECORDING))
        return Cost(epsilon, self.entry_noise.delta(epsilon))


@dataclass(frozen=True)
class VectorSum(SumMechanism):
    """The secure sum of vectors of bounded length on a grid, with nearly normal noise.

    It is Skellam noise in shares, or discrete Gaussian noise from each of two operators.

    A phone's vector has an L2 norm below `GRID` steps, whatever it holds: a phone that counts
    as zeros removes at most that much, and one that is replaced twice that. The vectors are
    `voting.vectors.quantized`. What one recording more or less moves depends on how they are made;
    `voting.vectors` states it for each way, with a proof.

    Attributes:
        noise_multiplier: Standard deviation of the noise on an entry over `GRID`.
        length: Number of entries of a vector.
        delta: Value of δ for which costs are stated.
        honest_survivors: Least number of phones that stay and add their share honestly, n'; None
            where each of two operators adds the whole noise.
        recording: Most that one recording moves a vector, L2 in steps; by default what replacing
            the whole phone moves.

    Raises:
        InvalidParametersError: A value is out of range, or a count is not whole.
    """

    noise_multiplier: float
    length: int
    delta: float
    honest_survivors: int | None
    recording: float = 2.0 * GRID
    least_entry: ClassVar[int] = -GRID
    summed: ClassVar[str] = "sum of bounded vectors"

    def __post_init__(self) -> None:
        checks.positive("noise_multiplier", self.noise_multiplier)
        checks.whole("length", self.length, 1, GRID**2)
        checks.probability("delta", self.delta)
        check_survivors(self.honest_survivors)
        checks.positive("recording", self.recording, 2.0 * GRID)

    @property
    def variance(self) -> float:
        """Variance of the noise that protects every entry, in steps²: n' shares, or one whole."""
        steps = self.noise_multiplier * GRID
        return steps * steps

    @property
    def entry_noise(self) -> GaussianSumNoise:
        """Noise on every entry of the sum."""
        return sum_noise.gaussian(self.variance, self.honest_survivors)

    @property
    def largest_entry(self) -> int:
        """Most that one vector adds to an entry of the sum, in steps."""
        return GRID

    @property
    def largest_sum(self) -> int:
        """Most that one vector adds to all entries together, in steps, by Cauchy and Schwarz."""
        return math.isqrt(self.length * GRID**2) + 1

    @override
    def proof(self, shape: tuple[int, ...]) -> Norm:
        """Return that a vector's squares add up to less than `GRID`²."""
        return Norm()

    def sensitivity(self, unit: Unit) -> float:
        """Return the L2 distance between sums of neighbours, in steps."""
        if unit is Unit.RECORDING:
            return self.recording
        return GRID if unit is Unit.PHONE else 2 * GRID

    def event(self, unit: Unit) -> Event:
        """Return the event of the noise on the sum."""
        distance = self.sensitivity(unit)
        return self.entry_noise.event(math.sqrt(self.length) * distance, distance)

    def cost(self, unit: Unit) -> Cost:
        """Return the ε of the event at `delta`, which includes a secure sum's share of δ."""
        return Cost(composed_epsilon((self.event(unit),), self.delta), self.delta)


def check_survivors(count: int | None) -> None:
    """Refuse a number of honest survivors that is neither None nor positive.

    Raises:
        InvalidParametersError: The number is not a positive whole number.
    """
    if count is not None:
        checks.whole("honest_survivors", count)
