"""Sittings: phases of people who are together now, each with a phone's page that stays open.

Phones answer immediately, so steps are short, and crowds are small. A small crowd can afford the
noise of only one sum, the sum of labels, which gets the whole budget. It is by two operators, the
only summation that phones in browsers implement.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.phases.options import PhaseOptions

GATHER_SECONDS = 600.0
"""Seconds in which phones may join, unless an operator begins the phase before."""
STEP_SECONDS = 30.0
"""Seconds that a step waits for phones that have not answered."""
SUMS = 0
"""Sums of cells before that of labels."""
_LEAST = 3
"""Fewest phones of any phase."""
_Options = TypeVar("_Options", bound=PhaseOptions)


def seated(asked: _Options) -> _Options:
    """Return the options with the summation and number of sums of a sitting."""
    by_two = asked.summation.by_operators
    summation = asked.summation if by_two else SummationName.TWO_OPERATORS
    return replace(asked, summation=summation, sums=SUMS)


def is_seated(parameters: Parameters) -> bool:
    """Return whether a phase has a sitting's summation and sums, whatever its times."""
    by_two = parameters.summation.by_operators
    return by_two and isinstance(parameters, DiscoveryParameters) and parameters.sums == SUMS


def enough(phones: int) -> int:
    """Return the default for the fewest phones: half of those expected."""
    return max(_LEAST, -(-phones // 2))
