"""Totals that no crowd of honest phones can have.

One phone may send any masked vector, and a broken or forged one makes any total. What lies beyond
what honest inputs and their noise can add up to is not published.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import RemoteError
from earshot_protocol.privacy.mechanisms import SumMechanism

IMPROBABLE = 2.0**-40
"""With which probability, at most, an honest total is taken for an impossible one."""
_TILTS = np.linspace(0.002, 0.998, 499)


class ImpossibleTotalError(RemoteError):
    """A total beyond all that honest phones can add up to: at least one was not."""


def check_total(total: npt.NDArray[np.int64], mechanism: SumMechanism, phones: int) -> None:
    """Refuse a total that no crowd of honest phones can have, but with probability 2^-40.

    Args:
        total: what a secure sum gave.
        mechanism: whose inputs and noise were added up.
        phones: n, each of which adds one input and one share of noise, at most.

    Raises:
        ImpossibleTotalError: an entry is below −T or above n · (largest entry) + T, or all entries
            together are below −T' or above n · (largest sum) + T', T and T' being what the noise
            exceeds with probability 2^-40.
    """
    order = phones / mechanism.honest_survivors
    probability = IMPROBABLE / (2 * (total.size + 1))
    tail = noise_tail(mechanism.scale, order, probability)
    _check("an entry", int(total.min()), int(total.max()), phones * mechanism.largest_entry, tail)
    whole = sum(map(int, total.flat))  # cannot overflow
    tail = noise_tail(mechanism.scale, order * total.size, probability)
    _check("all entries together", whole, whole, phones * mechanism.largest_sum, tail)


def noise_tail(scale: float, order: float, probability: float) -> int:
    """A T that noise of this law exceeds with at most this probability, on either side.

    The noise is the difference of two variables NegativeBinomial(order, α), α = exp(−1/scale), as
    in `polya_share`. Chernoff's bound: P(noise > T) ≤ E[exp(θ · noise)] · exp(−θT) for every θ
    below 1/scale, with E[exp(θ · noise)] = ((1 − α)² / ((1 − αe^θ)(1 − αe^−θ)))^order.

    Args:
        scale: of the discrete Laplace noise that order 1 gives.
        order: positive; n'/n' of the phones that are counted on, and more for more phones.
        probability: of one side, between 0 and 1.
    """
    tilts = _TILTS / scale
    growth = order * (
        2 * np.log(-np.expm1(-1 / scale))
        - np.log(-np.expm1(tilts - 1 / scale))
        - np.log(-np.expm1(-tilts - 1 / scale))
    )
    return math.ceil(float(np.min((growth - math.log(probability)) / tilts)))


def _check(what: str, least: int, most: int, honest: int, tail: int) -> None:
    if least < -tail or most > honest + tail:
        value = least if least < -tail else most
        raise ImpossibleTotalError(
            f"{what} of the sum came to {value}; honest phones and their noise stay between "
            f"{-tail} and {honest + tail}: at least one phone sent what is no input"
        )
