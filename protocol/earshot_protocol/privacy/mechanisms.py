"""Private mechanisms as values: each declares its sensitivity, its noise and what it costs.

A mechanism costs (ε, δ) in two units. In the *recording* unit neighbours differ in one recording
of one phone; in the *phone* unit they differ in everything one phone contributes, an absent phone
counting as the zero vector.
"""

from __future__ import annotations

import enum
import functools
import math
import operator
import os
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.noise import Size, polya_share, polya_share_bound
from earshot_protocol.randomness import RandomBytes


class Unit(enum.StrEnum):
    """What neighbouring data sets differ in."""

    RECORDING = "recording"
    PHONE = "phone"


@dataclass(frozen=True)
class Cost:
    """An (ε, δ) guarantee of differential privacy."""

    epsilon: float
    delta: float


class Mechanism(Protocol):
    """What the ledger, the auditor and the reports need to know about a mechanism."""

    @property
    def name(self) -> str:
        """How reports call it."""

    def cost(self, unit: Unit) -> Cost:
        """(ε, δ) of one release, against neighbours that differ in `unit`."""


@dataclass(frozen=True)
class BallotSum:
    """The secure sum of 0/1 ballots and Pólya noise shares: discrete Laplace noise of scale 2/ε.

    A ballot has at most `votes` ones. One recording can at most swap one winner for another, so
    the L1 sensitivity in the recording unit is 2 whatever `votes` is; a phone that leaves takes
    `votes` ones with it. The discrete Laplace mechanism is (sensitivity / scale)-DP (Ghosh,
    Roughgarden and Sundararajan, STOC 2009); shares of phones beyond the honest survivors only
    add independent noise. δ is that of the secure sum, see `secure_sum_delta`.

    Attributes:
        epsilon: ε in the recording unit; the phone unit costs ε · votes / 2.
        votes: v, the most ones in a ballot.
        honest_survivors: n', how many phones at least stay and add their share honestly.

    Raises:
        InvalidParametersError: a value that is not positive, or a count that is not whole.
    """

    epsilon: float
    votes: int
    honest_survivors: int
    name: ClassVar[str] = "ballot sum with discrete Laplace noise"

    def __post_init__(self) -> None:
        _check_positive("epsilon", self.epsilon)
        _check_count("votes", self.votes)
        _check_count("honest_survivors", self.honest_survivors)

    @property
    def scale(self) -> float:
        """Of the discrete Laplace noise on every entry of the sum, in votes."""
        return self.sensitivity(Unit.RECORDING) / self.epsilon

    def sensitivity(self, unit: Unit) -> int:
        """L1 distance between sums of neighbours, in votes."""
        return 2 if unit is Unit.RECORDING else self.votes

    def noise_share(self, size: Size, random: RandomBytes = os.urandom) -> npt.NDArray[np.int64]:
        """One phone's noise for a ballot of this size, int64."""
        return polya_share(self.scale, self.honest_survivors, size, random)

    def share_bound(self, probability: float) -> int:
        """What one entry of ballot plus noise share exceeds in magnitude with ≤ `probability`."""
        return self.votes + polya_share_bound(self.scale, self.honest_survivors, probability)

    def cost(self, unit: Unit) -> Cost:
        """ε · sensitivity / 2, and the δ of the secure sum at that ε.

        In the phone unit this is vacuous once ε · votes / 2 exceeds about 28: δ reaches 1.
        """
        epsilon = self.epsilon * self.sensitivity(unit) / self.sensitivity(Unit.RECORDING)
        return Cost(epsilon, secure_sum_delta(epsilon))


def secure_sum_delta(
    epsilon: float, statistical_security: float = 40, computational_security: float = 128
) -> float:
    """δ = (1 + e^ε)(2^-σ + 2^-λ) of an ε-DP release through the secure sum, at most 1.

    Thesis Theorem 8.2: the sum is within 2^-σ + 2^-λ of an ideal one.

    Args:
        epsilon: ε of the release through an ideal sum.
        statistical_security: σ, in bits.
        computational_security: λ, in bits.
    """
    distance = 2.0**-statistical_security + 2.0**-computational_security
    log_delta = float(np.logaddexp(0.0, epsilon)) + math.log(distance)
    return math.exp(min(0.0, log_delta))


@dataclass(frozen=True)
class LaplaceLloyd:
    """DPLloyd-Impr on one phone (Su et al., CODASPY 2016): pure ε in the recording unit.

    Attributes:
        epsilon: ε of all iterations together, by sequential composition of their noisy sums and
            counts and parallel composition over clusters.
        recordings: the most recordings a phone clusters.

    Raises:
        InvalidParametersError: a value that is not positive, or a count that is not whole.
    """

    epsilon: float
    recordings: int
    name: ClassVar[str] = "DPLloyd-Impr with discrete Laplace noise"

    def __post_init__(self) -> None:
        _check_positive("epsilon", self.epsilon)
        _check_count("recordings", self.recordings)

    def cost(self, unit: Unit) -> Cost:
        """(ε, 0) per recording; per phone the group-privacy bound (recordings · ε, 0).

        The phone bound (Dwork and Roth 2014, Theorem 2.2) says little above ε ≈ 10: it is vacuous
        for all but a handful of recordings.
        """
        return Cost(self.epsilon * (self.recordings if unit is Unit.PHONE else 1), 0.0)


@dataclass(frozen=True)
class GaussianLloyd:
    """Spherical DPLloyd on one phone: noisy sums of unit vectors, ρ-zCDP in the recording unit.

    Attributes:
        epsilon: ε of all iterations together, at `delta`.
        delta: δ, between 0 and 1.
        recordings: the most recordings a phone clusters.

    Raises:
        InvalidParametersError: a value out of range, or a count that is not whole.
    """

    epsilon: float
    delta: float
    recordings: int
    name: ClassVar[str] = "spherical DPLloyd with discrete Gaussian noise"

    def __post_init__(self) -> None:
        _check_positive("epsilon", self.epsilon)
        _check_delta(self.delta)
        _check_count("recordings", self.recordings)

    @property
    def rho(self) -> float:
        """The largest ρ whose ρ-zCDP implies (ε, δ), see `zcdp_rho`."""
        return zcdp_rho(self.epsilon, self.delta)

    def cost(self, unit: Unit) -> Cost:
        """(ε, δ) per recording; per phone the ε of (recordings² · ρ)-zCDP at the same δ.

        Group privacy of zCDP is Proposition 27 of Bun and Steinke (TCC 2016). The phone bound
        grows with the square of the recordings: it is vacuous for all but a handful.
        """
        if unit is Unit.RECORDING:
            return Cost(self.epsilon, self.delta)
        return Cost(zcdp_epsilon(self.recordings**2 * self.rho, self.delta), self.delta)


class SelectionMethod(enum.StrEnum):
    """How the top centroids are chosen; all cost the same for counts."""

    NOISY_MAX = "noisy-max"
    PERMUTE_AND_FLIP = "permute-and-flip"
    GUMBEL = "gumbel"


@dataclass(frozen=True)
class NoisyMax:
    """Private selection of the largest counts, one after the other without replacement.

    One recording raises one count by one and lowers none (monotone), so each selection is ε-DP
    with noise of scale 1/ε: report noisy max (Dwork and Roth 2014, Claim 3.9), permute-and-flip
    (McKenna and Sheldon, NeurIPS 2020) and the exponential mechanism, of which the one-shot
    Gumbel top-k is the repetition (Durfee and Rogers, NeurIPS 2019, Lemma 4.2).

    Attributes:
        epsilon: ε of each selection, in the recording unit.
        repeats: k*, how many are selected.
        recordings: the most recordings a phone counts.
        method: how each is selected.

    Raises:
        InvalidParametersError: a value out of range, a count that is not whole, or a method that
            there is not.
    """

    epsilon: float
    repeats: int
    recordings: int
    method: SelectionMethod = SelectionMethod.NOISY_MAX

    def __post_init__(self) -> None:
        _check_positive("epsilon", self.epsilon)
        _check_count("repeats", self.repeats)
        _check_count("recordings", self.recordings)
        selection_method(self.method)

    @property
    def name(self) -> str:
        """The method and how often it is repeated."""
        return f"{self.method}, {self.repeats} times"

    def cost(self, unit: Unit) -> Cost:
        """(repeats · ε, 0) per recording; per phone `recordings` times that (group privacy).

        The phone bound says little above ε ≈ 10: it is vacuous for all but a handful of
        recordings.
        """
        group = self.recordings if unit is Unit.PHONE else 1
        return Cost(self.repeats * self.epsilon * group, 0.0)


def selection_method(method: str) -> SelectionMethod:
    """The method of that name.

    Raises:
        InvalidParametersError: there is none; names those there are.
    """
    try:
        return SelectionMethod(method)
    except ValueError:
        raise InvalidParametersError(
            f"method={method!r}: give one of {', '.join(SelectionMethod)}"
        ) from None


def zcdp_delta(rho: float, epsilon: float) -> float:
    """A δ such that ρ-zCDP implies (ε, δ)-DP.

    The infimum over α > 1 of exp((α − 1)(αρ − ε)) / (α − 1) · (1 − 1/α)^α (Canonne, Kamath and
    Steinke, NeurIPS 2020, Corollary 13). Every α gives a valid bound; bisection on the derivative
    of its logarithm, which grows with α, finds the best.
    """
    low, high = 1.0, (epsilon + 1) / (2 * rho) + 2
    for _ in range(50):
        order = (low + high) / 2
        if (2 * order - 1) * rho - epsilon + math.log1p(-1 / order) < 0:
            low = order
        else:
            high = order
    log_delta = (high - 1) * (high * rho - epsilon + math.log1p(-1 / high)) - math.log(high)
    return math.exp(min(0.0, log_delta))


@functools.lru_cache(maxsize=256)
def zcdp_epsilon(rho: float, delta: float) -> float:
    """The smallest ε such that ρ-zCDP implies (ε, δ)-DP by `zcdp_delta`.

    Raises:
        InvalidParametersError: ρ is not positive, or δ not between 0 and 1.
    """
    _check_positive("rho", rho)
    _check_delta(delta)
    # Bun and Steinke's Proposition 3 is looser, so it bounds the search.
    low, high = 0.0, rho + 2 * math.sqrt(-rho * math.log(delta))
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if zcdp_delta(rho, middle) <= delta else (middle, high)
    return high


@functools.lru_cache(maxsize=256)
def zcdp_rho(epsilon: float, delta: float) -> float:
    """The largest ρ such that ρ-zCDP implies (ε, δ)-DP by `zcdp_delta`.

    Raises:
        InvalidParametersError: ε is not positive, or δ not between 0 and 1.
    """
    _check_positive("epsilon", epsilon)
    _check_delta(delta)
    # The start satisfies Bun and Steinke's ε = ρ + 2√(ρ ln 1/δ), so it is private enough.
    low = (math.sqrt(epsilon - math.log(delta)) - math.sqrt(-math.log(delta))) ** 2
    high = 2 * low
    while zcdp_delta(high, epsilon) <= delta:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if zcdp_delta(middle, epsilon) <= delta else (low, middle)
    return low


def _check_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise InvalidParametersError(f"{name}={value}: give a positive, finite number")


def _check_delta(delta: float) -> None:
    if not 0 < delta < 1:
        raise InvalidParametersError(f"delta={delta}: it must lie between 0 and 1")


def _check_count(name: str, value: int) -> None:
    try:
        whole = operator.index(value)
    except TypeError:
        whole = 0
    if whole < 1:
        raise InvalidParametersError(f"{name}={value}: give a whole number, at least 1")
