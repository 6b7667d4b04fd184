"""Rényi divergences of noisy votes that have a likely outcome (Papernot et al., ICLR 2018).

Where nearly all teachers agree, neighbours' outcomes are nearly the same for any noise. All
functions here bound the divergence of the votes' outcome from that of any neighbour, but not the
reverse, which can be larger: `costs.outcomes` has both.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidParametersError


def log_other_winner(votes: npt.NDArray[np.number], deviation: float) -> Numbers:
    """Bound the log-probability that Gaussian noise lets a class win without the most votes.

    q = min(½ Σ erfc(Δ_j / 2σ), 1 − 1/m), with Δ_j the votes that class j lacks (Proposition 7).

    Args:
        votes: Votes for each class, (queries, classes); weighted votes need not be whole.
        deviation: Standard deviation σ of the noise on each count.

    Returns:
        ln q, (queries,).

    Raises:
        InvalidParametersError: `votes` is not a table of finite numbers with two classes or more,
            or σ is not positive.
    """
    from scipy.special import log_ndtr, logsumexp

    table = checked_votes(votes)
    sigma = checks.positive("deviation", deviation)
    winners = table.argmax(axis=1)
    lacking = np.take_along_axis(table, winners[:, None], axis=1) - table
    others = log_ndtr(-lacking / (np.sqrt(2.0) * sigma))
    np.put_along_axis(others, winners[:, None], -np.inf, axis=1)
    most = np.log1p(-1.0 / table.shape[1])
    bounds: Numbers = np.minimum(logsumexp(others, axis=1), most)
    return bounds


def log_other_answer(most: npt.NDArray[np.number], threshold: float, deviation: float) -> Numbers:
    """Return the log-probability that noise reverses the answer of a check, most + noise ≥ T.

    Args:
        most: Number that is checked, the votes of the leading class, (queries,).
        threshold: Threshold T.
        deviation: Standard deviation σ₁ of the Gaussian noise.

    Returns:
        ln of the probability of the less likely answer, (queries,).

    Raises:
        InvalidParametersError: A number is not finite, or σ₁ is not positive.
    """
    from scipy.special import log_ndtr

    sigma = checks.positive("deviation", deviation)
    distances = np.abs(np.asarray(most, dtype=np.float64) - threshold)
    if not np.isfinite(distances).all():
        raise InvalidParametersError("most, threshold: must be finite numbers")
    logs: Numbers = log_ndtr(-distances / sigma)
    return logs


def independent_divergence(ratio: float, orders: npt.ArrayLike) -> Numbers:
    """Return the divergence for any votes: λ/σ² if a neighbour moves one (Proposition 8).

    Args:
        ratio: Ratio σ/Δ of the noise's deviation and a voter's weight.
        orders: Orders λ, each above 1.

    Returns:
        One divergence for each order.
    """
    return np.asarray(orders, dtype=np.float64) / checks.positive("ratio", ratio) ** 2


def by_query_and_order(log_q: npt.ArrayLike, orders: npt.ArrayLike) -> tuple[Numbers, Numbers]:
    """Check ln q and λ for a bound, and return them as (queries, 1) and (orders,).

    Args:
        log_q: Logarithm ln q for each query, at most 0; −∞ for a certain outcome.
        orders: Orders λ, each above 1.

    Raises:
        InvalidParametersError: A probability is above 1 or not a number, or an order is 1 or less.
    """
    logs = np.atleast_1d(np.asarray(log_q, dtype=np.float64))[:, None]
    chosen = np.atleast_1d(np.asarray(orders, dtype=np.float64))
    if not (logs <= 0).all():
        raise InvalidParametersError("log_q: must be logarithms of probabilities")
    if not (np.isfinite(chosen) & (chosen > 1)).all():
        raise InvalidParametersError("orders: must be finite and above 1")
    return logs, chosen


def dependent_divergence(log_q: npt.ArrayLike, ratio: float, orders: npt.ArrayLike) -> Numbers:
    """Return the divergence if outcomes other than the likely one have probability q at most.

    The bound is that of Theorem 6 with the orders of Proposition 10, or λ/σ² where that is smaller
    or the theorem does not hold. A check of one number (`log_other_answer`) has the ratio √2·σ₁.

    Args:
        log_q: Logarithm ln q for each query, at most 0; −∞ for a certain outcome.
        ratio: Ratio σ/Δ of the noise's deviation and a voter's weight.
        orders: Orders λ, each above 1.

    Returns:
        Divergences, (queries, orders).

    Raises:
        InvalidParametersError: A probability is above 1 or not a number, an order is 1 or less, or
            the ratio is not positive.
    """
    ratio = checks.positive("ratio", ratio)
    logs, chosen = by_query_and_order(log_q, orders)
    usual = independent_divergence(ratio, chosen)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore", under="ignore"):
        second = ratio * np.sqrt(-logs)  # μ₂
        first = second + 1  # μ₁
        spent_first, spent_second = first / ratio**2, second / ratio**2
        holds = (chosen <= first) & (second > 1) & (logs + spent_second < 0)
        room = np.log(first / (first - 1)) + np.log(second / (second - 1))
        holds &= logs <= (second - 1) * spent_second - second * room
        # This is (1 − q) A^(λ−1) + q B^(λ−1), less 1; both parts vanish for a certain outcome.
        likely = np.log1p(-np.exp((logs + spent_second) * (1 - 1 / second)))
        log_a = chosen * np.log1p(-np.exp(logs)) - (chosen - 1) * likely
        log_b = logs + (chosen - 1) * (spent_first - logs / (first - 1))
        found = np.log1p(np.expm1(log_a) + np.exp(log_b)) / (chosen - 1)
    found = np.where(np.isneginf(logs), 0.0, found)
    return np.where(holds | np.isneginf(logs), np.minimum(found, usual), usual)


def checked_votes(votes: npt.NDArray[np.number]) -> Numbers:
    """Return votes as float64, (queries, classes).

    Raises:
        InvalidParametersError: `votes` is not a table of finite numbers with two classes or more.
    """
    table = np.asarray(votes, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise InvalidParametersError(
            f"votes of shape {table.shape}: must be queries × classes, at least two classes"
        )
    if not np.isfinite(table).all():
        raise InvalidParametersError("votes: must be finite numbers")
    return table
