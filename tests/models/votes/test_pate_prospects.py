"""What queries will cost: by formulas in closed form, and groups with budgets of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support.vote_rules import rule

from earshot_models.votes.rules.rule import TeacherUnit, VotingRule
from earshot_models.votes.tally.prospects import Prospects, prospects, shares, table, weights_of
from earshot_models.votes.tally.tallies import Counter
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy.conversions import zcdp_epsilon, zcdp_rho
from earshot_protocol.privacy.mechanisms import Unit

CONFIDENT = rule("confident", 40.0, (200, 150.0))
DELTA = 1e-5


def made(
    counter: Counter, asked: VotingRule, weights: Any = None, answered: float = 1.0
) -> Prospects:
    return prospects(
        counter,
        asked,
        10,
        DELTA,
        np.ones(250, dtype=np.int64) if weights is None else weights,
        answered=answered,
    )


def test_a_curators_queries_cost_what_gaussian_noise_does() -> None:
    own = made(Counter.CENTRAL, CONFIDENT, answered=0.5)
    rho = 200 / (2 * 150**2) + 100 / 40**2
    found = own.cost(200, Unit.REPLACED_PHONE)
    assert zcdp_epsilon(rho, DELTA) <= found * (1 + 1e-9)
    assert found == pytest.approx(zcdp_epsilon(rho, DELTA), rel=2e-3)


def test_sums_cost_a_little_more_than_a_curator_with_the_same_noise_and_skip_nothing() -> None:
    for unit in (Unit.PHONE, Unit.REPLACED_PHONE):
        central = made(Counter.CENTRAL, CONFIDENT).cost(400, unit)
        federated = made(Counter.FEDERATED, CONFIDENT, answered=0.5).cost(400, unit)
        assert central < federated < 1.01 * central


@pytest.mark.parametrize("counter", list(Counter))
@pytest.mark.parametrize("name", ["gnmax", "confident", "lnmax"])
def test_the_most_queries_are_those_that_one_more_would_be_too_many_of(
    counter: Counter, name: str
) -> None:
    check = (200, 150.0) if name == "confident" else None
    own = made(counter, rule(name, 60.0, check))
    most = own.most(1.5, Unit.REPLACED_PHONE)
    assert own.cost(most, Unit.REPLACED_PHONE) <= 1.5 < own.cost(most + 1, Unit.REPLACED_PHONE)
    assert own.most(1.5, Unit.PHONE) > most


@pytest.mark.parametrize("counter", list(Counter))
def test_groups_spend_their_budgets_together_and_none_more_than_its_own(counter: Counter) -> None:
    """The closed form: labels grow as min ρ(ε_o)/ψ_o², ψ in units of the mean weight."""
    plain = rule("gnmax", 40.0)
    sharing = shares("1:125,2:125", 250)
    assert [each.weight for each in sharing] == [1, 2]
    rows = table(made(counter, plain, weights_of(sharing)), sharing, None)
    for row in rows:
        assert isinstance(row["epsilon"], float)
        assert isinstance(row["budget"], float)
        assert 0.9 * row["budget"] < row["epsilon"] <= row["budget"]
    replaced = [row for row in rows if row["unit"] == TeacherUnit.REPLACED.value]

    mean = 1.5
    expected = min(zcdp_rho(1, DELTA) * mean**2, zcdp_rho(2, DELTA) * (mean / 2) ** 2) * 40**2
    assert replaced[0]["queries"] == pytest.approx(expected, rel=0.02)


def test_a_given_number_of_queries_has_no_budget() -> None:
    rows = table(made(Counter.CENTRAL, CONFIDENT), shares(None, 250), 10)
    assert {row["budget"] for row in rows} == {None}
    assert {row["queries"] for row in rows} == {10}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("1:125", InvalidInputError, "must have 250 members in all"),
        (
            "1:249,2:1",
            InvalidParametersError,
            "must be at least 2, or the budget tells whose it is",
        ),
        ("0:125,2:125", InvalidParametersError, "epsilon=0.0: must be a positive"),
        ("1-125", InvalidInputError, "must be ε:members of every group"),
        ("1:125,3.14159:125", InvalidParametersError, "ratios of whole numbers"),
    ],
)
def test_groups_that_are_none_are_refused(text: str, error: type, message: str) -> None:
    with pytest.raises(error, match=message):
        shares(text, 250)


def test_budgets_of_nothing_are_refused() -> None:
    with pytest.raises(InvalidParametersError, match="must be a positive"):
        table(made(Counter.CENTRAL, CONFIDENT), shares(None, 250, 0.0), None)
    with pytest.raises(InvalidParametersError, match="queries=0: must be a whole number"):
        table(made(Counter.CENTRAL, CONFIDENT), shares(None, 250), 0)


@pytest.mark.parametrize("delta", [0.0, 1.0, 2.0, -1.0, float("nan"), float("inf")])
def test_a_delta_that_promises_nothing_or_the_impossible_is_refused(delta: float) -> None:
    for counter in Counter:
        with pytest.raises(
            InvalidParametersError, match=r"^delta=.*: must be above 0 and below 1$"
        ):
            prospects(counter, CONFIDENT, 10, delta, np.ones(250, dtype=np.int64))


def test_nobody_s_votes_are_not_free() -> None:
    with pytest.raises(InvalidParametersError, match=r"^teachers=0: "):
        made(Counter.CENTRAL, CONFIDENT, np.ones(0, dtype=np.int64))


def test_an_epsilon_that_no_number_holds_is_said_and_not_printed() -> None:
    """The cost that noise in a secure sum is worth is infinite where it is far below one vote."""
    small = made(Counter.FEDERATED, rule("gnmax", 1e-9))
    with pytest.raises(InvalidParametersError, match=r"^no finite ε holds for these queries: "):
        table(small, shares(None, 250), 10)
