"""Distribution of the joint privacy loss of releases that are all purely private.

The privacy loss is the logarithm of how much likelier an outcome is than with a neighbour's data.
Losses of independent releases add up, so their distributions convolve, which is tighter than Rényi
divergences by some per cent (Koskela, Jälkö and Honkela 2020).

Randomized response dominates the loss of any ε-private release (Kairouz, Oh and Viswanath 2015): it
is that of discrete Laplace noise of scale 1/ε against a shift by one. Discrete Laplace noise
against a vector of shifts is dominated by the same noise against their sum. To see this, let the
scale be 1. At a loss ε ≥ −m that occurs, one entry that is shifted by m has
δ(ε) = max(0, 1 − e^((ε−m)/2)). Beside it, an entry that is shifted by n ≤ m has losses l ≤ n, and
leaves at most 1 − e^((ε−l−m)/2), which is at most 1 − e^((ε−m−n)/2). Between losses that occur,
both are linear in e^ε.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_protocol.privacy.events import (
    Approximate,
    BoundedRange,
    DiscreteLaplaceSum,
    Event,
    Pure,
)

LARGEST_LOSS = 500.0
"""Largest joint loss that is convolved: beyond it, no ε is of use."""
Curve = npt.NDArray[np.float64]

_GRID, _LARGEST_GRID = 2**13, 2**17
"""Points between no loss and the largest: for each release, and in all."""
_ROUNDING = 1e-9
"""Rounding error of a number of points."""
_FINEST = sys.float_info.min
"""Smallest step: below it, floats lose digits."""


class Laplace(NamedTuple):
    """Discrete Laplace noise against a shift of one entry, repeated.

    Attributes:
        decay: Inverse of the noise's scale.
        shift: Shift of the entry, a whole number.
        times: Number of repetitions.
    """

    decay: float
    shift: int
    times: int

    @property
    def largest_loss(self) -> float:
        """Largest loss of all repetitions together."""
        return self.decay * self.shift * self.times


def dominating(event: Event) -> Laplace:
    """Return the noise whose loss dominates that of a purely private event.

    Raises:
        TypeError: The event is of another kind.
    """
    match event:
        case DiscreteLaplaceSum():
            return Laplace(1 / event.scale, math.floor(event.sensitivity), 1)
        case Pure() | BoundedRange():
            return Laplace(event.epsilon, 1, event.times)
        case Approximate():
            return Laplace(event.epsilon, 1, 1)
        case _:
            raise TypeError(f"{type(event).__name__} is not purely private")


class PureLosses:
    """Losses of some purely private releases, on a grid.

    Each noise is reduced a little, so that its losses are points of the grid: a noise of larger
    scale is one of a smaller scale and more (the law is self-decomposable), so it loses less.

    Args:
        releases: Releases whose `largest_loss` adds up to at most `LARGEST_LOSS`.
    """

    def __init__(self, releases: Iterable[Laplace]) -> None:
        releases = [each for each in releases if each.largest_loss > 0]
        largest = math.fsum(each.largest_loss for each in releases)
        times = sum(each.times for each in releases)
        # A smaller step would lose digits, and in the end all.
        self._step = max(largest / min(_GRID * times, _LARGEST_GRID), _FINEST) if releases else 1.0
        laws = [self._on_grid(each) for each in releases]
        reach = sum(law.size // 2 * each.times for law, each in zip(laws, releases, strict=True))
        size = 2 ** (2 * reach).bit_length()
        spectrum = np.ones(size // 2 + 1, dtype=np.complex128)
        for law, each in zip(laws, releases, strict=True):
            spectrum *= np.fft.rfft(law, size) ** each.times
        # Losses of at least 0, from 0 up; transforms round by less than the margin.
        chances = np.fft.irfft(spectrum, size)[reach : 2 * reach + 1].clip(0)
        losses = np.arange(chances.size) * self._step
        at_least = np.cumsum(chances[::-1])[::-1]
        of_neighbour = np.cumsum((chances * np.exp(-losses))[::-1])[::-1]
        margin = size * 2.0**-52
        deltas = (at_least - np.exp(losses) * of_neighbour).clip(0) + margin
        self._deltas: Curve = np.minimum.accumulate(deltas)

    def epsilon(self, delta: float) -> float:
        """Return the smallest ε known to hold at this δ; infinite if there is none.

        δ is convex in e^ε, so chords between points of the grid bound it.
        """
        enough = self._deltas.size - int(np.searchsorted(self._deltas[::-1], delta, side="right"))
        if enough == self._deltas.size:
            return math.inf
        if enough == 0:
            return 0.0
        before, after = float(self._deltas[enough - 1]), float(self._deltas[enough])
        part = (before - delta) / (before - after)
        return (enough - 1) * self._step + math.log1p(part * math.expm1(self._step))

    def _on_grid(self, release: Laplace) -> Curve:
        """Return probabilities of losses from −m to m times the decay; every other one occurs."""
        points = max(1, math.ceil(release.decay / self._step - _ROUNDING))
        decay, shift = points * self._step, release.shift
        kept = np.exp(-decay * np.arange(shift + 1)) / (1 + math.exp(-decay))
        kept[1:-1] *= -math.expm1(-decay)
        law = np.zeros(2 * points * shift + 1)
        law[:: 2 * points] = kept[::-1]
        return law
