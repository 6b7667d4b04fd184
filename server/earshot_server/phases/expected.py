"""Expected inputs of phones to a secure sum, as each kind of phase foretells them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from earshot_protocol.privacy.laws import NoiseLaw
from earshot_protocol.privacy.significance import LEVEL


@dataclass(frozen=True)
class Hurdle:
    """A test of whether an entry of a sum stands clear of the noise.

    Attributes:
        least: Function from the noise on an entry to the least entry that passes.
        chance: Function from that noise, and an entry before noise, to the chance that it passes,
            at most.
    """

    least: Callable[[NoiseLaw], int]
    chance: Callable[[NoiseLaw, int], float]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """Expected inputs of a sum, for forecasts.

    Attributes:
        shape: Shape of an input; where it is found only later, the largest that may be kept.
        places: Number of environments, cells or labels among which phones share their votes.
        place: Word for one of these places.
        votes: Votes that one phone has.
        most: Most votes of one phone for one place.
        unit: Entry of the sum that one vote makes.
        spread: Most that all parts of one phone's input add up to, in votes; by default its votes.
        hurdle: Test by which an entry is not taken for noise.
        honest: Words for the votes of honest phones, before their number.
        provided: Condition under which there are as many of these as is said.
        enough: Words after the number of votes that are needed, for what that many do.
        can: Words after "can", for what places with enough votes can do.
        remedy: Option that reduces the noise.
        verb: Word for what phones do with a place that has enough votes.
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
    """Return the test of a count: noise alone seldom reaches it.

    Args:
        looked_at: Number of counts; `significance.LEVEL` is for all of them together.
        least: Least count that is informative, whatever the noise.
    """
    return _hurdle(lambda noise: (noise,), looked_at, math.ceil(least))


def names(looked_at: int) -> Hurdle:
    """Return the test of the votes for a name.

    They must also be clear of a runner-up, which has noise of its own.

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
    """Return the least sum that each of these noises reaches with a chance of at most `LEVEL`.

    Args:
        laws: Laws of the noise on the sum, and of all else that it has to be clear of.
        looked_at: Number of sums among which it is found.
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
