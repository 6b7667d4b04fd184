"""Forecast of a labelling: the cost of queries, and the number a budget covers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from earshot_models.votes.costs import personal
from earshot_models.votes.electorate import Electorate
from earshot_models.votes.rules.rule import UNITS, TeacherUnit, VoteKind, VotingRule
from earshot_models.votes.tally.interface import Purchase, Tally, times
from earshot_models.votes.tally.tallies import Counter, SumSettings, tally
from earshot_protocol import checks
from earshot_protocol.arrays import Whole
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.randomness import RandomBytes

MOST_QUERIES = 10**6
"""Most queries whose cost is computed."""


@dataclass(frozen=True)
class Prospects:
    """A tally before any query.

    Attributes:
        tally: Tally; its votes are zeros, as no cost here depends on them.
        delta: Value of δ of all costs.
        answered: Share of the queries that a curator's check lets pass.

    Raises:
        InvalidParametersError: The value of δ is not above 0 and below 1, or the share is not
            from 0 to 1.
    """

    tally: Tally
    delta: float
    answered: float = 1.0

    def __post_init__(self) -> None:
        checks.probability("delta", self.delta)
        checks.share("answered", self.answered)

    def worst(self, queries: int, unit: Unit, weight: int | None = None) -> float:
        """Return ε of this many queries if all are answered: the guarantee."""
        return replace(self, answered=1.0).cost(queries, unit, weight)

    def cost(self, queries: int, unit: Unit, weight: int | None = None) -> float:
        """Return ε of this many queries, if a share `answered` of them is answered.

        The cost is that of teachers of this weight; of the heaviest by default.
        """
        events = self.tally.events(self.bought(queries), unit, weight)
        return composed_epsilon(events, self.delta)

    def most(self, epsilon: float, unit: Unit, weight: int | None = None) -> int:
        """Return the number of queries that ε buys, at most `MOST_QUERIES`."""
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
        """Return the expected purchases of this many queries."""
        if self.tally.pays_for_answers:
            answers = round(self.answered * queries)
            return Purchase(VoteKind.CHECK, queries), Purchase(VoteKind.VOTES, answers)
        whole, rest = divmod(queries, self.tally.at_once)
        blocks = [*self.tally.worst(self.tally.at_once)] * whole
        return (*blocks, *(self.tally.worst(rest) if rest else ()))


@dataclass(frozen=True)
class Share:
    """Teachers with the same budget.

    Attributes:
        members: Number of teachers.
        weight: Weight ψ of each, whole.
        epsilon: Budget ε of each; None to compute the cost of a number of queries.
    """

    members: int
    weight: int
    epsilon: float | None


def shares(text: str | None, teachers: int, epsilon: float | None = None) -> list[Share]:
    """Return budget groups from text such as `1:125,2:125`: ε and members of each; or one group of
    all.

    Weights are the smallest whole numbers in the ratio of budgets: sensitivities in that ratio
    spend all budgets at about the same query, see `personal.weights`.

    Args:
        text: Text of the groups; None for one group of all teachers.
        teachers: Number of teachers.
        epsilon: Budget ε of the only group.

    Raises:
        InvalidInputError: The text is malformed, or members do not add up to the teachers.
        InvalidParametersError: There is no budget, a group of fewer than two, or a ratio of budgets
            that is not a small fraction.
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


def _group(text: str, part: str) -> personal.OwnerGroup:
    epsilon, _, members = part.partition(":")
    try:
        budget, count = float(epsilon), int(members)
    except ValueError:
        raise InvalidInputError(
            f"--groups {text}: must be ε:members of every group, such as 1:125,2:125"
        ) from None
    return personal.OwnerGroup(budget, count)


def weights_of(sharing: Sequence[Share]) -> Whole:
    """Return the weights of all teachers, int64 (teachers,)."""
    return np.repeat([each.weight for each in sharing], [each.members for each in sharing])


def prospects(
    counter: Counter,
    rule: VotingRule,
    classes: int,
    delta: float,
    weights: Whole,
    sums: SumSettings | None = None,
    answered: float = 1.0,
) -> Prospects:
    """Return the prospects of a tally of this many teachers.

    Arguments are those of `tallies.tally`.

    Raises:
        InvalidParametersError: There is no teacher, or `tallies.tally` refuses the request.
    """
    teachers = checks.whole("teachers", len(weights), 1)
    shape = (teachers, 1, classes) if rule.several else (teachers, 1)
    voters = Electorate(np.zeros(shape, dtype=np.int8), classes)
    scores = np.full((1, classes), 1 / classes)
    made = tally(
        counter,
        rule,
        voters,
        weights if (weights != 1).any() else None,
        scores if rule.takes_scores else None,
        sums=sums,
        delta=delta,
        random=_nobody_votes,
    )
    return Prospects(made, delta, answered)


def claimed(made: Prospects, queries: int) -> float | None:
    """Return the printed ε of this many queries if it does not hold; None otherwise."""
    found = made.tally.rule.claimed_epsilon(times(made.bought(queries)), made.delta)
    return 0.0 if found is not None and not queries else found


def _nobody_votes(*names: object) -> RandomBytes:
    raise AssertionError("nobody is asked")


def table(
    made: Prospects, sharing: Sequence[Share], queries: int | None
) -> list[dict[str, str | int | float | None]]:
    """Return the cost of each group in each unit, for this many queries or as many as all can pay.

    Raises:
        InvalidParametersError: The number of queries is out of range, the budget buys none, or no
            finite ε holds.
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
                "unit": TeacherUnit.of(unit).value,
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
    if not all(math.isfinite(float(row["worst"] or 0)) for row in rows):
        raise InvalidParametersError(
            "no finite ε holds for these queries: the noise must be larger, or the queries fewer"
        )
    if not any(row["queries"] for row in rows):
        least = min(made.cost(1, unit, each.weight) for unit in UNITS for each in sharing)
        raise InvalidParametersError(
            f"the budget buys no query: one costs ε = {least:.3g} at least, at δ = {made.delta:g}; "
            "it must be more, or the noise larger"
        )
    return rows
