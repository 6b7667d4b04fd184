"""Expected inputs of phones to a secure sum, for forecasts of each kind of phase."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from earshot_protocol.privacy.laws import NoiseLaw
from earshot_protocol.privacy.significance import LEVEL


@dataclass(frozen=True)
class Hurdle:
    """Test of whether an entry of a sum is clear of the noise.

    Attributes:
        least: Function from the noise on an entry to the least entry that passes.
        chance: Function from that noise and an entry before noise to a bound on the probability
            that it passes.
    """

    least: Callable[[NoiseLaw], int]
    chance: Callable[[NoiseLaw, int], float]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Expected inputs of a sum, for forecasts.

    Attributes:
        shape: Shape of an input; if it is known only later, the largest possible one.
        places: Number of environments, cells or labels among which phones share their votes.
        place: Noun for one of these places.
        votes: Number of votes of one phone.
        most: Most votes of one phone for one place.
        unit: Entry of the sum for one vote.
        spread: Largest sum of the entries of one phone's input, over its largest entry; by default
            its votes over its most votes for one place.
        hurdle: Test for an entry to be clear of the noise.
        honest: Wording before the number of honest phones' votes.
        provided: Condition for this number, as a clause.
        enough: Wording after the number of votes that are needed.
        can: Wording after "can", for places with enough votes.
        remedy: Option that reduces the noise.
        verb: Verb for what phones do with a place that has enough votes.
    """

    shape: tuple[int, ...]
    places: int
    place: str = "environment"
    votes: int
    most: int = 1
    unit: float = 1.0
    spread: float | None = None
    hurdle: Hurdle
    honest: str = "honest votes"
    provided: str = "if every phone casts all of its own"
    enough: str = "stand clear of the noise"
    can: str = "stand clear of the noise"
    remedy: str = "--budget"
    verb: str = "name"


def counts(looked_at: int, least: float = 0.0) -> Hurdle:
    """Return the test of a count against noise alone.

    Args:
        looked_at: Number of counts; `significance.LEVEL` is for all of them together.
        least: Smallest count that passes, whatever the noise.
    """
    return _hurdle(lambda noise: (noise,), looked_at, math.ceil(least))


def names(looked_at: int) -> Hurdle:
    """Return the test of the votes for a name.

    They must also be clear of the runner-up's, which have their own noise.

    Args:
        looked_at: Number of vote counts.
    """
    return _hurdle(lambda noise: (noise, noise.of_difference), looked_at)


def _hurdle(
    laws: Callable[[NoiseLaw], Sequence[NoiseLaw]], looked_at: int, smallest: int = 0
) -> Hurdle:
    def least(noise: NoiseLaw) -> int:
        return max(smallest, least_clear(laws(noise), looked_at))

    def chance(noise: NoiseLaw, entry: int) -> float:
        lacking = least(noise) - entry
        return max(float(law.at_least([lacking])[0]) for law in laws(noise))

    return Hurdle(least, chance)


def least_clear(laws: Sequence[NoiseLaw], looked_at: int) -> int:
    """Return the least sum that each of these noises reaches with probability ≤ `LEVEL`.

    Args:
        laws: Laws of the noise on the sum, and of anything else that it has to be clear of.
        looked_at: Number of sums that are tested together.
    """

    def clear(value: int) -> bool:
        return max(float(law.at_least([value])[0]) for law in laws) * looked_at <= LEVEL

    most = 1
    while not clear(most):
        most *= 2
    least = most // 2
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if clear(middle) else (middle, most)
    return most
