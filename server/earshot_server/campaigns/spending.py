"""Privacy that a campaign costs a phone over every 366 days, as the phone's ledger counts it.

A phase may open late, a discovery may be repeated, and another campaign may have been before or may
follow. So every release has a range of days on which it may happen, and 366 days may hold each
release whose range they meet: no course of events costs more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import NamedTuple

import msgspec

from earshot_protocol.privacy.accounting import Expense, epsilon_at
from earshot_protocol.privacy.composition import distance
from earshot_protocol.privacy.divergences import ORDERS, renyi
from earshot_protocol.privacy.events import Event
from earshot_protocol.privacy.ledger import YEAR
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.campaigns.schedule import Lengths, PhaseKind, PlannedPhase

_DAY = timedelta(days=1)
_DELTAS = tuple(10.0 ** (-each / 8) for each in range(1, 49))
"""Values of δ, down to 10⁻⁶."""


class Releases(NamedTuple):
    """Everything that one phase makes a phone release, and the days on which that may be.

    Attributes:
        kind: Kind of the phase.
        first: First day on which the phone may release it, in UTC.
        last: Last day on which it may.
        expenses: Expenses in both units; empty for those of the campaign that is being planned,
            whose noise is sought.
        reserve: Times that a phase like this may be repeated in 366 days.
        confusion: Whether it is a weekly sum with a confusion matrix.
    """

    kind: PhaseKind
    first: date
    last: date
    expenses: tuple[Expense, ...]
    reserve: int = 0
    confusion: bool = False


def possible(
    phase: PlannedPhase, lengths: Lengths, expenses: tuple[Expense, ...], reserve: int = 0
) -> Releases:
    """Return what a phase makes a phone release, with all days on which it may."""
    opens, last = phase.opens.date(), lengths.last_day(phase)
    return Releases(phase.kind, opens, last, expenses, reserve, phase.confusion)


def punctual(releases: Iterable[Releases]) -> list[Releases]:
    """Return the same releases if every phase opens as soon as it may and none is repeated."""
    return [each._replace(last=each.first, reserve=0) for each in releases]


class Window(NamedTuple):
    """366 days, and everything that a phone may release in them.

    Attributes:
        first: First day.
        releases: Releases that may be in these days, oldest first.
    """

    first: date
    releases: tuple[Releases, ...]

    @property
    def last(self) -> date:
        """Last day."""
        return self.first + YEAR - _DAY

    @property
    def weeks(self) -> int:
        """Number of weekly sums."""
        return sum(each.kind is PhaseKind.STATISTICS for each in self.releases)

    @property
    def matrices(self) -> int:
        """Number of weekly sums with a confusion matrix."""
        return sum(each.confusion for each in self.releases)

    @property
    def discoveries(self) -> int:
        """Number of discoveries, without repeated ones."""
        return len(self.releases) - self.weeks

    @property
    def repeated(self) -> tuple[Releases, ...]:
        """Discoveries that may be repeated in these days: the dearest, as often as the reserve."""
        found = [each for each in self.releases if each.kind is PhaseKind.DISCOVERY]
        if not found:
            return ()
        dearest = max(found, key=lambda each: sum(one.release.epsilon for one in each.expenses))
        return (dearest,) * max(each.reserve for each in found)

    def expenses(self, unit: Unit) -> tuple[Expense, ...]:
        """Return all known expenses of one unit, in the order in which a ledger has them."""
        return tuple(
            expense
            for each in (*self.releases, *self.repeated)
            for expense in each.expenses
            if expense.release.unit is unit
        )

    def events(self, unit: Unit) -> list[Event]:
        """Return the events of all known expenses of one unit."""
        return [expense.event for expense in self.expenses(unit)]

    @property
    def unknown(self) -> tuple[bool, ...]:
        """Whether each weekly sum whose noise is sought has a confusion matrix."""
        return tuple(each.confusion for each in self.releases if not each.expenses)


_Released = tuple[tuple[Expense, ...], bool]


def windows(releases: Sequence[Releases], begins: date) -> list[Window]:
    """Return all windows of 366 days that may hold the most: each other one holds part of one.

    Args:
        releases: All releases, oldest first.
        begins: Day from which on a window holds a release.
    """
    found: dict[frozenset[tuple[_Released, int]], Window] = {}
    # Moved to the right until a release would drop out, a window holds no less.
    for first in sorted({each.last for each in releases}):
        window = Window(
            first,
            tuple(each for each in releases if each.first < first + YEAR and first <= each.last),
        )
        if window.releases[-1].first >= begins:
            every = (*window.releases, *window.repeated)
            held = Counter((each.expenses, each.confusion) for each in every)
            found.setdefault(frozenset(held.items()), window)
    counted = [(Counter(dict(held)), window) for held, window in found.items()]
    return [window for held, window in counted if not any(held < other for other, _ in counted)]


class YearCost(msgspec.Struct, frozen=True, kw_only=True):
    """Most that a campaign costs over any 366 days, in one unit at one δ.

    Attributes:
        unit: Unit in which neighbours differ.
        delta: Value of δ.
        epsilon: Composed ε, if phases may be late and discoveries repeated.
        punctual_epsilon: Composed ε if every phase opens as soon as it may and none is repeated:
            that of the phones' ledgers.
        largest: Largest ε that a default phone accepts at this δ; None where it has no limit.
    """

    unit: Unit
    delta: float
    epsilon: float
    punctual_epsilon: float
    largest: float | None


def right_guesses(expenses: Sequence[Expense]) -> float:
    """Return how often somebody is right at most who guesses which of two neighbours there was.

    Without the releases it is half of the time, and with them (1 + d) / 2, d the distance of the
    two worlds in total variation. It is at most (e^ε − 1 + 2δ) / (e^ε + 1) for any (ε, δ); and for
    a divergence D at an order just above 1, at most √(D / 2) (Pinsker) and √(1 − e^−D) (Bretagnolle
    and Huber), with the distances of real secure sums from ideal ones added.

    Args:
        expenses: Expenses of one unit.
    """
    spent = tuple(expenses)
    ratios = [(delta, math.exp(-epsilon_at(delta, spent))) for delta in _DELTAS]
    by_delta: float = min((1 - ratio + 2 * delta * ratio) / (1 + ratio) for delta, ratio in ratios)
    divergence = math.fsum(float(renyi(each.event, ORDERS[:1])[0]) for each in spent)
    sums = 2 * math.fsum(distance(each.event) for each in spent)
    by_order: float = min(math.sqrt(divergence / 2), math.sqrt(-math.expm1(-divergence))) + sums
    return (1 + min(by_delta, by_order)) / 2


def most(found: Iterable[Window], unit: Unit, delta: float) -> float:
    """Return the largest ε that a phone may spend in any of these windows."""
    return max(epsilon_at(delta, window.expenses(unit)) for window in found)
