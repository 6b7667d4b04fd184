"""What a campaign's weekly sums can tell: the smallest change between two weeks, and its crowd.

Two weeks are compared by the difference of a place's totals. Each total has the noise of its
entries, and its number of contacts varies from week to week as independent events do (Poisson). A
change is *told* if the difference lies outside ± 1.96 standard deviations, estimated from noise and
totals, which happens in 5 of 100 cases without any change. The *smallest change that can be told*
is the increase that is told in 80 of 100 cases.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import NormalDist

import msgspec

from earshot_protocol.phases.parameters import LARGEST_CROWD

CONFIDENCE, POWER = 0.95, 0.80
_LEVEL = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
_DISTANCE = _LEVEL + NormalDist().inv_cdf(POWER)
"""Standard deviations between no change and a change that is told with this power."""
TOLD_CHANGE = 0.1
"""Change for which a crowd is proposed."""


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """What one week's sum tells of a place.

    Attributes:
        place: Share of all contacts that the place has.
        contacts: Contacts of the place in a week, as projected counts add them up.
        entry_deviation: Standard deviation of the noise on each entry of the sum, in contacts.
        deviation: Standard deviation of the noise on the total of a place, in contacts.
        change: Smallest relative change between two weeks that can be told; infinite for none.
    """

    place: float
    contacts: float
    entry_deviation: float
    deviation: float
    change: float


def smallest_change(contacts: float, deviation: float) -> float:
    """Return the smallest relative increase between two weeks that can be told.

    With d the increase in contacts, the difference has the variance 2σ² + 2m + d, so that d² =
    z² (2σ² + 2m + d).

    Args:
        contacts: Expected contacts of the place in the first week, m.
        deviation: Standard deviation of the noise on a week's total, σ.
    """
    if contacts <= 0:
        return math.inf
    square = _DISTANCE**2
    constant = 2 * deviation**2 + 2 * contacts
    return (square + math.sqrt(square**2 + 4 * square * constant)) / 2 / contacts


def kept(length: float, mean: float) -> float:
    """Return the share of contacts that remains when counts are projected to a length.

    It is for numbers of contacts with an exponential tail, all of a phone's in one entry, and so a
    lower bound for them: 1 − e^(−B/m).

    Args:
        length: Length to which counts are projected, B.
        mean: Contacts of a phone, on average, m.
    """
    return -math.expm1(-length / mean)


def proposed_length(mean: float, deviation: float, contacts: float) -> int:
    """Return the length B at which noise and lost contacts together err least.

    The relative error of a place's total has the variance (Bσ/m)² by noise and the square of
    e^(−B/x) by projection, x the mean number of a phone's contacts.

    Args:
        mean: Contacts of a phone, on average, x.
        deviation: Standard deviation of the noise on a place's total, σ, for B = 1.
        contacts: Contacts of the place in a week, m.
    """

    def error(length: int) -> float:
        return (length * deviation / contacts) ** 2 + (1 - kept(length, mean)) ** 2

    length = max(1, math.ceil(mean))
    while error(length + 1) < error(length):
        length += 1
    return length


def phones_needed(change: Callable[[int], float], phones: int) -> int | None:
    """Return the size of a crowd that tells `TOLD_CHANGE`, to two digits; None if none does.

    Args:
        change: Function from a number of phones to the smallest change that they can tell.
        phones: Number of phones to begin with.
    """
    most = phones
    while change(most) > TOLD_CHANGE:
        if most > LARGEST_CROWD:
            return None
        most *= 2
    least = 3
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (middle, most) if change(middle) > TOLD_CHANGE else (least, middle)
    step: int = 10 ** max(0, len(str(most)) - 2)
    return -(-most // step) * step
