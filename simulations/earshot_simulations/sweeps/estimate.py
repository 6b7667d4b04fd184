"""Estimates over several seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from earshot_simulations.probing.measures import interval
from earshot_simulations.reporting.words import NOTHING

Range = tuple[float, float]
"""Least and largest value that a figure can take."""
__all__ = ["Estimate", "estimate", "paired"]

_NOT_FINITE = {"inf": "∞", "-inf": "−∞", "nan": NOTHING}
SHARE: Range = (0.0, 1.0)
"""Range of a share."""


@dataclass(frozen=True)
class Estimate:
    """A mean over seeds.

    Attributes:
        mean: Mean over all seeds.
        wide: Half of its 95 % interval by Student's t; None with one seed.
        seeds: Number of seeds.
        within: Range of the figure, to which its interval is limited; None if unbounded.
    """

    mean: float
    wide: float | None
    seeds: int
    within: Range | None = None

    @property
    def clear(self) -> bool:
        """Whether the interval excludes zero: for a difference, whether there is one."""
        return self.wide is not None and abs(self.mean) > self.wide

    @property
    def ends(self) -> tuple[float, float] | None:
        """Ends of the 95 % interval; None with one seed.

        In a range it is that of Student's t on the logit of the mean, whose standard error follows
        by the delta method (Korn and Graubard 1999), so that it never leaves the range. If all
        seeds are at one end of the range, it has no width.
        """
        if self.wide is None:
            return None
        if self.within is None:
            return self.mean - self.wide, self.mean + self.wide
        low, high = self.within
        if not low < self.mean < high:
            return self.mean, self.mean
        place = (self.mean - low) / (high - low)
        logit = math.log(place / (1 - place))
        moved = self.wide / (high - low) / (place * (1 - place))
        least, most = (0.5 + 0.5 * math.tanh((logit + way * moved) / 2) for way in (-1, 1))
        return low + (high - low) * least, low + (high - low) * most

    def __str__(self) -> str:
        mean = _NOT_FINITE.get(str(self.mean), f"{self.mean:.3f}")
        if self.wide is None or self.ends is None:
            return mean
        if self.within is None:
            return f"{mean} ± {self.wide:.3f}"
        return f"{mean} ({self.ends[0]:.3f} to {self.ends[1]:.3f})"


def estimate(values: Sequence[float], within: Range | None = None) -> Estimate:
    """Estimate a mean from one value per seed, at least one.

    Args:
        values: Value of each seed; an infinite one leaves no interval.
        within: Range that no value can leave.
    """
    if len(values) == 1 or not np.isfinite(values).all():
        return Estimate(float(np.mean(values)), None, len(values), within)
    mean, wide = interval(np.asarray(values, dtype=np.float64))
    return Estimate(mean, wide, len(values), within)


def paired(values: Sequence[float], others: Sequence[float]) -> Estimate:
    """Estimate the mean difference value − other, seed by seed, in which shared parts cancel.

    Args:
        values: Figures of one configuration, one per seed.
        others: Figures of the other, by the same seeds.
    """
    return estimate([value - other for value, other in zip(values, others, strict=True)])
