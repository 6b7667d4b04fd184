"""Privacy filter: the number of queries that a budget still covers.

Stopping by a data-dependent cost would leak information about the votes, so the filter uses the
cost of the noise alone. Where an answer is paid for only if there is one, purchases depend on
earlier outcomes: their losses are added up at one order fixed in advance, and no query is asked
that might exceed the budget. Such a filter keeps its budget for any adaptive choices (Feldman and
Zrnic, NeurIPS 2021). The guarantee is `QueryBudget.promised`, computed before any vote is cast. The
final cost depends on the votes: it is no guarantee, and reveals information about them.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from earshot_models.votes.rules.rule import UNITS
from earshot_models.votes.tally.interface import Bought, Purchase, Tally
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.plain_values import hold_plain
from earshot_protocol.privacy.composition import composed_epsilon, distance
from earshot_protocol.privacy.conversions import renyi_epsilons
from earshot_protocol.privacy.divergences import ORDERS, Curve, renyi
from earshot_protocol.privacy.mechanisms import Unit

_FOR_SUMS = 0.1
"""Share of δ that a filter reserves for the distance of real secure sums from ideal ones."""


@dataclass(frozen=True)
class QueryBudget:
    """Budget of all queries together.

    Attributes:
        epsilon: Value of ε for all queries.
        delta: Value of δ for all queries.
        unit: Unit in which neighbours differ: a teacher left out, or replaced.
        records: Total number of records that the teachers learned from.

    Raises:
        InvalidParametersError: The budget is empty, the unit is another, or δ is 1/records or more,
            which permits publishing a record.
    """

    epsilon: float
    delta: float
    unit: Unit
    records: int

    def __post_init__(self) -> None:
        hold_plain(self)
        checks.epsilon("epsilon", self.epsilon)
        checks.probability("delta", self.delta)
        checks.whole("records", self.records)
        if self.delta * self.records >= 1:
            raise InvalidParametersError(
                f"delta={self.delta}: must be below 1/{self.records}, one over the number of "
                "records, or one of them may as well be published"
            )
        if self.unit not in UNITS:
            raise InvalidParametersError(
                f"unit={self.unit}: must be one of {', '.join(map(repr, map(str, UNITS)))}"
            )

    def room(self, tally: Tally, bought: Bought, most: int) -> int:
        """Return the number of queries that may still be asked, each at its largest cost.

        Args:
            tally: Tally that is asked.
            bought: Votes that were paid for so far.
            most: Upper limit of the result.
        """
        least, beyond = 0, most + 1
        while beyond - least > 1:
            middle = (least + beyond) // 2
            if self._covers(tally, (*bought, *tally.worst(middle))):
                least = middle
            else:
                beyond = middle
        return least

    def promised(self, tally: Tally, queries: int, unit: Unit, weight: int | None = None) -> float:
        """Return the ε that holds for any votes, for teachers of this weight.

        It covers all queries that the budget has room for, each at its largest cost; where
        purchases depend on outcomes, the most expensive way to spend the budget.

        Args:
            tally: Tally; its votes are not used.
            queries: Queries that may be asked.
            unit: Unit in which neighbours differ.
            weight: Weight ψ of the teacher; the largest by default.
        """
        bought: list[Purchase] = []
        left = queries
        while left:
            wanted = min(left, tally.at_once)
            room = self.room(tally, bought, wanted)
            if room < wanted and tally.adaptive:
                # One query per sum: no labelling has more sums, each of which uses some of δ.
                every = [each for each in tally.worst(1) for _ in range(queries)]
                whole = self.spent(tally, every, unit, weight)
                return min(whole, self._filtered(tally, unit, weight))
            if not room:
                break
            bought += tally.worst(room)
            left -= room
        return self.spent(tally, bought, unit, weight)

    def _filtered(self, tally: Tally, unit: Unit, weight: int | None) -> float:
        """Return the largest cost of a labelling for these teachers before the filter stops it.

        The filter bounds losses at one order, for the heaviest teacher and the budget's unit.
        Losses for other teachers and orders are proportional, so the worst case spends the whole
        budget on the purchase with the largest ratio. Sums use as much of δ as the filter reserves
        at the budget's ε, and more where ε is larger here.
        """
        order, conversion = _order(self, tally)
        at = int(np.searchsorted(ORDERS, order))
        ratios = [
            _curve(tally, each, unit, weight) / _curve(tally, each, self.unit, None)[at]
            for each in tally.worst(1)
        ]
        losses = (self.epsilon - conversion) * np.max(ratios, axis=0)
        sums = any(map(distance, tally.events(tally.worst(1), self.unit)))
        share, found = _FOR_SUMS if sums else 0.0, self.epsilon
        while share < 1:
            reckoned = found
            found = float(renyi_epsilons(losses, ORDERS, self.delta * (1 - share)).min())
            if found <= reckoned or not sums:
                return max(0.0, found)
            share = _FOR_SUMS * math.exp(np.logaddexp(0, found) - np.logaddexp(0, self.epsilon))
        return math.inf

    def spent(self, tally: Tally, bought: Bought, unit: Unit, weight: int | None = None) -> float:
        """Return ε of what was bought, for teachers of this weight; the heaviest by default."""
        return composed_epsilon(tally.events(bought, unit, weight), self.delta)

    def _covers(self, tally: Tally, bought: Bought) -> bool:
        if not tally.adaptive:
            return self.spent(tally, bought, self.unit) <= self.epsilon
        order, conversion = _order(self, tally)
        events = tally.events(bought, self.unit)
        moved = math.fsum(map(distance, events)) * (1 + math.exp(self.epsilon))
        if moved > _FOR_SUMS * self.delta:
            return False
        losses = math.fsum(float(renyi(each, np.array([order]))[0]) for each in events)
        return losses + conversion <= self.epsilon


@functools.lru_cache(maxsize=16)
def _best_order(budget: QueryBudget, curve: bytes, through_sums: bool) -> tuple[float, float]:
    """Return the order at which the budget covers most queries, and its conversion term."""
    losses = np.frombuffer(curve)
    delta = budget.delta * (1 - _FOR_SUMS) if through_sums else budget.delta
    conversions = np.log1p(-1 / ORDERS) - (math.log(delta) + np.log(ORDERS)) / (ORDERS - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        times = np.where(losses > 0, (budget.epsilon - conversions) / losses, -np.inf)
    best = int(np.nanargmax(times))
    return float(ORDERS[best]), float(conversions[best])


def _curve(tally: Tally, bought: Purchase, unit: Unit, weight: int | None) -> Curve:
    """Return the divergences of one purchase, (orders,), in proportion to its queries."""
    events = tally.events([bought], unit, weight)
    losses: Curve = np.sum([np.zeros(len(ORDERS)), *map(renyi, events)], axis=0)
    return losses


def _order(budget: QueryBudget, tally: Tally) -> tuple[float, float]:
    events = tally.events(tally.worst(tally.at_once), budget.unit)
    curve = np.sum([renyi(each) for each in events], axis=0)
    return _best_order(budget, curve.tobytes(), any(map(distance, events)))
