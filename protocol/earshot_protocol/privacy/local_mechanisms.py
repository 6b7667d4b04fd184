"""Mechanisms that a phone applies to its own recordings, before anything leaves it.

Neighbours in the recording unit differ in one recording of the phone. In the phone unit such a
release costs as much as group privacy allows (Dwork and Roth 2014, Theorem 2.2). That bound says
little above ε ≈ 10: it is vacuous for all but a handful of recordings.
"""

from __future__ import annotations

import enum
import functools
import math
import os
from dataclasses import dataclass, replace
from typing import ClassVar

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.conversions import zcdp_epsilon, zcdp_rho
from earshot_protocol.privacy.events import BoundedRange, Pure, SelectedRuns, ZeroConcentrated
from earshot_protocol.privacy.mechanisms import Cost, Mechanism, Unit
from earshot_protocol.privacy.noise import discrete_gaussian, discrete_laplace
from earshot_protocol.randomness import RandomBytes

COUNTED_RECORDINGS = 1000
"""Least number of recordings for which a phone accounts when it makes a release private itself. The
cost of such a release to a phone grows with the number that it holds: a ledger with the true number
would reveal it, by what the phone refuses later."""


@dataclass(frozen=True)
class LaplaceLloyd:
    """DPLloyd-Impr on one phone (Su et al., CODASPY 2016): pure ε in the recording unit.

    Attributes:
        epsilon: Value of ε of all iterations together, by sequential composition of their noisy
            sums and counts and parallel composition over clusters.
        recordings: Most recordings that a phone clusters.

    Raises:
        InvalidParametersError: A value is not positive, or a count is not whole.
    """

    epsilon: float
    recordings: int
    name: ClassVar[str] = "DPLloyd-Impr with discrete Laplace noise"

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        checks.whole("recordings", self.recordings)

    def event(self, unit: Unit) -> Pure:
        """Return a pure event with the ε of `cost`."""
        return Pure(self.cost(unit).epsilon)

    def cost(self, unit: Unit) -> Cost:
        """Return (ε, 0) per recording, and (recordings · ε, 0) per phone."""
        return Cost(self.epsilon * _group(unit, self.recordings), 0.0)


@dataclass(frozen=True)
class GaussianLloyd:
    """Spherical DPLloyd on one phone: noisy sums of unit vectors, ρ-zCDP in the recording unit.

    Attributes:
        epsilon: Value of ε of all iterations together, at `delta`.
        delta: Value of δ, between 0 and 1.
        recordings: Most recordings that a phone clusters.

    Raises:
        InvalidParametersError: A value is out of range, or a count is not whole.
    """

    epsilon: float
    delta: float
    recordings: int
    name: ClassVar[str] = "spherical DPLloyd with discrete Gaussian noise"

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        checks.probability("delta", self.delta)
        checks.whole("recordings", self.recordings)

    @property
    def rho(self) -> float:
        """Largest ρ whose ρ-zCDP implies (ε, δ), see `zcdp_rho`."""
        return zcdp_rho(self.epsilon, self.delta)

    def event(self, unit: Unit) -> ZeroConcentrated:
        """Return ρ-zCDP per recording, and (recordings² · ρ)-zCDP per phone.

        Group privacy of zCDP is Proposition 27 of Bun and Steinke (TCC 2016).
        """
        return ZeroConcentrated(self.rho * _group(unit, self.recordings) ** 2)

    def cost(self, unit: Unit) -> Cost:
        """Return (ε, δ) per recording, and per phone the ε of its event at the same δ."""
        if unit is Unit.RECORDING:
            return Cost(self.epsilon, self.delta)
        return Cost(zcdp_epsilon(self.event(unit).rho, self.delta), self.delta)


QUALITY_SHARE = 0.25
"""Share of each run's budget that its score takes, where there are several runs."""


@dataclass(frozen=True)
class BestLaplaceLloyd:
    """The best of several runs of DPLloyd-Impr by a private score (Liu and Talwar, STOC 2019).

    The number of runs K is geometric, P(K = j) = γ(1 − γ)^(j − 1) with γ = 1 / `runs`; a run that
    clusters and scores is ε₀-DP; the best is released, the others and K stay secret. That is their
    random stopping, and 3ε₀-DP: an outcome y, scored s, that one run has with probability q(y) is
    released with probability

        γ q(y) / ((γ + (1 − γ) P(score > s)) (γ + (1 − γ) P(score ≥ s))),

    three factors each of which changes by e^ε₀ at most. It needs K to be secret: of the best of j
    runs, known to be j, nothing better than jε₀ is known.

    Attributes:
        epsilon: Value of ε of the release, 3ε₀.
        recordings: Most recordings that a phone clusters.
        runs: Average number of runs, at least 2.

    Raises:
        InvalidParametersError: A value is not positive, or a count is not whole.
    """

    epsilon: float
    recordings: int
    runs: int

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        checks.whole("recordings", self.recordings)
        checks.whole("runs", self.runs, 2)

    @property
    def name(self) -> str:
        """Name of the repeated mechanism, with the average number of runs."""
        return f"{LaplaceLloyd.name}, the best of {self.runs} runs on average"

    @property
    def each(self) -> LaplaceLloyd:
        """One run, without its score."""
        return LaplaceLloyd((1 - QUALITY_SHARE) * self.epsilon / 3, self.recordings)

    def quality_noise(self, sensitivity: int, random: RandomBytes = os.urandom) -> int:
        """Draw noise for one run's score, which a recording moves by at most `sensitivity`."""
        return int(discrete_laplace(3 * sensitivity / (QUALITY_SHARE * self.epsilon), 1, random)[0])

    def event(self, unit: Unit) -> Pure:
        """Return a pure event with the ε of `cost`."""
        return Pure(self.cost(unit).epsilon)

    def cost(self, unit: Unit) -> Cost:
        """Return (ε, 0) per recording, and (recordings · ε, 0) per phone."""
        return Cost(self.epsilon * _group(unit, self.recordings), 0.0)


@dataclass(frozen=True)
class BestGaussianLloyd:
    """The best of several runs of spherical DPLloyd by a private score.

    It is like `BestLaplaceLloyd`, for runs that are ρ-zCDP (Papernot and Steinke, ICLR 2022,
    Theorem 2).

    Attributes:
        epsilon: Value of ε of the release, at `delta`.
        delta: Value of δ, between 0 and 1.
        recordings: Most recordings that a phone clusters.
        runs: Average number of runs, at least 2.

    Raises:
        InvalidParametersError: A value is out of range, or a count is not whole.
    """

    epsilon: float
    delta: float
    recordings: int
    runs: int

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        checks.probability("delta", self.delta)
        checks.whole("recordings", self.recordings)
        checks.whole("runs", self.runs, 2)

    @property
    def name(self) -> str:
        """Name of the repeated mechanism, with the average number of runs."""
        return f"{GaussianLloyd.name}, the best of {self.runs} runs on average"

    @property
    def rho(self) -> float:
        """Largest ρ of one run for which the best of them is (ε, δ)-DP."""
        return _rho_of_runs(self.epsilon, self.delta, self.runs)

    @property
    def each(self) -> GaussianLloyd:
        """One run, without its score."""
        rho = (1 - QUALITY_SHARE) * self.rho
        return GaussianLloyd(zcdp_epsilon(rho, self.delta), self.delta, self.recordings)

    def quality_noise(self, sensitivity: int, random: RandomBytes = os.urandom) -> int:
        """Draw noise for one run's score, which a recording moves by at most `sensitivity`."""
        sigma = sensitivity / math.sqrt(2 * QUALITY_SHARE * self.rho)
        return int(discrete_gaussian(sigma, 1, random)[0])

    def event(self, unit: Unit) -> SelectedRuns:
        """Return runs of `rho` per recording, and runs of (recordings² · rho) per phone."""
        return SelectedRuns(self.rho * _group(unit, self.recordings) ** 2, self.runs)

    def cost(self, unit: Unit) -> Cost:
        """Return (ε, δ) per recording, and per phone the ε of its event at the same δ."""
        if unit is Unit.RECORDING:
            return Cost(self.epsilon, self.delta)
        return Cost(composed_epsilon((self.event(unit),), self.delta), self.delta)


@functools.lru_cache(maxsize=256)
def _rho_of_runs(epsilon: float, delta: float, runs: int) -> float:
    low, high = 0.0, zcdp_rho(epsilon, delta)
    for _ in range(60):
        middle = (low + high) / 2
        enough = composed_epsilon((SelectedRuns(middle, runs),), delta) <= epsilon
        low, high = (middle, high) if enough else (low, middle)
    # A run is set up from its ε, which is rounded.
    return low * (1 - 1e-9)


class SelectionMethod(enum.StrEnum):
    """Method of choosing one index by monotone counts, ε-DP."""

    NOISY_MAX = "noisy-max"
    """Largest count after discrete Laplace noise (Dwork and Roth 2014, Claim 3.9)."""
    PERMUTE_AND_FLIP = "permute-and-flip"
    """Coin for each count, in random order (McKenna and Sheldon, NeurIPS 2020)."""
    GUMBEL = "gumbel"
    """Largest counts, in one step, after Gumbel noise (Durfee and Rogers, NeurIPS 2019): equivalent
    to repeating the exponential mechanism of McSherry and Talwar (FOCS 2007)."""


@dataclass(frozen=True)
class Selection:
    """Private selection of the largest counts, one after the other without replacement.

    One recording raises one count by one and lowers none (monotone), so noise of scale 1/ε, or
    weights of exp(ε · count), make each choice ε-DP, whatever the method. Log-likelihood ratios of
    the exponential mechanism also lie in a range of ε: neighbours have weights that differ in one
    factor of e^ε, and the normalization is the same for all outcomes.

    Attributes:
        epsilon: Value of ε of each selection, in the recording unit.
        repeats: Number of selections, k*.
        recordings: Most recordings that a phone counts.
        method: Method of each selection.

    Raises:
        InvalidParametersError: A value is not positive, a count is not whole, or the method is
            unknown.
    """

    epsilon: float
    repeats: int
    recordings: int
    method: SelectionMethod = SelectionMethod.NOISY_MAX

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        checks.whole("repeats", self.repeats)
        checks.whole("recordings", self.recordings)
        if self.method not in SelectionMethod.__members__.values():
            raise InvalidParametersError(
                f"method={self.method!r}: give one of {', '.join(SelectionMethod)}"
            )

    @property
    def name(self) -> str:
        """Method and number of its repetitions."""
        return f"{self.method}, {self.repeats} times"

    def event(self, unit: Unit) -> Pure | BoundedRange:
        """Return the event of all choices; ε and its range add up over a group of recordings."""
        epsilon = self.epsilon * _group(unit, self.recordings)
        if self.method is SelectionMethod.GUMBEL:
            return BoundedRange(epsilon, self.repeats)
        return Pure(epsilon, self.repeats)

    def cost(self, unit: Unit) -> Cost:
        """Return (repeats · ε, 0) per recording, and `recordings` times that per phone."""
        return Cost(self.repeats * self.epsilon * _group(unit, self.recordings), 0.0)


def _group(unit: Unit, recordings: int) -> int:
    """Return the number of recordings in which neighbours differ."""
    return {Unit.RECORDING: 1, Unit.PHONE: recordings, Unit.REPLACED_PHONE: 2 * recordings}[unit]


_LOCAL = LaplaceLloyd | GaussianLloyd | BestLaplaceLloyd | BestGaussianLloyd | Selection


# Every phone needs the same at every step of a phase, and a simulation has many phones.
@functools.lru_cache(maxsize=1024)
def held_by(mechanism: Mechanism, recordings: int) -> Mechanism:
    """Return the mechanism at its cost in the accounts of a phone that holds this many recordings.

    Noise depends on the server's number of recordings alone, but the cost to a phone on the number
    that it really holds. It is computed for the server's number, or for `COUNTED_RECORDINGS` if
    that is more, doubled until it covers what the phone holds: so the accounts reveal nothing of a
    smaller number, and little of a larger one.
    """
    if not isinstance(mechanism, _LOCAL):
        return mechanism
    counted = max(mechanism.recordings, COUNTED_RECORDINGS)
    while counted < recordings:
        counted *= 2
    return replace(mechanism, recordings=counted)
