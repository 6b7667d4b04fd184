"""What several seeds say together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from earshot_simulations.probing.measures import interval


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds.

    Attributes:
        mean: over all of them.
        wide: half of its 95 % interval by Student's t; None with one seed, which says nothing of
            how far another would be.
        seeds: how many.
    """

    mean: float
    wide: float | None
    seeds: int

    @property
    def clear(self) -> bool:
        """Whether zero lies outside the interval: for a difference, whether there is one."""
        return self.wide is not None and abs(self.mean) > self.wide

    def __str__(self) -> str:
        return f"{self.mean:.3f}" + ("" if self.wide is None else f" ± {self.wide:.3f}")


def estimate(values: Sequence[float]) -> Estimate:
    """Of one value per seed, at least one."""
    if len(values) == 1:
        return Estimate(float(values[0]), None, 1)
    mean, wide = interval(np.asarray(values, dtype=np.float64))
    return Estimate(mean, wide, len(values))


def paired(values: Sequence[float], others: Sequence[float]) -> Estimate:
    """Of the differences value − other, seed by seed: what all of a seed share cancels."""
    return estimate([value - other for value, other in zip(values, others, strict=True)])
