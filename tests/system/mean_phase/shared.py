"""A kind of phase that the product does not have: a private mean of one number a phone."""

from __future__ import annotations

import os
from dataclasses import dataclass

import numpy as np

from earshot_protocol import checks
from earshot_protocol.phases.parameters import Kind, Parameters
from earshot_protocol.phases.plan import Outcome, Plan, SecureSum, SumPartTask
from earshot_protocol.privacy.accounting import Release
from earshot_protocol.privacy.conversions import secure_sum_delta
from earshot_protocol.privacy.events import DiscreteLaplaceSum
from earshot_protocol.privacy.laws import DiscreteLaplaceNoise
from earshot_protocol.privacy.mechanisms import Cost, Unit
from earshot_protocol.privacy.noise import Size, polya_share, polya_share_bound
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.secure_sum.messages import AdvertiseKeys

NUMBER = "number"


@dataclass(frozen=True)
class ClippedSum:
    """Numbers from 0 to `largest`, and noise of scale largest/ε; one recording moves one by 1."""

    epsilon: float
    largest: int
    honest_survivors: int
    name: str = "clipped sum with discrete Laplace noise"

    @property
    def scale(self) -> float:
        return self.largest / self.epsilon

    least_entry = 0

    @property
    def largest_entry(self) -> int:
        return self.largest

    @property
    def largest_sum(self) -> int:
        return self.largest

    def event(self, unit: Unit) -> DiscreteLaplaceSum:
        return DiscreteLaplaceSum(self.scale, 1 if unit is Unit.RECORDING else self.largest)

    def cost(self, unit: Unit) -> Cost:
        epsilon = self.event(unit).sensitivity / self.scale
        return Cost(epsilon, secure_sum_delta(epsilon))

    def noise(self, inputs: float) -> DiscreteLaplaceNoise:
        return DiscreteLaplaceNoise(self.scale, inputs / self.honest_survivors)

    def noise_share(self, size: Size, random: RandomBytes = os.urandom) -> np.ndarray:
        return polya_share(self.scale, self.honest_survivors, size, random)

    def share_bound(self, probability: float) -> int:
        return self.largest + polya_share_bound(self.scale, self.honest_survivors, probability)


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
    advertise: AdvertiseKeys


class Mean(Outcome, frozen=True, kw_only=True, tag="mean"):
    total: int
    mean: float
    privacy: tuple[Release, ...]


MEAN = Kind(MeanParameters, (AskNumber,), (), Mean)
