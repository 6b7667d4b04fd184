"""A kind of phase that the product does not have: a private mean of one number a phone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import msgspec

from earshot_protocol import checks
from earshot_protocol.phases.parameters import Kind, Parameters
from earshot_protocol.phases.plan import Outcome, Plan, SecureSum, SumPartTask
from earshot_protocol.privacy.accounting import Release
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.mechanisms import Cost, SumMechanism, Unit
from earshot_protocol.privacy.sum_noise import LaplaceSumNoise, laplace
from earshot_protocol.summations import Opening

NUMBER = "number"


@dataclass(frozen=True)
class ClippedSum(SumMechanism):
    """Numbers from 0 to `largest`, and noise of scale largest/ε; one recording moves one by 1."""

    epsilon: float
    largest: int
    honest_survivors: int | None
    summed: ClassVar[str] = "clipped sum"
    least_entry: ClassVar[int] = 0

    @property
    def scale(self) -> float:
        return self.largest / self.epsilon

    @property
    def largest_entry(self) -> int:
        return self.largest

    @property
    def largest_sum(self) -> int:
        return self.largest

    @property
    def entry_noise(self) -> LaplaceSumNoise:
        return laplace(self.scale, self.honest_survivors)

    def event(self, unit: Unit) -> Event:
        return self.entry_noise.event(1 if unit is Unit.RECORDING else self.largest)

    def cost(self, unit: Unit) -> Cost:
        epsilon = (1 if unit is Unit.RECORDING else self.largest) / self.scale
        return Cost(epsilon, self.entry_noise.delta(epsilon))


class MeanParameters(Parameters, frozen=True, kw_only=True, tag="mean"):
    largest: int
    epsilon: float

    def plan(self) -> Plan:
        clipped = ClippedSum(self.epsilon, self.largest, self.noise_survivors)
        return Plan((SecureSum(NUMBER, AskNumber, clipped),))

    def check(self) -> None:
        super().check()
        checks.whole("largest", self.largest)
        checks.positive("epsilon", self.epsilon)


class AskNumber(SumPartTask, frozen=True, kw_only=True, tag="ask-number"):
    parameters: MeanParameters
    opening: Opening = msgspec.field(name="advertise")


class Mean(Outcome, frozen=True, kw_only=True, tag="mean"):
    total: int
    mean: float
    privacy: tuple[Release, ...]


MEAN = Kind(MeanParameters, (AskNumber,), (), Mean)
