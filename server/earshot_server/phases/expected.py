"""What phones are expected to put into a secure sum, as each kind of phase foretells it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from earshot_protocol.privacy.laws import NoiseLaw
from earshot_protocol.privacy.significance import LEVEL

Fewest = Callable[[NoiseLaw], int]
"""From the noise on an entry of a sum to the least entry that says something."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """The inputs of a sum, before anybody has heard anything.

    Attributes:
        shape: of an input; what is only found later is taken to be as much as is kept at most.
        places: among how many environments, cells or labels phones share their votes.
        place: what these are called.
        votes: that one phone has.
        most: of these, for one place.
        unit: entry of the sum that one vote makes.
        needed: the least entry that is not taken for noise.
        honest: what is said of the votes of honest phones, before their number.
        provided: under which condition these are as many as is said.
        enough: what is said of as many votes as are needed, after their number.
        can: what is said of places with so many, after "can".
        remedy: the option that thins the noise.
    """

    shape: tuple[int, ...]
    places: int
    place: str = "environment"
    votes: int
    most: int = 1
    unit: float = 1.0
    needed: Fewest
    honest: str = "honest votes"
    provided: str = "if every phone casts all of its own"
    enough: str = "stand clear of the noise"
    can: str = "stand clear of the noise"
    remedy: str = "--budget"


def counts(looked_at: int) -> Fewest:
    """What a count needs so that noise alone seldom reaches it.

    Args:
        looked_at: how many counts there are: `significance.LEVEL` is for all of them together.
    """
    return lambda noise: least_clear((noise,), looked_at)


def names(looked_at: int) -> Fewest:
    """What the votes for a name need: to be clear of a runner-up as well, whose noise is another.

    Args:
        looked_at: how many numbers of votes there are.
    """
    return lambda noise: least_clear((noise, noise.of_difference), looked_at)


def least_clear(laws: Sequence[NoiseLaw], looked_at: int) -> int:
    """The least sum that all of these noises reach with a chance of `LEVEL` at most.

    Args:
        laws: of the noise on it, and of what else it has to be clear of.
        looked_at: among how many sums it is found.
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
