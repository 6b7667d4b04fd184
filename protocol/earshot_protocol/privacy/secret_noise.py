"""Real-valued noise that stays secret: only which count it made the largest is ever published.

Never release a number that this noise is in: floating-point samples have gaps that give the number
away (Mironov, CCS 2012), and `privacy.noise` has integers for that. An outcome of a comparison has
no such gaps. What is drawn here is a function of one or two uniform numbers on a grid of 2^-53; the
function of the uniform number within the same cell of the grid has the law that is named. Draw by
draw both differ by less than 2^-47 deviations in the mean, rounding included: a cell's width times
what the function varies in all, at most 37 for Laplace noise, and for normal noise 8.6 for its
radius and 2π for its angle. Two noisy counts are compared wrongly only where they are closer than
that, and noise has a density of at most 1/2. So the law of the largest of m noisy counts is exact
up to a statistical distance of m² · 2^-45, where counts reach no further than 64 deviations; where
they reach c deviations, times c / 64, because the sum of count and noise is rounded.
"""

from __future__ import annotations

import math
import os

import numpy as np
import numpy.typing as npt

from earshot_protocol.privacy.noise import Size
from earshot_protocol.randomness import RandomBytes

_CELL = 2.0**-53
_SPARE_BITS = np.uint64(11)
"""Of 64, where the grid has 2^53 points."""


def normal(size: Size, random: RandomBytes = os.urandom) -> npt.NDArray[np.float64]:
    """Normal noise of deviation 1 (Box and Muller, 1958), none of it beyond 8.6.

    One number of each pair that the method gives is thrown away, so that draws are independent on
    the grid too.

    Args:
        size: shape of the result.
        random: source of bytes; a seeded one belongs in simulations only.
    """
    radius = np.sqrt(-2.0 * np.log(uniform(size, random) + _CELL))
    noise: npt.NDArray[np.float64] = radius * np.cos(2 * np.pi * uniform(size, random))
    return noise


def laplace(size: Size, random: RandomBytes = os.urandom) -> npt.NDArray[np.float64]:
    """Laplace noise of scale 1, density e^-|x| / 2, none of it beyond 36.8.

    Args:
        size: shape of the result.
        random: source of bytes; a seeded one belongs in simulations only.
    """
    signs = np.where(uniform(size, random) < 0.5, -1.0, 1.0)
    noise: npt.NDArray[np.float64] = -signs * np.log(uniform(size, random) + _CELL)
    return noise


def uniform(size: Size, random: RandomBytes) -> npt.NDArray[np.float64]:
    """0, 2^-53, …, 1 − 2^-53, each as likely as the other.

    Args:
        size: shape of the result.
        random: source of bytes; a seeded one belongs in simulations only.
    """
    count = math.prod(size) if isinstance(size, tuple) else size
    words = np.frombuffer(random(8 * count), dtype="<u8") >> _SPARE_BITS
    return (words.astype(np.float64) * _CELL).reshape(size)
