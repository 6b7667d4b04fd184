"""Cost of winners by Laplace noise (LNMax): for any votes, and for the actual votes."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs.dependent import by_query_and_order, checked_votes
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.privacy.divergences import renyi
from earshot_protocol.privacy.events import Pure


def log_other_winner(votes: npt.NDArray[np.number], gamma: float) -> Numbers:
    """Bound the log-probability that Laplace noise lets a class win without the most votes.

    q = Σ (2 + γΔ_j) / (4 e^(γΔ_j)), with Δ_j the votes that class j lacks (Papernot et al.,
    ICLR 2017, Lemma 4).

    Args:
        votes: Votes for each class, (queries, classes); weighted votes need not be whole.
        gamma: Inverse γ of the noise's scale.

    Returns:
        ln q, (queries,), at most 0.

    Raises:
        InvalidParametersError: `votes` is not a table of finite numbers with two classes or more,
            or γ is not positive.
    """
    from scipy.special import logsumexp

    table = checked_votes(votes)
    rate = checks.positive("gamma", gamma)
    winners = table.argmax(axis=1)[:, None]
    lacking = rate * (np.take_along_axis(table, winners, axis=1) - table)
    others = np.log(2 + lacking) - np.log(4) - lacking
    np.put_along_axis(others, winners, -np.inf, axis=1)
    bounds: Numbers = np.minimum(logsumexp(others, axis=1), 0.0)
    return bounds


def independent_divergence(ratio: float, orders: npt.ArrayLike) -> Numbers:
    """Return the divergence of a pure 2γ-private mechanism, at most 2γ²λ, for any votes.

    A neighbour moves one vote, which changes two counts by one, each at a cost of γ (Papernot et
    al. 2017, Theorem 2).

    Args:
        ratio: Ratio γΔ of a voter's weight and the noise's scale.
        orders: Orders λ, each above 1.

    Returns:
        One divergence for each order.

    Raises:
        InvalidParametersError: The ratio is not positive.
    """
    rate = checks.positive("ratio", ratio)
    return renyi(Pure(2 * rate), np.atleast_1d(np.asarray(orders, dtype=np.float64)))


def dependent_divergence(log_q: npt.ArrayLike, ratio: float, orders: npt.ArrayLike) -> Numbers:
    """Return the divergence if outcomes other than the likely one have probability q at most.

    This is the moments bound of Papernot et al. (ICLR 2017), Theorem 3, where q < 1 / (e^(2γ) + 1):
    D_λ ≤ ln[(1 − q)((1 − q)/(1 − e^(2γ)q))^(λ−1) + q e^(2γ(λ−1))] / (λ − 1); otherwise, or where it
    is less, the bound for any votes. Like Theorem 6 for Gaussian noise, it does not bound the
    neighbour's divergence from these votes.

    Args:
        log_q: Logarithm ln q for each query, at most 0.
        ratio: Ratio γΔ of a voter's weight and the noise's scale.
        orders: Orders λ, each above 1.

    Returns:
        Divergences, (queries, orders).

    Raises:
        InvalidParametersError: A probability is above 1 or not a number, an order is 1 or less, or
            the ratio is not positive.
    """
    rate = checks.positive("ratio", ratio)
    logs, chosen = by_query_and_order(log_q, orders)
    usual = independent_divergence(rate, chosen)
    holds = logs < -np.logaddexp(2 * rate, 0.0)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        likely = np.log1p(-np.exp(logs))
        grown = chosen * likely - (chosen - 1) * np.log1p(-np.exp(logs + 2 * rate))
        total = np.expm1(grown) + np.exp(logs + 2 * rate * (chosen - 1))
        found = np.log1p(total) / (chosen - 1)
    return np.where(holds & np.isfinite(found), np.minimum(found, usual), usual)
