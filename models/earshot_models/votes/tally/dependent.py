"""Data-dependent cost of a curator's answers, with noise for publication.

Such a cost is private itself: it is published once, with noise of smooth sensitivity, and includes
the cost of its publication. The parameters depend on public numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from earshot_models.votes.costs import releases
from earshot_models.votes.costs.releases import VotesCost
from earshot_models.votes.rules.rule import VotingRule
from earshot_models.votes.rules.table import RULES
from earshot_models.votes.tally.budgets import QueryBudget
from earshot_models.votes.tally.central import Central
from earshot_models.votes.tally.interface import Tally
from earshot_protocol.arrays import Whole
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.conversions import renyi_epsilons
from earshot_protocol.privacy.noisy_counts import ODDS

_CONVERSION = 0.5
"""Share of the budget's ε for the conversion term ln(1/δ)/(λ − 1)."""
_RELEASE = 0.1
"""Share of the budget's ε for the publication."""
_BETA = 0.8
"""Smoothness β as a share of the largest one of the order."""


def plan(budget: QueryBudget) -> releases.CostRelease:
    """Return order, β and σ_s, given the budget: λ = 1 + 2 ln(1/δ)/ε, ε/10 for the publication.

    Raises:
        InvalidParametersError: The budget is too small for a publication.
    """
    order = 1 - math.log(budget.delta) / (_CONVERSION * budget.epsilon)
    beta = _BETA * releases.largest_beta(order)
    left = order - (order - 1) * math.exp(2 * beta)
    spare = _RELEASE * budget.epsilon + math.log(left) / (2 * (order - 1)) + beta
    if spare <= 0:
        raise InvalidParametersError(
            f"epsilon={budget.epsilon}: is too small to publish a cost that looks at votes; take "
            "the one of the noise alone"
        )
    deviation = math.sqrt(order / (2 * left * spare))
    cost = releases.release_divergence(order, beta, deviation)
    return releases.CostRelease(order, beta, deviation, math.nan, cost)


def publish(
    cost: VotesCost, tally: Central, outcomes: Whole, budget: QueryBudget
) -> Mapping[str, float | str]:
    """Draw and return one publication of the cost; drawing it twice costs twice.

    Args:
        cost: Kind of cost.
        tally: Tally of a curator.
        outcomes: Outcomes of the queries that were asked about.
        budget: Budget of the labelling.

    Raises:
        InvalidParametersError: No such bound holds for this tally, or none that can be published.
    """
    rule, wanted = check(cost, tally), plan(budget)
    queries = len(outcomes)
    asked = tally.voters.among(range(queries))
    spent, sensitivities = rule.release(cost, asked, outcomes, wanted.order, budget.unit)
    secret = releases.smooth_sensitivity(sensitivities, wanted.beta)
    shown = releases.published(spent, wanted._replace(sensitivity=secret)) + wanted.divergence
    shown += _in_steps(queries * rule.draws(tally.poll) + 1, wanted.order)
    found = renyi_epsilons(np.array([shown]), np.array([wanted.order]), budget.delta)
    return {
        "method": cost.value,
        "order": wanted.order,
        "beta": wanted.beta,
        "deviation": wanted.deviation,
        "publishing": wanted.divergence,
        "divergence": shown,
        "epsilon": max(0.0, float(found[0])),
        "delta": budget.delta,
    }


def _in_steps(draws: int, order: float) -> float:
    """Return a bound on the increase of a divergence by discrete instead of real-valued noise.

    If all probabilities of both neighbours change by factors within e^±x, D grows by at most x(2λ −
    1)/(λ − 1). Every deciding draw adds `ODDS` to x: those of all queries, and that of the
    publication.
    """
    return draws * ODDS * (2 * order - 1) / (order - 1)


def check_noise(cost: VotesCost, tally: Tally, budget: QueryBudget) -> None:
    """Check before any query that `publish` is possible.

    Raises:
        InvalidParametersError: No such bound holds, or σ is too small for it.
    """
    rule, wanted = check(cost, tally), plan(budget)
    rule.check_release(cost, tally.poll, wanted.order)


def check(cost: VotesCost, tally: Tally) -> VotingRule:
    """Return the tally's rule if its cost can be published.

    Raises:
        InvalidParametersError: It cannot.
    """
    if not isinstance(tally, Central):
        raise InvalidParametersError(
            f"{cost} costs hold for a central tally: the server of a secure sum sees noisy counts, "
            "against which only the noise protects"
        )
    own = tally.rule
    if cost not in own.publishes or tally.heaviest != 1:
        able = ", ".join(name for name, rule in RULES.items() if cost in rule.publishes)
        raise InvalidParametersError(
            f"{cost} costs can be published for {able}, without weights, not for {own.name}"
        )
    if cost is VotesCost.EXACT and tally.poll.classes != 2:
        raise InvalidParametersError(
            f"{cost} costs can be published for two classes, not for {tally.poll.classes}; take "
            f"{VotesCost.DEPENDENT}"
        )
    return own
