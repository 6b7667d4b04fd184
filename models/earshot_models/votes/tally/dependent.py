"""What a curator's answers cost by the votes that there were, in a form that may be published.

Such a cost is private itself: it is published once, with noise in proportion to how much a teacher
may change it, and what that costs is in the figure. How is settled by public numbers alone.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs import costs, releases, smooth
from earshot_models.votes.costs.threshold_smooth import release_costs
from earshot_models.votes.rules.mechanisms import THRESHOLDS, Mechanism, Name
from earshot_models.votes.rules.thresholds import ThresholdVoting
from earshot_models.votes.rules.winners import ConfidentGNMax, GNMax
from earshot_models.votes.tally import threshold_rules
from earshot_models.votes.tally.budgets import Budget
from earshot_models.votes.tally.central import Central
from earshot_models.votes.tally.interface import Tally
from earshot_models.votes.tally.labelling import Labelled
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.conversions import renyi_epsilons
from earshot_protocol.privacy.noisy_counts import ODDS
from earshot_protocol.voting.teacher_ballots import NONE

Numbers = npt.NDArray[np.float64]

_CONVERSION = 0.5
"""Of the budget's ε: what the order leaves to ln(1/δ)/(λ − 1)."""
_RELEASE = 0.1
"""Of the budget's ε: what publishing costs."""
_BETA = 0.8
"""Of the largest β of an order."""


class Cost(enum.StrEnum):
    """How it looks at votes."""

    DEPENDENT = "dependent"
    """By Theorem 6 of Papernot et al. (2018), which bounds one direction."""
    EXACT = "exact"
    """By the law of what is published, in both directions; of two classes only."""


def plan(budget: Budget) -> releases.Release:
    """Order, β and σ_s, by the budget alone: 1 + 2 ln(1/δ)/ε, and a tenth of ε for publishing.

    Raises:
        InvalidParametersError: the budget is too small for that.
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
    return releases.Release(order, beta, deviation, math.nan, cost)


def publish(
    cost: Cost, tally: Central, labelled: Labelled, budget: Budget
) -> Mapping[str, float | str]:
    """The figures of one publication: whoever draws it twice has paid twice.

    Args:
        cost: which.
        tally: a curator's, by Gaussian noise for one winner.
        labelled: what came of it.
        budget: of the labelling.

    Raises:
        InvalidParametersError: no such bound holds for this tally, or none that can be published.
    """
    aggregator, wanted = check(cost, tally), plan(budget)
    if isinstance(aggregator, GNMax | ConfidentGNMax):
        spent, sensitivities = _of_one_winner(cost, aggregator, tally, labelled, wanted.order)
    else:
        asked = tally.voters.among(range(len(labelled.outcomes)))
        spent, sensitivities = release_costs(
            aggregator,
            aggregator.votes(asked.predictions / asked.steps),
            (labelled.outcomes != NONE).any(axis=1),
            wanted.order,
            budget.unit,
        )
    secret = releases.smooth_sensitivity(sensitivities, wanted.beta)
    shown = releases.published(spent, wanted._replace(sensitivity=secret)) + wanted.divergence
    shown += _in_steps(tally.mechanism, len(labelled.outcomes), wanted.order)
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


def _in_steps(mechanism: Mechanism, queries: int, order: float) -> float:
    """What a divergence grows by at most where noise is in steps, not real-valued.

    Where all chances of both neighbours are within a factor of e^±x of others, D grows by
    x(2λ − 1)/(λ − 1). Every draw that decides adds `ODDS` to x: a check, one for each class, of
    which an adaptive threshold may turn four times, and the one of the publication.
    """
    turns = 4 if mechanism.name is Name.GNTHRESHOLD_ADAPTIVE else 1
    draws = queries * (1 + turns * mechanism.classes + len(mechanism.grid or ())) + 1
    return draws * ODDS * (2 * order - 1) / (order - 1)


def _of_one_winner(
    cost: Cost,
    aggregator: GNMax | ConfidentGNMax,
    tally: Central,
    labelled: Labelled,
    order: float,
) -> tuple[float, Numbers]:
    """What was spent, and how far a neighbour's cost can be, by distance."""
    votes = tally.voters.among(range(len(labelled.outcomes))).counts(tally.weights)
    voted = labelled.outcomes != NONE
    each = costs.query_divergences(
        aggregator, votes, [order], costs.Method(cost.value), voted=voted
    )
    near = smooth.exact_sensitivities if cost is Cost.EXACT else smooth.local_sensitivities
    sensitivities = near(aggregator, votes, voted, order, tally.voters.teachers)
    return float((each.asked + each.answered).sum()), sensitivities


def check_noise(cost: Cost, tally: Tally, budget: Budget) -> None:
    """Refuse what `publish` would refuse, before anything is asked.

    Raises:
        InvalidParametersError: no such bound holds, or σ is too small for it.
    """
    aggregator, wanted = check(cost, tally), plan(budget)
    if cost is Cost.DEPENDENT and isinstance(aggregator, GNMax | ConfidentGNMax):
        unanimous = np.eye(1, tally.mechanism.classes)
        smooth.local_sensitivities(aggregator, unanimous, np.ones(1, bool), wanted.order, 1)


def check(cost: Cost, tally: Tally) -> GNMax | ConfidentGNMax | ThresholdVoting:
    """The aggregator whose cost can be published so.

    Raises:
        InvalidParametersError: there is none.
    """
    if not isinstance(tally, Central):
        raise InvalidParametersError(
            f"{cost} costs hold for a central tally: the server of a secure sum sees noisy counts, "
            "against which only the noise protects"
        )
    own = tally.mechanism
    if own.name in THRESHOLDS and cost is Cost.DEPENDENT:
        return threshold_rules.voting(own, tally.voters.teachers)
    if own.name not in (Name.GNMAX, Name.CONFIDENT) or own.largest_weight != 1:
        raise InvalidParametersError(
            f"{cost} costs can be published for {Name.GNMAX} and {Name.CONFIDENT} without weights, "
            f"and {Cost.DEPENDENT} ones against thresholds, not for {own.name}"
        )
    if cost is Cost.EXACT and own.classes != 2:
        raise InvalidParametersError(
            f"{cost} costs can be published for two classes, not for {own.classes}; take "
            f"{Cost.DEPENDENT}"
        )
    if own.check is None:
        return GNMax(own.deviation)
    return ConfidentGNMax(own.check.threshold, own.check.deviation, own.deviation)
