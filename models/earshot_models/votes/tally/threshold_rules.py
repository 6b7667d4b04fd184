"""Votes against thresholds: the rule of a curator, what noisy counts say, and what both cost.

After Muschiol (2021). A server that sees noisy counts makes thresholds, adaptive ones and checks of
them for nothing; a curator publishes labels alone, pays for a check and for a threshold from a
grid, and less than its noise for labels against a fixed one, since only bits leave.
"""

from __future__ import annotations

import functools

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs import muschiol
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.thresholds import threshold_divergences
from earshot_models.votes.rules.mechanisms import Mechanism, Name
from earshot_models.votes.rules.thresholds import (
    AdaptiveThreshold,
    GNThreshold,
    GridThreshold,
    ThresholdVoting,
    above_widest_gap,
)
from earshot_models.votes.tally.interface import Bought, Kind, Whole
from earshot_protocol.privacy.divergences import ORDERS
from earshot_protocol.privacy.events import Event, RenyiCurve
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import NONE

Numbers = npt.NDArray[np.float64]


def voting(mechanism: Mechanism, teachers: int) -> ThresholdVoting:
    """The rule of a curator, with its noise.

    Args:
        mechanism: one of `THRESHOLDS`; of a grid with its scale.
        teachers: M.
    """
    own, check = mechanism, mechanism.check
    match own.name:
        case Name.GNTHRESHOLD:
            cut = teachers / 2 if own.cut is None else own.cut
            return GNThreshold(cut, own.deviation, teachers, own.most, check)
        case Name.GRID_THRESHOLD:
            grid, scale = own.grid or (), own.scale or 0.0
            return GridThreshold(grid, scale, own.deviation, teachers, own.most, check)
    return AdaptiveThreshold(own.deviation, teachers, own.most, check)


def against_thresholds(mechanism: Mechanism, votes: Numbers, teachers: float) -> Whole:
    """Labels that noisy counts give: all of it is post-processing.

    Args:
        mechanism: one of `THRESHOLDS`.
        votes: noisy counts in votes, (queries, labels), as if all teachers had voted.
        teachers: M.

    Returns:
        int64 (queries, labels): 1 or 0, or `NONE` where no count reaches the bar.
    """
    match mechanism.name:
        case Name.GNTHRESHOLD_ADAPTIVE:
            winning = above_widest_gap(votes)
        case Name.GRID_THRESHOLD:
            winning = votes > _roomiest(np.array(mechanism.grid), votes, teachers)[:, None]
        case _:
            winning = votes > (teachers / 2 if mechanism.cut is None else mechanism.cut)
    found = winning.astype(np.int64)
    if mechanism.bar is not None:
        found[votes.max(axis=1) < mechanism.bar] = NONE
    return found


def _roomiest(grid: Numbers, votes: Numbers, teachers: float) -> Numbers:
    """The threshold that is farthest from all counts, and from nobody's and everybody's vote."""
    edges = np.broadcast_to([0.0, teachers], (len(votes), 2))
    counted = np.concatenate([votes, edges], axis=1)
    room = abs(counted[:, None, :] - grid[:, None]).min(axis=2)
    chosen: Numbers = grid[room.argmax(axis=1)]
    return chosen


def events(mechanism: Mechanism, bought: Bought, unit: Unit) -> tuple[Event, ...]:
    """What a curator released, whatever the votes are."""
    times = {kind: sum(each.queries for each in bought if each.kind is kind) for kind in Kind}
    asked, answered = _curves(mechanism, unit)
    total = times[Kind.CHECK] * asked + times[Kind.VOTES] * answered
    return (RenyiCurve(tuple(ORDERS.tolist()), tuple(total.tolist())),) if total.any() else ()


@functools.lru_cache(maxsize=64)
def _curves(mechanism: Mechanism, unit: Unit) -> tuple[Numbers, Numbers]:
    """Of a check and of an answer, each (orders,)."""
    any_votes, anybody = np.zeros((1, mechanism.classes)), 2**30  # neither changes what noise costs
    rule = voting(mechanism, anybody)
    each = threshold_divergences(rule, any_votes, ORDERS, Method.INDEPENDENT, unit)
    return each.asked[0], each.answered[0]


def claimed_epsilon(mechanism: Mechanism, bought: Bought, delta: float) -> float:
    """ε of the same as Muschiol (2021) has it: as printed, it does not hold."""
    times = {kind: sum(each.queries for each in bought if each.kind is kind) for kind in Kind}
    check = None if mechanism.check is None else mechanism.check.deviation
    return muschiol.claimed_epsilon(
        mechanism.deviation, times[Kind.VOTES], check, times[Kind.CHECK], delta
    )
