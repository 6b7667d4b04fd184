"""Cost of a curator's winners, query by query: its check, and its answer if one is given.

Every query pays for its check, and answered queries also for the answer. Divergences of the same
order add up, even where a query depends on earlier answers (Mironov, CSF 2017). The sum is
converted to ε at the best order.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.costs import dependent, laplace
from earshot_models.votes.costs.outcomes import check_divergence, outcome_divergence
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.privacy.conversions import renyi_epsilons
from earshot_protocol.privacy.events import RenyiCurve

ORDERS = np.concatenate([np.arange(2.0, 64.0), np.geomspace(64, 1024, 24)])
"""Default orders λ."""
COARSE = np.array([1.5, 2.0, 3.0, 4.5, 6.5, 9.0, 13.0, 18.0, 25.0, 36.0, 52.0, 80.0, 130.0, 250.0])
"""Orders λ for a first search for the best one."""
_FINE = 9


class Method(enum.StrEnum):
    """Method of computing divergences, from the largest cost to the smallest."""

    INDEPENDENT = "independent"
    """Cost by the noise alone. For a number of queries fixed in advance it may be published; for
    the queries that were answered, it depends on the answers and is no guarantee."""
    DEPENDENT = "dependent"
    """Cost by Papernot et al., for the actual votes; private itself (see `costs.smooth`). It bounds
    the divergence of these votes from a neighbour's, not the other way round."""
    EXACT = "exact"
    """Cost by the distribution of outcomes, in both directions; private itself."""


class Divergences(NamedTuple):
    """Divergences of some queries.

    Attributes:
        asked: Divergences of the check, which every query pays, (queries, orders); zeros if none.
        answered: Divergences of the answer, which only answered queries pay, (queries, orders).
    """

    asked: Numbers
    answered: Numbers


def spent(divergences: Divergences, voted: npt.NDArray[np.bool_]) -> Numbers:
    """Return the cumulative cost after each query, (queries, orders).

    Args:
        divergences: Divergences of the queries, in the order in which they were asked.
        voted: Queries that the teachers answered, bool (queries,).
    """
    found: Numbers = np.cumsum(divergences.asked + divergences.answered * voted[:, None], axis=0)
    return found


def epsilons(
    divergences: Numbers, orders: npt.ArrayLike, delta: float, *, classic: bool = False
) -> Numbers:
    """Return ε of each sum of divergences, at its best order.

    Args:
        divergences: Sums of divergences, (…, orders).
        orders: Orders λ, each above 1.
        delta: Value of δ at which ε is stated.
        classic: Whether to convert by R + ln(1/δ)/(λ − 1) (Mironov 2017), as papers before 2020 do;
            otherwise by the bound of Canonne, Kamath and Steinke, which is never more.

    Raises:
        InvalidParametersError: The value of δ is not between 0 and 1.
    """
    chosen = np.asarray(orders, dtype=np.float64)
    checks.probability("delta", delta)
    if classic:
        found = divergences - math.log(delta) / (chosen - 1)
    else:
        found = renyi_epsilons(divergences, chosen, delta)
    best: Numbers = np.maximum(found.min(axis=-1), 0.0)
    return best


def epsilon(
    divergences: Numbers, orders: npt.ArrayLike, delta: float, *, classic: bool = False
) -> tuple[float, float]:
    """Return ε of one sum of divergences, and the order that gives it (see `epsilons`).

    Args:
        divergences: Sum of divergences, (orders,).
        orders: Orders λ, each above 1.
        delta: Value of δ at which ε is stated.
        classic: Whether to use the older conversion (see `epsilons`).
    """
    chosen = np.asarray(orders, dtype=np.float64)
    each = epsilons(np.asarray(divergences)[:, None], chosen[:, None], delta, classic=classic)
    best = int(each.argmin())
    return float(each[best]), float(chosen[best])


def best_epsilon(
    curve: Callable[[Numbers], Numbers], delta: float, *, classic: bool = False
) -> tuple[float, float]:
    """Return the ε of a divergence curve, and the best order.

    A few orders are tried first, then more around the best of them.

    Args:
        curve: Function that returns the divergences at some orders, (orders,).
        delta: Value of δ at which ε is stated.
        classic: Whether to use the older conversion (see `epsilons`).

    Raises:
        InvalidParametersError: The value of δ is not between 0 and 1.
    """
    first, order = epsilon(curve(COARSE), COARSE, delta, classic=classic)
    place = int(np.searchsorted(COARSE, order))
    fine = np.geomspace(COARSE[max(place - 1, 0)], COARSE[min(place + 1, len(COARSE) - 1)], _FINE)
    return min((first, order), epsilon(curve(fine), fine, delta, classic=classic))


def event(divergences: Numbers, orders: npt.ArrayLike) -> RenyiCurve:
    """Return the spent divergences as an event for accountants.

    Args:
        divergences: Sum of divergences, (orders,).
        orders: Orders λ, ascending, each above 1.
    """
    chosen = np.asarray(orders, dtype=np.float64)
    return RenyiCurve(tuple(chosen.tolist()), tuple(np.asarray(divergences).tolist()))


def gaussian_answer(
    deviation: float, votes: Numbers, orders: Numbers, method: Method, weight: float
) -> Numbers:
    """Return the cost of a winner by Gaussian noise, (queries, orders).

    Args:
        deviation: Standard deviation σ of the noise on each count.
        votes: Votes for each class, (queries, classes).
        orders: Orders λ, each above 1.
        method: Method of computing the divergences.
        weight: Weight of the vote that neighbours move.
    """
    if method is Method.EXACT:
        return outcome_divergence(votes, deviation, orders, weight)
    if method is Method.DEPENDENT:
        logs = dependent.log_other_winner(votes, deviation)
        return dependent.dependent_divergence(logs, deviation / weight, orders)
    usual = dependent.independent_divergence(deviation / weight, orders)
    return np.broadcast_to(usual, (len(votes), len(orders)))


def laplace_answer(
    gamma: float, votes: Numbers, orders: Numbers, method: Method, weight: float
) -> Numbers:
    """Return the cost of a winner by Laplace noise of scale 1/γ, as `gaussian_answer` does.

    Raises:
        InvalidParametersError: The method is exact, which is not available for Laplace noise.
    """
    if method is Method.EXACT:
        raise InvalidParametersError(
            "method=exact: needs Gaussian noise; for Laplace noise, take independent or dependent"
        )
    if method is Method.DEPENDENT:
        logs = laplace.log_other_winner(votes, gamma)
        return laplace.dependent_divergence(logs, gamma * weight, orders)
    usual = laplace.independent_divergence(gamma * weight, orders)
    return np.broadcast_to(usual, (len(votes), len(orders)))


def check_divergences(
    check: ConfidentCheck, agreement: Numbers, orders: Numbers, method: Method, weight: float
) -> Numbers:
    """Return the cost of the check before a winner, (queries, orders).

    Args:
        check: Check.
        agreement: Number that is checked, (queries,); a vote changes it by at most its weight.
        orders: Orders λ, each above 1.
        method: Method of working out the divergences.
        weight: Weight of the vote that neighbours move.
    """
    threshold, sigma = check.threshold, check.deviation
    ratio = math.sqrt(2) * sigma / weight
    if method is Method.INDEPENDENT:
        usual = dependent.independent_divergence(ratio, orders)
        return np.broadcast_to(usual, (len(agreement), len(orders)))
    # Many queries share the same number, so compute each once.
    alike, which = np.unique(agreement, return_inverse=True)
    if method is Method.EXACT:
        found = check_divergence(alike, threshold, sigma, orders, weight)
    else:
        logs = dependent.log_other_answer(alike, threshold, sigma)
        found = dependent.dependent_divergence(logs, ratio, orders)
    divergences: Numbers = found[which]
    return divergences
