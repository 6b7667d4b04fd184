"""Counts with noise that a curator adds, drawn exactly in whole steps.

Noise is a whole number of steps, of which a deviation or scale has 2^48 or more, and so is the
rounded count. A step is a power of two, and a vote has a whole number of them, so
rounding commutes with a vote more or less: neighbours differ by no more than before. Hence a count
has the Gaussian noise N_Z (Canonne, Kamath and Steinke, NeurIPS 2020, Theorem 4) or the discrete
Laplace noise of its cost, without a δ, however the sum is rounded afterwards.

Bounds that depend on votes are computed for real-valued noise. The chance and the counterchance of
a decision by one draw are nearly the same here: see `ODDS`.
"""

from __future__ import annotations

import decimal
import functools
import math
import os
from collections.abc import Callable
from decimal import Decimal

import numpy as np
import numpy.typing as npt

from earshot_protocol.arrays import Numbers
from earshot_protocol.privacy.noise import Size, discrete_gaussian, discrete_laplace
from earshot_protocol.randomness import RandomBytes

_BITS = 48
ODDS = 2.0**-33
"""Largest error of the logarithm of either chance against real-valued noise, for each draw.

The number that a draw is compared with is moved by at most a step and a half, and by the rounding
of the sum of count and noise: 2^-46 deviations, where counts reach no further than 64. In normal
and Laplace noise that changes either tail by a factor of e^((x + 1) 2^-46), x deviations out, and
beyond 2^12 nothing ever is. The law in steps itself is nearer than 2^-80.
"""
_FINEST, _COARSEST = -1000, -10
"""Smallest and largest power of two for a step: below, numbers lose digits; above, votes lose
parts."""
_AT_ONCE = 2**14
_WORDS = 16
_CONTEXT = decimal.Context(prec=60)


def with_normal(
    counts: npt.NDArray[np.number], deviation: float, random: RandomBytes = os.urandom
) -> Numbers:
    """Add normal noise of a deviation in votes to counts.

    Args:
        counts: Counts of any shape.
        deviation: Standard deviation σ of the noise, positive, below 2^42.
        random: Source of bytes; a seeded one belongs in simulations only.

    Raises:
        InvalidParametersError: The deviation is out of range.
    """
    return _noisy(counts, deviation, discrete_gaussian, random)


def with_laplace(
    counts: npt.NDArray[np.number], scale: float, random: RandomBytes = os.urandom
) -> Numbers:
    """Add Laplace noise of a scale in votes to counts; arguments and errors as in `with_normal`."""
    return _noisy(counts, scale, discrete_laplace, random)


def likeliest(
    scores: npt.NDArray[np.number], scale: float, random: RandomBytes = os.urandom
) -> npt.NDArray[np.int64]:
    """Draw a place of each row with probability ∝ exp(score / scale): the exponential mechanism.

    Args:
        scores: Scores (rows, places), in votes, where neighbours differ by one vote at most.
        scale: Scale g, positive.
        random: Source of bytes; a seeded one belongs in simulations only.

    Returns:
        The places, int64 (rows,).
    """
    steps = _in_steps(scores, scale) * _step(scale)
    found = np.empty(len(steps), dtype=np.int64)
    with decimal.localcontext(_CONTEXT):
        for row, own in enumerate(steps.tolist()):
            largest = max(own)
            odds = [_odds(each, largest, scale) for each in own]
            left = sum(odds) * int.from_bytes(random(_WORDS)) / 2 ** (8 * _WORDS)
            place = 0
            while place < len(odds) - 1 and left >= odds[place]:
                left -= odds[place]
                place += 1
            found[row] = place
    return found


def coin(chance: float, counterchance: float, random: RandomBytes = os.urandom) -> bool:
    """Draw a Boolean with this probability, exact to 128 bits.

    The counterchance is used where it is smaller, because the smaller one has more digits.
    """
    if chance > counterchance:
        return not coin(counterchance, chance, random)
    return int.from_bytes(random(_WORDS)) < int(math.ldexp(chance, 8 * _WORDS))


@functools.lru_cache(maxsize=2**12)
def _odds(score: float, largest: float, scale: float) -> Decimal:
    """Return exp((score − largest) / scale) to the context's digits; cached, as counts recur."""
    return ((Decimal(score) - Decimal(largest)) / Decimal(scale)).exp()


def _step(scale: float) -> float:
    """Return the grid's step: a power of two that divides every ballot's vote."""
    return math.ldexp(1.0, min(_COARSEST, max(math.frexp(scale)[1] - 1 - _BITS, _FINEST)))


def _in_steps(counts: npt.NDArray[np.number], scale: float) -> Numbers:
    whole: Numbers = np.rint(np.asarray(counts, dtype=np.float64) / _step(scale))
    return whole


def _noisy(
    counts: npt.NDArray[np.number],
    scale: float,
    draw: Callable[[float, Size, RandomBytes], npt.NDArray[np.int64]],
    random: RandomBytes,
) -> Numbers:
    step, whole = _step(scale), _in_steps(counts, scale)
    left = [min(_AT_ONCE, whole.size - start) for start in range(0, whole.size, _AT_ONCE)]
    noise = [draw(scale / step, size, random) for size in left]
    # Samples of 2^53 or more are rarer than 2^-128; all others are exact as floats.
    whole += np.concatenate([np.empty(0), *noise]).reshape(whole.shape)
    whole *= step
    return whole
