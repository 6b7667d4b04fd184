"""Sittings: phases of people who are together now, each with a page of a phone that stays open.

Nobody waits for nights there, so steps are short, and crowds are small. One sum is all that a small
crowd has noise to spare for: that of labels, which gets the whole budget. Two operators add up,
since phones in browsers know no other sums.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from earshot_protocol.phases.discovery import DiscoveryParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.secure_sum.interface import SummationName
from earshot_server.phases.options import PhaseOptions

GATHER_SECONDS = 600.0
"""Seconds in which phones may join, unless an operator lets the phase begin before."""
STEP_SECONDS = 30.0
"""Seconds that a step waits for phones that have not answered."""
SUMS = 0
"""Sums of cells before that of labels."""
_LEAST = 3
"""Fewest phones of any phase."""
_Options = TypeVar("_Options", bound=PhaseOptions)


def seated(asked: _Options) -> _Options:
    """Return the options of a phase as a sitting has them."""
    return replace(asked, summation=SummationName.TWO_OPERATORS, sums=SUMS)


def is_seated(parameters: Parameters) -> bool:
    """Return whether a phase is summed as a sitting is, whatever its hours."""
    by_two = parameters.summation is SummationName.TWO_OPERATORS
    return by_two and isinstance(parameters, DiscoveryParameters) and parameters.sums == SUMS


def enough(phones: int) -> int:
    """Return the default for the fewest phones: half of those expected."""
    return max(_LEAST, -(-phones // 2))
