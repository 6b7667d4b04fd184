"""The growth of a figure with the crowd, and how much a few points can say about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from earshot_protocol.errors import InvalidInputError


@dataclass(frozen=True)
class Growth:
    """A figure as a power of the number of phones.

    Attributes:
        slope: Exponent of the power: 0 for a constant, 1 for growth in proportion to the crowd.
        wide: Half-width of the exponent's 95 % interval by Student's t over the residuals of the
            line; None with two sizes, through which a line always passes.
        ratio: Figure at the largest size divided by that at the smallest.
        sizes: Number of sizes.
    """

    slope: float
    wide: float | None
    ratio: float
    sizes: int

    def __str__(self) -> str:
        wide = "" if self.wide is None else f" ± {self.wide:.3f}"
        return f"n^({self.slope:.3f}{wide}), ×{self.ratio:.2f}"


def growth(phones: Sequence[float], figures: Sequence[float]) -> Growth:
    """Fit the least-squares line of log(figure) over log(phones).

    Raises:
        InvalidInputError: There are fewer than two different sizes, or a number is not above 0.
    """
    sizes, values = np.asarray(phones, np.float64), np.asarray(figures, np.float64)
    if len(np.unique(sizes)) < 2 or np.any(sizes <= 0) or np.any(values <= 0):
        raise InvalidInputError(
            f"phones={list(phones)}, figures={list(figures)}: a slope needs two sizes or more, and "
            "figures above 0"
        )
    x, y = np.log(sizes), np.log(values)
    apart = x - x.mean()
    spread = float(apart @ apart)
    slope = float(apart @ y) / spread
    free = len(x) - 2
    wide = None
    if free:
        from scipy import stats

        residuals = y - y.mean() - slope * apart
        error = np.sqrt(float(residuals @ residuals) / free / spread)
        wide = float(stats.t.ppf(0.975, free) * error)
    ratio = float(values[np.argmax(sizes)] / values[np.argmin(sizes)])
    return Growth(slope, wide, ratio, len(x))
