"""Estimates over several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from earshot_simulations.probing.measures import interval


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds.

    Attributes:
        mean: Mean over all seeds.
        wide: Half of its 95 % interval by Student's t; None with one seed, which says nothing about
            others.
        seeds: Number of seeds.
    """

    mean: float
    wide: float | None
    seeds: int

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero: for a difference, whether there is one."""
        return self.wide is not None and abs(self.mean) > self.wide

    def __str__(self) -> str:
        return f"{self.mean:.3f}" + ("" if self.wide is None else f" ± {self.wide:.3f}")


def estimate(values: Sequence[float]) -> Estimate:
    """Estimate a mean from one value per seed, at least one."""
    if len(values) == 1:
        return Estimate(float(values[0]), None, 1)
    mean, wide = interval(np.asarray(values, dtype=np.float64))
    return Estimate(mean, wide, len(values))


def paired(values: Sequence[float], others: Sequence[float]) -> Estimate:
    """Estimate the mean difference value − other, seed by seed, in which shared parts cancel."""
    return estimate([value - other for value, other in zip(values, others, strict=True)])
