"""What phones have in tests in which no sound is heard: points, and a policy that agrees."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol.phases.parameters import LARGEST_CROWD
from support.policies import without_budget

AGREES = without_budget(
    least_phones=1,
    largest_phones=LARGEST_CROWD,
    largest_noise_crowd=LARGEST_CROWD,
    largest_epsilon=math.inf,
    largest_delta=1.0,
    largest_dropout=1.0,
    least_corrupted=0.0,
    least_threshold=1,
)
"""Takes part in any phase."""


@dataclass(frozen=True)
class HeardPoints:
    """An encoder in name only."""

    name: str
    dimensions: int

    def embed(self, samples: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        raise AssertionError("a phone of points hears no sound")

    def project(
        self, embeddings: npt.NDArray[np.float32], dimensions: int
    ) -> npt.NDArray[np.float32]:
        return embeddings
