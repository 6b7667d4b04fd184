"""The check before an answer: whether enough teachers agree, noise included."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.randomness import RandomBytes


@dataclass(frozen=True)
class ConfidentCheck:
    """Check that agreement + N(0, σ_T²) ≥ T; a query that fails has no answer.

    From Papernot et al. (ICLR 2018). Its noise is independent of that of the answer, and both are
    paid for.

    Attributes:
        threshold: Threshold of the agreement, T, in votes.
        deviation: Standard deviation of the noise, σ_T, in votes.

    Raises:
        InvalidParametersError: T is not finite, or σ_T is out of range (`checks.noise`).
    """

    threshold: float
    deviation: float

    def __post_init__(self) -> None:
        checks.noise("deviation", self.deviation)
        if not math.isfinite(self.threshold):
            raise InvalidParametersError(
                f"threshold={self.threshold}: must be a finite number of votes"
            )

    def passing(
        self, agreement: npt.NDArray[np.number], random: RandomBytes = os.urandom
    ) -> npt.NDArray[np.bool_]:
        """Return which agreements pass the check.

        Args:
            agreement: Votes of any shape; one vote changes each by one at most.
            random: Source of bytes; a seeded one belongs in simulations only.

        Returns:
            bool of the same shape.
        """
        noisy = noisy_counts.with_normal(agreement, self.deviation, random)
        passed: npt.NDArray[np.bool_] = noisy >= self.threshold
        return passed
