"""What a labelling promises, against the dearest and any other ways that votes could spend it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.vote_rules import rule

from earshot_models.votes.electorate import Electorate
from earshot_models.votes.rules.rule import UNITS, VoteKind
from earshot_models.votes.tally.budgets import QueryBudget, _order
from earshot_models.votes.tally.interface import Purchase, Tally
from earshot_models.votes.tally.labelling import LabellingRequest, run
from earshot_models.votes.tally.tallies import Counter, SumSettings, tally
from earshot_protocol.privacy.divergences import ORDERS, renyi
from earshot_protocol.privacy.mechanisms import Unit

TEACHERS, QUERIES = 60, 60
WEIGHTS = np.repeat([1, 2], TEACHERS // 2)
CHECK = (40.0, 11.0)
MECHANISMS = {
    "one": (rule("confident", 5.0, CHECK), Counter.CENTRAL, None),
    "weighted": (rule("confident", 5.0, CHECK), Counter.CENTRAL, WEIGHTS),
    "labels": (rule("binary", 5.0, (40.0, 19.0)), Counter.CENTRAL, None),
    "bits": (rule("gnthreshold", 5.0, CHECK, winners=2), Counter.CENTRAL, None),
    "sums": (
        rule("interactive", 9.0, CHECK, confidence=0.5), Counter.FEDERATED, WEIGHTS
    ),
}  # fmt: skip


def made(name: str, at_once: int) -> Tally:
    mechanism, counter, weights = MECHANISMS[name]
    shape: Any = (TEACHERS, QUERIES, 4) if mechanism.several else (TEACHERS, QUERIES)
    scores = np.eye(4)[np.zeros(QUERIES, int)] if mechanism.takes_scores else None
    return tally(
        counter, mechanism, Electorate(np.zeros(shape, np.int8), 4), weights, scores,
        sums=SumSettings(at_once=at_once), delta=1e-5, random=lambda *_: None,  # type: ignore[arg-type, return-value]
    )  # fmt: skip


def walk(
    own: QueryBudget, asked: Tally, generator: np.random.Generator, share: float
) -> list[Purchase]:
    """What some votes would buy until the budget ends it: each kind of a share of the queries."""
    bought: list[Purchase] = []
    left = QUERIES
    while left and (room := own.room(asked, bought, min(left, asked.at_once))):
        for each in asked.worst(room):
            count = room if each.kind is VoteKind.CHECK else int(generator.binomial(room, share))
            if count:
                bought.append(Purchase(each.kind, count))
        left -= room
    return bought


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", list(MECHANISMS))
def test_no_votes_spend_more_than_is_promised(name: str, unit: Unit) -> None:
    epsilon = 9.0
    own, asked = QueryBudget(epsilon, 1e-5, unit, TEACHERS), made(name, 10)
    weights = [1, 2] if MECHANISMS[name][2] is not None else [1]
    promised = {
        (other, weight): own.promised(asked, QUERIES, other, weight)
        for other in UNITS
        for weight in weights
    }
    generator = np.random.default_rng(0)
    for share in (0.0, 0.5, 1.0):
        bought = walk(own, asked, generator, share)
        for (other, weight), most in promised.items():
            assert own.spent(asked, bought, other, weight) <= most * (1 + 1e-9)
    # And it is no more than the budget, nor much less than what is spent in the dearest way.
    heaviest = promised[unit, weights[-1]]
    assert heaviest <= epsilon * (1 + 1e-9)
    bought = walk(own, asked, generator, 1.0)
    assert own.spent(asked, bought, unit) > 0.85 * heaviest
    if len(weights) == 2:
        assert promised[unit, 1] < 0.6 * heaviest, "who weighs half is promised more than half"


def test_what_all_queries_cost_is_promised_where_the_budget_has_room() -> None:
    own, asked = QueryBudget(50.0, 1e-5, Unit.PHONE, TEACHERS), made("one", 7)
    dearest = [each for block in [7] * 8 + [4] for each in asked.worst(block)]
    for unit in UNITS:
        assert own.promised(asked, QUERIES, unit) == own.spent(asked, dearest, unit)


@pytest.mark.parametrize("counter", list(Counter))
def test_where_nothing_depends_on_votes_the_promise_is_what_is_spent(
    counter: Counter, tmp_path: Path
) -> None:
    crowd = Electorate(np.zeros((12, 40), np.int8), 4)
    request = LabellingRequest(
        rule("gnmax", 4.0), QueryBudget(6.0, 1e-5, Unit.PHONE, 12), counter,
        SumSettings(corrupted=0.0, at_once=8),
    )  # fmt: skip
    outcome = run(request, crowd, tmp_path)
    figures = outcome.figures()
    assert figures["promised"]["worst"] == figures["realised"]["costs"]
    assert 0 < figures["realised"]["asked"] < 40


def test_of_delta_sums_take_more_where_more_is_promised() -> None:
    """The budget is for a teacher left out; the promise of one replaced has a larger ε."""
    own, asked = QueryBudget(2.0, 1e-5, Unit.PHONE, TEACHERS), made("sums", 10)
    found = own.promised(asked, QUERIES, Unit.REPLACED_PHONE)
    assert found > 2.0
    # What the filter lets losses be at its order, for the dearest of votes and checks.
    order, conversion = _order(own, asked)

    def losses(kind: Purchase, unit: Unit, orders: Any) -> Any:
        (event,) = asked.events([kind], unit)
        return renyi(event, orders)

    scale = [
        losses(kind, Unit.REPLACED_PHONE, ORDERS) / losses(kind, Unit.PHONE, np.array([order]))
        for kind in asked.worst(1)
    ]
    curve = (2.0 - conversion) * np.max(scale, axis=0)
    grown = 0.1e-5 * (1 + np.exp(found)) / (1 + np.exp(2.0))
    logs = (ORDERS - 1) * (curve - found + np.log1p(-1 / ORDERS)) - np.log(ORDERS)
    ideal = np.exp(logs.min())
    assert 0.98e-5 < ideal + grown <= 1e-5
