"""What so many queries will cost, and how many a budget buys, before any vote is cast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from earshot_models.votes.costs import personal
from earshot_models.votes.rules.mechanisms import THRESHOLDS, UNITS, Mechanism
from earshot_models.votes.tally.interface import Kind, Purchase, Tally, Whole
from earshot_models.votes.tally.tallies import Counter, Sums, tally
from earshot_models.votes.tally.threshold_rules import claimed_epsilon
from earshot_models.votes.tally.votes import Electorate
from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.randomness import RandomBytes

MOST_QUERIES = 10**6
"""Of which costs are worked out."""


@dataclass(frozen=True)
class Prospects:
    """A tally that nobody has asked yet.

    Attributes:
        tally: its votes are zeros, which no cost here looks at.
        delta: δ of all costs.
        answered: share of the queries that a curator's check lets pass.
    """

    tally: Tally
    delta: float
    answered: float = 1.0

    def __post_init__(self) -> None:
        checks.share("answered", self.answered)

    def worst(self, queries: int, unit: Unit, weight: int | None = None) -> float:
        """ε of so many queries if all are answered: what may be promised of them."""
        return replace(self, answered=1.0).cost(queries, unit, weight)

    def cost(self, queries: int, unit: Unit, weight: int | None = None) -> float:
        """ε of so many queries, if votes are such that `answered` of them are.

        For teachers of this weight; the heaviest by default.
        """
        events = self.tally.events(self.bought(queries), unit, weight)
        return composed_epsilon(events, self.delta)

    def most(self, epsilon: float, unit: Unit, weight: int | None = None) -> int:
        """How many queries ε buys, at most `MOST_QUERIES`."""
        checks.epsilon("epsilon", epsilon)
        least, beyond = 0, 1
        while beyond <= MOST_QUERIES and self.cost(beyond, unit, weight) <= epsilon:
            least, beyond = beyond, 2 * beyond
        beyond = min(beyond, MOST_QUERIES + 1)
        while beyond - least > 1:
            middle = (least + beyond) // 2
            if self.cost(middle, unit, weight) <= epsilon:
                least = middle
            else:
                beyond = middle
        return least

    def bought(self, queries: int) -> tuple[Purchase, ...]:
        """What so many queries are expected to buy."""
        if self.tally.pays_for_answers:
            answers = round(self.answered * queries)
            return Purchase(Kind.CHECK, queries), Purchase(Kind.VOTES, answers)
        whole, rest = divmod(queries, self.tally.at_once)
        blocks = [*self.tally.worst(self.tally.at_once)] * whole
        return (*blocks, *(self.tally.worst(rest) if rest else ()))


@dataclass(frozen=True)
class Share:
    """Teachers with the same budget.

    Attributes:
        members: how many.
        weight: ψ of each, whole.
        epsilon: ε of each; None where what queries cost is asked.
    """

    members: int
    weight: int
    epsilon: float | None


def shares(text: str | None, teachers: int, epsilon: float | None = None) -> list[Share]:
    """Budget groups from text such as `1:125,2:125`: ε and members of each; or all alike.

    Weights are the smallest whole numbers in the ratio of budgets: sensitivities in that ratio
    spend all budgets at about the same query, see `personal.weights`.

    Args:
        text: of the groups; None for teachers that are all alike.
        teachers: how many there are.
        epsilon: of teachers that are all alike.

    Raises:
        InvalidInputError: the text says something else, or names other than all teachers.
        InvalidParametersError: no budget, a group of fewer than two, or budgets whose ratios are no
            small fractions.
    """
    if text is None:
        return [Share(teachers, 1, epsilon)]
    groups = [_group(text, part) for part in text.split(",")]
    if sum(group.members for group in groups) != teachers:
        raise InvalidInputError(f"--groups {text}: must have {teachers} members in all")
    ratios = personal.copies(groups).tolist()
    return [
        Share(group.members, weight, group.epsilon)
        for group, weight in zip(groups, ratios, strict=True)
    ]


def _group(text: str, part: str) -> personal.Group:
    epsilon, _, members = part.partition(":")
    try:
        budget, count = float(epsilon), int(members)
    except ValueError:
        raise InvalidInputError(
            f"--groups {text}: must be ε:members of every group, such as 1:125,2:125"
        ) from None
    return personal.Group(budget, count)


def weights_of(sharing: Sequence[Share]) -> Whole:
    """Of all teachers, int64 (teachers,)."""
    return np.repeat([each.weight for each in sharing], [each.members for each in sharing])


def prospects(
    counter: Counter,
    mechanism: Mechanism,
    delta: float,
    weights: Whole,
    sums: Sums | None = None,
    answered: float = 1.0,
) -> Prospects:
    """Prospects of a tally of so many teachers; arguments as of `tallies.tally`."""
    teachers = len(weights)
    shape = (teachers, 1, mechanism.classes) if mechanism.several else (teachers, 1)
    voters = Electorate(np.zeros(shape, dtype=np.int8), mechanism.classes)
    scores = np.full((1, mechanism.classes), 1 / mechanism.classes)
    made = tally(
        counter,
        mechanism,
        voters,
        weights if (weights != 1).any() else None,
        scores if mechanism.confidence is not None else None,
        sums=sums,
        delta=delta,
        random=_nobody_votes,
    )
    return Prospects(made, delta, answered)


def claimed(made: Prospects, queries: int) -> float | None:
    """ε of so many queries as printed, of votes against thresholds; it does not hold."""
    own = made.tally.mechanism
    if own.name not in THRESHOLDS:
        return None
    if not queries:
        return 0.0
    return claimed_epsilon(own, made.bought(queries), made.delta)


def _nobody_votes(*names: object) -> RandomBytes:
    raise AssertionError("nobody is asked")


def table(
    made: Prospects, sharing: Sequence[Share], queries: int | None
) -> list[dict[str, str | int | float | None]]:
    """What each group pays in each unit, for so many queries or for as many as all can pay for.

    Raises:
        InvalidParametersError: a number of queries out of range, or a budget that buys none.
    """
    if queries is not None:
        checks.whole("queries", queries, 1, MOST_QUERIES)
    rows: list[dict[str, str | int | float | None]] = []
    for unit in UNITS:
        bought = queries
        if bought is None:
            bought = min(made.most(each.epsilon or 0.0, unit, each.weight) for each in sharing)
        rows += [
            {
                "unit": unit.value,
                "weight": each.weight,
                "teachers": each.members,
                "budget": each.epsilon,
                "queries": bought,
                "answered": made.answered,
                "epsilon": made.cost(bought, unit, each.weight),
                "worst": made.worst(bought, unit, each.weight),
                "delta": made.delta,
                "as_printed": claimed(made, bought),
            }
            for each in sharing
        ]
    if not any(row["queries"] for row in rows):
        least = min(made.cost(1, unit, each.weight) for unit in UNITS for each in sharing)
        raise InvalidParametersError(
            f"the budget buys no query: one costs ε = {least:.3g} at least, at δ = {made.delta:g}; "
            "it must be more, or the noise larger"
        )
    return rows
