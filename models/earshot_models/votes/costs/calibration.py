"""Least noise for a number of answered queries, independent of the votes."""

from __future__ import annotations

import math

from dp_accounting.pld import privacy_loss_distribution as library
from dp_accounting.pld.accountant import get_smallest_gaussian_noise
from dp_accounting.pld.common import DifferentialPrivacyParameters
from scipy.optimize import brentq

from earshot_protocol import checks
from earshot_protocol.privacy.composition import composed_epsilon
from earshot_protocol.privacy.events import Pure
from earshot_protocol.privacy.losses import LARGEST_LOSS

_GRID = 1_000_000
"""Most points of the grid on which losses are convolved."""
_CLOSE = 1e-3
"""Tolerance of a scale's logarithm: the result is at most this far above the least scale."""


def gaussian_deviation(epsilon: float, delta: float, queries: int, change: float) -> float:
    """Return σ on every count, in votes, with which all queries together are (ε, δ)-private.

    Gaussian releases compose exactly to one of √queries times the sensitivity (Balle and Wang, ICML
    2018, Theorem 8, computed by the library dp-accounting).

    Args:
        epsilon: Value of ε for all queries together.
        delta: Value of δ for all queries together.
        queries: Queries answered, each with noise of its own; later ones may depend on answers.
        change: Distance in L2 of neighbours' counts for one query: √2 for a vote that goes to
            another class, 1 for one that is left out.

    Raises:
        InvalidParametersError: A number is out of range.
    """
    guarantee = DifferentialPrivacyParameters(
        checks.epsilon("epsilon", epsilon), checks.probability("delta", delta)
    )
    times = checks.whole("queries", queries)
    # The library's search ends above the least σ, by some parts in a million.
    return float(get_smallest_gaussian_noise(guarantee, times, checks.positive("change", change)))


def laplace_scale(epsilon: float, delta: float, queries: int, change: float) -> float:
    """Return the scale of Laplace noise on every count with which all queries are (ε, δ)-private.

    The scale is in votes. Only the pure ε of each answer, change/scale, is used (Papernot et al.,
    ICLR 2017, Theorem 2).

    Args:
        epsilon: Value of ε for all queries together.
        delta: Value of δ for all queries together.
        queries: Queries answered, each with noise of its own; later ones may depend on answers.
        change: Distance in L1 of neighbours' counts for one query: 2 for a vote that goes to
            another class, 1 for one that is left out.

    Raises:
        InvalidParametersError: A number is out of range.
    """
    checks.epsilon("epsilon", epsilon)
    checks.probability("delta", delta)
    times = checks.whole("queries", queries)
    # Enough by basic composition: the ε of the answers add up to the target.
    enough = checks.positive("change", change) * times / epsilon
    short = enough / 2
    while _laplace_epsilon(short, delta, times, change) <= epsilon:
        enough, short = short, short / 2

    def too_much(logarithm: float) -> float:
        return _laplace_epsilon(math.exp(logarithm), delta, times, change) - epsilon

    found = brentq(too_much, math.log(short), math.log(enough), xtol=_CLOSE / 2, rtol=_CLOSE / 1e3)
    return min(enough, math.exp(float(found) + _CLOSE))


def _laplace_epsilon(scale: float, delta: float, queries: int, change: float) -> float:
    """Return ε of all answers, by numerical convolution of losses or a looser bound."""
    each = change / scale
    added = queries * each
    if added > LARGEST_LOSS:
        return composed_epsilon((Pure(each, queries),), delta)
    # A power-of-two fraction of the loss, so that the loss is exactly on the grid.
    interval = each / 2 ** max(0, math.floor(math.log2(each * _GRID / added)))
    answer = library.from_discrete_laplace_mechanism(
        each, 1, value_discretization_interval=interval
    )
    nothing = library.identity(value_discretization_interval=interval)
    together = nothing.compose(answer.self_compose(queries))
    return min(added, float(together.get_epsilon_for_delta(delta)))
