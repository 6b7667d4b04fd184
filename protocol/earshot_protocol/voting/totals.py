"""Refusal of totals that honest phones cannot produce.

A phone may send any masked vector, so a broken or forged one can make any total. A total beyond the
range of honest inputs and their noise is not published.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import RemoteError
from earshot_protocol.privacy.mechanisms import SumMechanism

IMPROBABLE = 2.0**-40
"""Largest probability of refusing an honest total."""


class ImpossibleTotalError(RemoteError):
    """A total that honest phones cannot produce: at least one phone was not honest."""


def check_total(total: npt.NDArray[np.int64], mechanism: SumMechanism, phones: int) -> None:
    """Refuse a total that honest phones produce with probability at most 2^-40.

    Args:
        total: Total of a secure sum.
        mechanism: Mechanism whose inputs and noise were added up.
        phones: Number of phones, n, each of which adds at most one input and one share of noise.

    Raises:
        ImpossibleTotalError: An entry is below n · (least entry) − T or above n · (largest entry) +
            T, or all entries together exceed the total of n inputs by T', T and T' being bounds
            that the noise exceeds with probability 2^-40.
    """
    probability = IMPROBABLE / (2 * (total.size + 1))
    noise = mechanism.noise(phones)
    least, most = phones * mechanism.least_entry, phones * mechanism.largest_entry
    tail = noise.tail_bound(probability)
    _check("an entry", int(total.min()), int(total.max()), least - tail, most + tail)
    whole, most = sum(map(int, total.flat)), phones * mechanism.largest_sum  # cannot overflow
    least = -most if mechanism.least_entry < 0 else 0
    tail = noise.times(total.size).tail_bound(probability)
    _check("all entries together", whole, whole, least - tail, most + tail)


def _check(what: str, least: int, most: int, smallest: int, largest: int) -> None:
    if least < smallest or most > largest:
        value = least if least < smallest else most
        raise ImpossibleTotalError(
            f"{what} of the sum came to {value}; honest phones and their noise stay between "
            f"{smallest} and {largest}: at least one phone sent something that is not an input"
        )
