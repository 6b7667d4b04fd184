"""Claimed costs of labels with Laplace noise of scale K/2ε (Yang et al. 2021), and true ones."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np

from earshot_models.votes.costs.claims import printed_scale
from earshot_protocol.privacy.events import Pure
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.accounting.accountant import composed
from earshot_simulations.auditing.findings import EXACT, Finding, Technique
from earshot_simulations.auditing.losses import Bracket, outcome_epsilon

SCALE_DELTA, SCALE_TEACHERS = 1e-5, 200
"""Value of δ and number of teachers for which the paper states the scale."""


def claims() -> Iterator[Finding]:
    """Compare claims about Laplace noise of scale K/2ε with the measured cost of K winners.

    Yang et al. (Interspeech 2021, section 3.1 and Figure 5) call K labels of that noise
    (ε, 10⁻⁵)-differentially private, whatever K is. For few queries the claim is too small, for
    many it is too large.
    """
    for queries, claimed in ((10, 1.0), (SCALE_TEACHERS, 100.0), (2000, 10.0)):
        yield scale_of(queries, claimed)


def scale_of(queries: int, epsilon: float) -> Finding:
    """Audit K queries under one claim."""
    return Finding(
        f"PATE-AAE, Laplace noise of scale K/2ε: ε = {epsilon:g}, K = {queries:,} queries, two "
        f"classes, {SCALE_TEACHERS} teachers",
        Unit.REPLACED_PHONE,
        SCALE_DELTA,
        epsilon,
        proven_epsilon(queries, epsilon),
        measured_epsilon(queries, epsilon),
        Technique(
            EXACT, "exact: how often each class wins, by the law of the noise, the worst lead"
        ),
    )


def added_epsilon(epsilon: float) -> float:
    """Return the pure ε by addition: K queries of 2/b each, with b = K/2ε, are 4ε."""
    return 4 * epsilon


@functools.lru_cache(maxsize=64)
def proven_epsilon(queries: int, epsilon: float, delta: float = SCALE_DELTA) -> float:
    """Return an upper bound on ε of K answers: by addition or by composition at δ, if less."""
    event = Pure(2 / printed_scale(epsilon, queries), queries)
    return min(added_epsilon(epsilon), composed([event], delta).epsilon)


@functools.lru_cache(maxsize=64)
def measured_epsilon(
    queries: int, epsilon: float, delta: float = SCALE_DELTA, teachers: int = SCALE_TEACHERS
) -> Bracket:
    """Return ε of K answers to the same query, with two classes and one changed vote.

    The number of times that the first class wins is a sufficient statistic. The result is the
    largest over several leads, in both directions, and so a lower bound.

    Args:
        queries: Number K of queries.
        epsilon: Claimed ε.
        delta: Value of δ.
        teachers: Votes of each query.
    """
    from scipy.stats import binom

    scale, times = printed_scale(epsilon, queries), np.arange(queries + 1)
    worst = Bracket(0.0, 0.0)
    # A lead has the parity of the number of votes.
    leads = {2 * round(each / 2) + teachers % 2 for each in np.linspace(0, teachers, 11)}
    for lead in sorted(lead for lead in leads if lead <= teachers):
        here, there = (
            np.asarray(binom.pmf(times, queries, wins(each / scale))) for each in (lead, lead - 2)
        )
        for p, q in ((here, there), (there, here)):
            found = outcome_epsilon(p, q, delta, queries * 1e-11)  # the law is in closed form
            worst = max(worst, found, key=lambda each: each.low)
    return worst


def wins(lead: float) -> float:
    """Return the probability that a class with this lead wins, in scales of the noise.

    The difference of two Laplace variables is below −d with probability (2 + d) e^(−d) / 4.
    """
    other = (2 + abs(lead)) * math.exp(-abs(lead)) / 4
    return 1 - other if lead >= 0 else other
