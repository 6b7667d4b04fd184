"""`earshot pate budget RULE`: the cost of queries by the noise alone."""

from __future__ import annotations

import json
from dataclasses import dataclass

from cyclopts import App

from earshot_models.votes.rules.rule import VotingRule
from earshot_protocol.errors import InvalidInputError
from earshot_simulations.commands.pate_rules import Counting, add_rules

app = App(
    name="budget",
    help="Report what this many queries cost, or how many a budget buys, by the noise alone. Where "
    "a curator's check is expected to let a share of them pass (--answered), the worst case "
    "stands beside it: only that can be promised.",
)


@dataclass(frozen=True, kw_only=True)
class Prospect(Counting):
    """Options of a budget, whatever its rule.

    Attributes:
        delta: Value of δ for all queries together.
        teachers: Number of teachers.
        classes: Number of classes, or labels, of a query.
        queries: Report the cost of this many queries.
        epsilon: Report the number of queries that this ε buys.
        groups: Groups of teachers with budgets of their own, ε:members, such as 1:125,2:125.
        answered: Share of the queries that a curator's check lets pass.
    """

    delta: float
    teachers: int
    classes: int
    queries: int | None = None
    epsilon: float | None = None
    groups: str | None = None
    answered: float = 1.0


def _budget(*, rule: VotingRule, shared: Prospect) -> None:
    """Print the costs of a rule."""
    from earshot_models.votes.costs.muschiol import WHY_NOT
    from earshot_models.votes.tally import prospects

    if sum(each is not None for each in (shared.queries, shared.epsilon, shared.groups)) != 1:
        raise InvalidInputError("give one of --queries, --epsilon and --groups")
    sharing = prospects.shares(shared.groups, shared.teachers, shared.epsilon)
    made = prospects.prospects(
        shared.tally,
        rule,
        shared.classes,
        shared.delta,
        prospects.weights_of(sharing),
        shared.sums,
        shared.answered,
    )
    rows = prospects.table(made, sharing, shared.queries)
    if shared.as_json:
        print(json.dumps(rows, indent=2, allow_nan=False))
        return
    for row in rows:
        own = "" if row["budget"] is None else f" of {row['budget']:g}"
        weight = f", weight {row['weight']}" if len(sharing) > 1 else ""
        worst = (
            "" if row["worst"] == row["epsilon"] else f"; {row['worst']:.4g} if all are answered"
        )
        print(
            f"{row['queries']} queries cost ε = {row['epsilon']:.4g}{own} at δ = {shared.delta:g}, "
            f"{row['unit']}{weight}{worst}"
        )
    if rows[0]["as_printed"] is not None:
        print(
            f"as printed (Muschiol 2021), {rows[0]['queries']} queries: ε = "
            f"{rows[0]['as_printed']:.4g}; does not hold: {WHY_NOT}"
        )


add_rules(app, _budget, Prospect)
