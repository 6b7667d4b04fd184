"""Whether a published number stands clear of the noise: a stated test at 5 %.

What a secure sum publishes is a true count plus noise whose law is known exactly. The probability
that noise alone reaches a number, times how many numbers were looked at (Bonferroni), is the
number's p-value here: where nobody voted for anything, the probability that any of them has one of
at most `LEVEL` is at most `LEVEL`. Whoever shows a number with a larger one says that it may be
noise.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
import numpy.typing as npt
from msgspec import Meta

from earshot_protocol.privacy.mechanisms import SumMechanism

LEVEL = 0.05
"""What is published from noise alone, in no more than this share of all phases."""

PValue = Annotated[float, Meta(ge=0, le=1)]

_LARGEST_REACH = 2**17
"""Noise that reaches further is computed on a grid coarser than the integers."""
_FAR = 2**61
_NEGLIGIBLE = math.log(1e15)


@dataclass(frozen=True)
class Noise:
    """The noise on one entry of a sum: X − Y with X, Y ~ NegativeBinomial(order, exp(−1/scale)).

    Order 1 is discrete Laplace noise. A phone's share has order 1/n', n' being the phones that are
    counted on, and orders add up: m phones that stayed make m/n' (`noise.polya_share`).

    Attributes:
        scale: of discrete Laplace noise, above 0.
        order: how much of it there is, at least 0.
    """

    scale: float
    order: float

    @classmethod
    def of(cls, mechanism: SumMechanism, inputs: int) -> Noise:
        """On a sum to which so many phones have added their input and noise share.

        Phones that add no noise make the true noise smaller: then it is found to be noise more
        often, never less.
        """
        return cls(mechanism.scale, inputs / mechanism.honest_survivors)

    @property
    def of_difference(self) -> Noise:
        """On the difference of two entries: what is symmetric has twice the order."""
        return Noise(self.scale, 2 * self.order)

    def at_least(self, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
        """P(noise ≥ value) for each value, with an absolute error below 10⁻¹².

        Where the noise reaches further than 2^17 (a scale above about 2,000) it is computed on a
        grid of at most a thousandth of its scale, and values are rounded towards zero.
        """
        grid, tail = _tail(self.scale, self.order)
        numbers = _bounded(values)
        above = tail[np.clip(numbers // grid, 0, len(tail) - 1)]
        below = tail[np.clip(-((numbers - 1) // grid), 0, len(tail) - 1)]
        return np.where(numbers > 0, above, 1.0 - below)

    def radius(self, confidence: float = 1 - LEVEL) -> int:
        """The smallest r for which the noise lies in [−r, r] with this probability."""
        grid, tail = _tail(self.scale, self.order)
        return grid * int(np.argmax(2 * tail[1:] <= 1 - confidence))


def count_p_values(
    counts: npt.ArrayLike, noise: Noise, looked_at: int | None = None
) -> tuple[float, ...]:
    """For each count, P(noise ≥ count) times how many were looked at, at most 1.

    Args:
        counts: integers (counts,).
        noise: on each of them.
        looked_at: how many these were chosen from; by default there are no others.
    """
    numbers = _bounded(counts)
    return _corrected(noise.at_least(numbers), len(numbers) if looked_at is None else looked_at)


def name_p_values(totals: npt.ArrayLike, noise: Noise) -> tuple[float, ...]:
    """For each centroid, how likely noise gives it the label with the most votes.

    A name says two things. *Somebody voted for it*: P(N ≥ votes) is small. *More did than for any
    other label*: its margin m over the runner-up is clear of the difference of two noises,
    P(N − N' ≥ m). The larger of both, times the number of (centroid, label) cells, is its p-value.

    The factor is right for the margin. Let b be a label with the most true votes for a centroid. A
    label a ≠ b is named only if noise lifts it over b by the margin, for which P(N − N' ≥ m) is a
    bound; b is named where another has as many votes only if noise parts the two. That is one
    event a cell, so over all centroids a label that is not the sole true winner is named with
    probability `LEVEL` at most. For the votes it is the number of counts that were looked at. With
    one label there is no runner-up, and the votes decide.

    Args:
        totals: integers (centroids, labels), at least one label.
        noise: on each of them.
    """
    table = _bounded(totals)
    if not len(table):
        return ()
    ordered = np.sort(table, axis=1)
    chances = noise.at_least(ordered[:, -1])
    if table.shape[1] > 1:
        margins = ordered[:, -1] - ordered[:, -2]
        chances = np.maximum(chances, noise.of_difference.at_least(margins))
    return _corrected(chances, table.size)


def are_clear(p_values: Sequence[float], count: int) -> tuple[bool, ...]:
    """Whether each of so many numbers stands clear of the noise.

    Where p-values are missing, as in results of former releases, nothing was tested and nothing is
    clear.
    """
    if len(p_values) != count:
        return (False,) * count
    return tuple(p_value <= LEVEL for p_value in p_values)


def _bounded(values: npt.ArrayLike) -> npt.NDArray[np.int64]:
    """The same integers, or such as no noise reaches either and whose differences still fit."""
    bounded: npt.NDArray[np.int64] = np.clip(np.asarray(values, dtype=object), -_FAR, _FAR)
    return bounded.astype(np.int64)


def _corrected(chances: npt.NDArray[np.float64], looked_at: int) -> tuple[float, ...]:
    return tuple(np.minimum(1.0, chances * looked_at).tolist())


@functools.lru_cache(maxsize=64)
def _tail(scale: float, order: float) -> tuple[int, npt.NDArray[np.float64]]:
    """A grid, and P(N ≥ j · grid) for j = 0, 1, …, as far as it is not negligible.

    The characteristic function of X − Y is ((1 − α)² / (1 − 2α cos t + α²))^order; its inverse
    transform is taken numerically, at so many points that what lies beyond them is below 10⁻¹⁵.
    """
    grid = 1 + _reach(scale, order) // _LARGEST_REACH
    scale /= grid
    ratio = math.exp(-1 / scale)
    size = 2 ** math.ceil(math.log2(2 * _reach(scale, order) + 8))
    angles = 2 * np.pi * np.arange(size // 2 + 1) / size
    # 1 − 2α cos t + α² as (1 − α)² + 4α sin²(t/2), which loses no digits near t = 0.
    growth = 4 * ratio * (np.sin(angles / 2) / -math.expm1(-1 / scale)) ** 2
    law = np.fft.irfft(np.exp(-order * np.log1p(growth)), size)[1 : size // 2]
    # Rounding may leave a negligible probability below zero; zero is on the safe side.
    tail = np.cumsum(np.append(0.0, law.clip(0)[::-1]))[::-1]
    return grid, np.append(1.0 - tail[0], tail)


def _reach(scale: float, order: float) -> int:
    """What the noise exceeds with probability below 10⁻¹⁵: the best of some Chernoff bounds.

    E[e^(uN)] = ((1 − α)² / ((1 − αe^u)(1 − αe^−u)))^order for u below 1/scale.
    """
    shares = np.arange(1, 20) / 20
    moments = order * (
        2 * math.log(-math.expm1(-1 / scale))
        - np.log(-np.expm1(-(1 - shares) / scale))
        - np.log(-np.expm1(-(1 + shares) / scale))
    )
    return math.ceil(float(((moments + _NEGLIGIBLE) * scale / shares).min()))
