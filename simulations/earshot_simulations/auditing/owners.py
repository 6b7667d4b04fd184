"""Budgets of owners: an owner who votes until its budget is spent keeps within its ε."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from earshot_models.votes.costs.costs import epsilons
from earshot_models.votes.costs.personal import (
    OwnerGroup,
    OwnersAccount,
    QueryCost,
    concentration,
    weights,
)
from earshot_models.votes.rules.confident import ConfidentRule
from earshot_protocol.arrays import Numbers
from earshot_protocol.privacy.divergences import ORDERS
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import Check
from earshot_simulations.auditing.proofs import DELTA


def audit_owners(queries: int = 200) -> Iterator[Check]:
    """Audit accounts of owners, with exact weights and with weights rounded to whole numbers.

    Args:
        queries: Number of queries.
    """
    groups = (OwnerGroup(0.5, 15), OwnerGroup(0.8, 15), OwnerGroup(2.0, 10))
    for words, loud in (("weights", weights(groups)), ("whole weights", np.array([1.0, 1.0, 2.0]))):
        yield _spent(f"owners of three budgets, {words}", groups, loud, queries)


def rounded_weights() -> Check:
    """Plant a fault: plan queries with exact weights, and cast votes with rounded ones."""
    groups = (OwnerGroup(1.0, 20), OwnerGroup(1.5, 20))
    rule = ConfidentRule(sigma=40.0, threshold=25.0, check_sigma=60.0)
    planned, limits = weights(groups), np.array([group.epsilon for group in groups])
    cost = sum(QueryCost.of(rule.sigma, rule.check))
    rho = concentration(limits, DELTA) / np.square(planned) / cost
    queries = math.floor(rho.min())
    cast = np.square(np.rint(planned)) * queries
    case = f"{queries} queries for weights 0.8 and 1.2, cast as 1 and 1"
    return _within(case, limits, rule, cast, cast)


def _spent(case: str, groups: Sequence[OwnerGroup], loud: Numbers, queries: int) -> Check:
    """Check owners that vote until their budgets are spent.

    Args:
        case: Description of the budgets and weights.
        groups: Owners by equal budgets.
        loud: Weight of a vote of each group.
        queries: Number of queries.
    """
    of = np.repeat(np.arange(len(groups)), [group.members for group in groups])
    limits = np.array([group.epsilon for group in groups])[of]
    rule = ConfidentRule(sigma=20.0, threshold=25.0, check_sigma=30.0)
    cost = QueryCost.of(rule.sigma, rule.check)
    account = OwnersAccount(limits, DELTA)
    generator = np.random.default_rng(0)
    asked, answered = np.zeros(len(of)), np.zeros(len(of))
    for _ in range(queries):
        voting = account.willing(cost, loud[of])
        yes = bool(generator.random() < 0.5)
        account.pay(cost, voting, yes)
        asked += np.square(voting)
        answered += np.square(voting) * yes
    return _within(case, limits, rule, asked, answered)


def _within(
    case: str, limits: Numbers, rule: ConfidentRule, asked: Numbers, answered: Numbers
) -> Check:
    """Check spent budgets, from the squared weights of checks and answers, added up."""
    each = rule.divergences(np.ones((1, 2)), ORDERS)
    curves = asked[:, None] * each.asked + answered[:, None] * each.answered
    worst = float((epsilons(curves, ORDERS, DELTA) / limits).max())
    return Check(
        case,
        "every owner's ε at most its own",
        f"{worst:.3g} of it at most",
        worst <= 1.001,  # room for a grid of orders instead of the best order
        "checks and answers of all queries at the weights that were cast, composed again",
        f"{power.EXACTLY} beyond .1 %",
    )
