"""All summations by name, and the tasks that open their sums."""

from __future__ import annotations

from collections.abc import Mapping

from earshot_protocol.secure_sum.bell import BELL
from earshot_protocol.secure_sum.interface import Summation, SummationName
from earshot_protocol.secure_sum.messages import AdvertiseKeys, SumTask
from earshot_protocol.secure_sum.parameters import SumParameters
from earshot_protocol.two_operators.messages import SendReport
from earshot_protocol.two_operators.parameters import TwoOperatorParameters
from earshot_protocol.two_operators.summation import TWO_OPERATORS as TWO_OPERATORS

Opening = AdvertiseKeys | SendReport
"""Task that opens a sum for a phone, inside the one that begins a part of a phase."""
AnySumParameters = SumParameters | TwoOperatorParameters

SUMMATIONS: Mapping[SummationName, Summation] = {
    SummationName.BELL: BELL,
    SummationName.TWO_OPERATORS: TWO_OPERATORS,
    SummationName.TWO_OPERATORS_UNPROVED: TWO_OPERATORS,
}


def summation_of(task: SumTask) -> Summation:
    """Return the summation that a task belongs to."""
    return next(each for each in SUMMATIONS.values() if type(task) in each.tasks)
