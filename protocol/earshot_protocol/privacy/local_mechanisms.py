"""Mechanisms that a phone applies to its own recordings, before anything leaves it.

Neighbours in the recording unit differ in one recording of the phone. In the phone unit such a
release costs as much as group privacy bounds (Dwork and Roth 2014, Theorem 2.2). That bound says
little above ε ≈ 10: it is vacuous for all but a handful of recordings.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import ClassVar

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.conversions import zcdp_epsilon, zcdp_rho
from earshot_protocol.privacy.events import BoundedRange, Pure, ZeroConcentrated
from earshot_protocol.privacy.mechanisms import Cost, Mechanism, Unit


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
        checks.positive("epsilon", self.epsilon)
        checks.whole("recordings", self.recordings)

    def event(self, unit: Unit) -> Pure:
        """Pure ε, as `cost` says."""
        return Pure(self.cost(unit).epsilon)

    def cost(self, unit: Unit) -> Cost:
        """(ε, 0) per recording; per phone (recordings · ε, 0)."""
        return Cost(self.epsilon * _group(unit, self.recordings), 0.0)


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
        checks.positive("epsilon", self.epsilon)
        checks.probability("delta", self.delta)
        checks.whole("recordings", self.recordings)

    @property
    def rho(self) -> float:
        """The largest ρ whose ρ-zCDP implies (ε, δ), see `zcdp_rho`."""
        return zcdp_rho(self.epsilon, self.delta)

    def event(self, unit: Unit) -> ZeroConcentrated:
        """ρ-zCDP per recording; (recordings² · ρ)-zCDP per phone.

        Group privacy of zCDP is Proposition 27 of Bun and Steinke (TCC 2016).
        """
        return ZeroConcentrated(self.rho * _group(unit, self.recordings) ** 2)

    def cost(self, unit: Unit) -> Cost:
        """(ε, δ) per recording; per phone the ε of its event at the same δ."""
        if unit is Unit.RECORDING:
            return Cost(self.epsilon, self.delta)
        return Cost(zcdp_epsilon(self.event(unit).rho, self.delta), self.delta)


class SelectionMethod(enum.StrEnum):
    """How one index is chosen by monotone counts, ε-DP."""

    NOISY_MAX = "noisy-max"
    """The largest after discrete Laplace noise (Dwork and Roth 2014, Claim 3.9)."""
    PERMUTE_AND_FLIP = "permute-and-flip"
    """In random order, each with a coin (McKenna and Sheldon, NeurIPS 2020)."""
    GUMBEL = "gumbel"
    """All at once after Gumbel noise (Durfee and Rogers, NeurIPS 2019): the exponential mechanism
    of McSherry and Talwar (FOCS 2007), again and again."""


@dataclass(frozen=True)
class Selection:
    """Private selection of the largest counts, one after the other without replacement.

    One recording raises one count by one and lowers none (monotone), so noise of scale 1/ε, or
    weights of exp(ε · count), make each choice ε-DP, whatever the method. Log-likelihood ratios of
    the exponential mechanism lie in a range of ε besides: neighbours have weights that differ in
    one factor of e^ε, and whatever normalizes them is the same for all outcomes.

    Attributes:
        epsilon: ε of each selection, in the recording unit.
        repeats: k*, how many are selected.
        recordings: the most recordings a phone counts.
        method: how each is chosen.

    Raises:
        InvalidParametersError: a value that is not positive, a count that is not whole, or an
            unknown method.
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
        """The method and how often it is repeated."""
        return f"{self.method}, {self.repeats} times"

    def event(self, unit: Unit) -> Pure | BoundedRange:
        """As many choices; of a group of recordings, ε and its range add up."""
        epsilon = self.epsilon * _group(unit, self.recordings)
        if self.method is SelectionMethod.GUMBEL:
            return BoundedRange(epsilon, self.repeats)
        return Pure(epsilon, self.repeats)

    def cost(self, unit: Unit) -> Cost:
        """(repeats · ε, 0) per recording; per phone `recordings` times that."""
        return Cost(self.repeats * self.epsilon * _group(unit, self.recordings), 0.0)


def _group(unit: Unit, recordings: int) -> int:
    """By how many recordings neighbours of a phone's own data differ."""
    return {Unit.RECORDING: 1, Unit.PHONE: recordings, Unit.REPLACED_PHONE: 2 * recordings}[unit]


def held_by(mechanism: Mechanism, recordings: int) -> Mechanism:
    """The mechanism as it costs a phone that holds so many recordings.

    How many a phone holds at most is the server's word, and noise depends on it alone; what all of
    a phone's recordings lose together depends on how many it really has.
    """
    if isinstance(mechanism, LaplaceLloyd | GaussianLloyd | Selection):
        return replace(mechanism, recordings=max(mechanism.recordings, recordings))
    return mechanism
