"""Noise that is the largest of many draws, which stays secret like that of `secret_noise`.

What that file says of outcomes holds here too: each draw is a function of one uniform number on a
grid of 2^-53, which varies by less than 42 in all, and the function of the uniform number within
the same cell of the grid has the law that is named.
"""

from __future__ import annotations

import math
import os
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from earshot_protocol.privacy import secret_noise
from earshot_protocol.privacy.noise import Size
from earshot_protocol.randomness import RandomBytes

_NORMAL = NormalDist()
_LEAST_LOG = -700.0
"""Below it is what only the largest of none has."""
_HALF_CELL = 2.0**-54


def gumbel(size: Size, random: RandomBytes = os.urandom) -> npt.NDArray[np.float64]:
    """Gumbel noise of scale 1, density e^(−x − e^(−x)): from −3.7 to 37.5.

    Args:
        size: shape of the result.
        random: source of bytes; a seeded one belongs in simulations only.
    """
    noise: npt.NDArray[np.float64] = -np.log(_exponential(size, random))
    return noise


def largest_normal(
    log_counts: npt.NDArray[np.float64], random: RandomBytes = os.urandom
) -> npt.NDArray[np.float64]:
    """The largest of many draws of normal noise of deviation 1, without drawing them all.

    Φ⁻¹(U^(1/M)), U uniform. Where U^(1/M) is close to one, what it lacks is worked out instead, so
    that the tail is as exact as the middle.

    Args:
        log_counts: ln M, each at most 600; −∞, of none, has no largest: −∞.
        random: source of bytes; a seeded one belongs in simulations only.
    """
    lacking = _exponential(log_counts.shape, random)  # −ln U
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        logs = -np.exp(np.log(lacking) - log_counts)  # ln Φ(the largest)
    flat = [_quantile(each) for each in logs.ravel().tolist()]
    return np.array(flat, dtype=np.float64).reshape(log_counts.shape)


def _quantile(log_probability: float) -> float:
    """Φ⁻¹ of a probability whose logarithm is given."""
    if log_probability < _LEAST_LOG:
        return -math.inf
    if log_probability < -math.log(2):
        return _NORMAL.inv_cdf(math.exp(log_probability))
    return -_NORMAL.inv_cdf(-math.expm1(log_probability))


def _exponential(size: Size, random: RandomBytes) -> npt.NDArray[np.float64]:
    """−ln U, which is how far Laplace noise is from zero."""
    # Of the largest uniform number the logarithm is zero; that of half a cell below it is this.
    return np.maximum(np.abs(secret_noise.laplace(size, random)), _HALF_CELL)
