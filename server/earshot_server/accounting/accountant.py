"""Composition of our events by Google's dp-accounting.

The library adds up Rényi divergences, which all our events have, and convolves privacy loss
distributions, which purely private events have. The smaller ε is returned. What real secure
summations add to δ is counted as phones count it (`privacy.composition`). The library is
independent code and its ε is slightly tighter; the audit compares it with ours. Pages and reports
about phases show the phones' count.

Importing the library takes a second, so it is imported where it is used.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from earshot_protocol.privacy.accounting import TOLD_DELTA, Expense, composed_cost
from earshot_protocol.privacy.composition import Composition
from earshot_protocol.privacy.divergences import ORDERS
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.losses import LARGEST_LOSS, dominating
from earshot_protocol.privacy.mechanisms import LEDGER_UNITS, Cost, Unit

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution

ADDED_UP = "added up"
BY_RENYI_DIVERGENCES = "by Rényi divergences"
BY_LOSS_DISTRIBUTIONS = "by privacy loss distributions"
AS_PHONES_DO = "composed as phones do"

_LARGEST_GRID = 1_000_000


@dataclass(frozen=True)
class Composed(Cost):
    """Joint cost of some releases.

    Attributes:
        epsilon: Joint ε of the releases; infinite if no bound holds at this δ.
        delta: Value of δ at which ε holds.
        method: Method of composition that gave ε.
    """

    method: str


def composed(events: Iterable[Event], delta: float = TOLD_DELTA) -> Composed:
    """Return the smallest ε that any of the methods proves at this δ.

    Args:
        events: All releases to be counted, all protecting the same unit.
        delta: Value of δ, from 0 to 1.

    Raises:
        InvalidParametersError: A number of an event, or δ, is out of range.
    """
    counts = Composition(events).counts
    return _composed(frozenset(counts.items()), delta)


def composed_total(
    spent: Iterable[Expense], units: Iterable[Unit] = LEDGER_UNITS
) -> dict[Unit, Composed]:
    """Return the joint cost of all expenses, per unit, as phones count it (`composed_cost`).

    The library's ε is up to 2 % lower; it is not used, so that there is one figure everywhere.
    """
    spent = tuple(spent)
    return {unit: _told([each for each in spent if each.release.unit is unit]) for unit in units}


def _told(spent: list[Expense]) -> Composed:
    cost = composed_cost(spent)
    added = math.fsum(each.release.epsilon for each in spent)
    method = ADDED_UP if cost.epsilon == added else AS_PHONES_DO
    return Composed(cost.epsilon, cost.delta, method)


@functools.lru_cache(maxsize=1024)
def _composed(counts: _Counts, delta: float) -> Composed:
    composition = Composition(event for event, count in counts for _ in range(count))
    bound = composition.best(delta)
    added_up = Composed(composition.added_epsilon, delta, ADDED_UP)
    found = [added_up] if composition.added_delta <= delta else []
    if math.isfinite(bound.epsilon) and 0 < bound.ideal_delta < 1:
        renyi = _by_renyi_divergences(counts, bound.ideal_delta)
        found.append(Composed(bound.move + renyi, delta, BY_RENYI_DIVERGENCES))
        if added_up.epsilon <= LARGEST_LOSS:
            loss = _loss_distribution(counts).get_epsilon_for_delta(bound.ideal_delta)
            found.append(Composed(bound.move + loss, delta, BY_LOSS_DISTRIBUTIONS))
    nothing = Composed(math.inf, delta, BY_RENYI_DIVERGENCES)
    return min(found, key=lambda each: each.epsilon, default=nothing)


_Counts = frozenset[tuple[Event, int]]


def _by_renyi_divergences(counts: _Counts, delta: float) -> float:
    """Return ε of the events with ideal sums, by the library's Rényi accountant."""
    from earshot_server.accounting.library import EventAccountant, ProtocolEvent

    accountant = EventAccountant(ORDERS.tolist())
    for event, count in counts:
        accountant.compose(ProtocolEvent(event), count)
    return float(accountant.get_epsilon(delta))


@functools.lru_cache(maxsize=64)
def _loss_distribution(counts: _Counts) -> PrivacyLossDistribution:
    """Return the joint privacy loss of purely private events, sums ideal (`privacy.losses`)."""
    from dp_accounting.pld import privacy_loss_distribution as library

    each = [(dominating(event), count) for event, count in counts]
    noises = [one._replace(times=one.times * count) for one, count in each if one.largest_loss > 0]
    largest = math.fsum(noise.largest_loss for noise in noises) or 1.0
    finest = min((noise.decay for noise in noises), default=1.0)
    # The smallest loss is an exact multiple of the interval, so the library does not round it.
    interval = finest / 2 ** max(0, math.floor(math.log2(finest * _LARGEST_GRID / largest)))
    together = library.identity(value_discretization_interval=interval)
    for noise in noises:
        one = library.from_discrete_laplace_mechanism(
            noise.decay, noise.shift, value_discretization_interval=interval
        )
        together = together.compose(one.self_compose(noise.times))
    return together
