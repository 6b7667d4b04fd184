"""What Laplace noise of scale K/2ε, as printed for PATE-AAE, lets K winners tell.

Yang et al. (Interspeech 2021, section 3.1 and Figure 5) call K labels of that noise
(ε, 10⁻⁵)-differentially private, whatever K is.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator

import numpy as np

from earshot_models.votes.costs.claims import printed_scale
from earshot_protocol.privacy.events import Pure
from earshot_protocol.privacy.mechanisms import Unit
from earshot_server.accounting.accountant import composed
from earshot_simulations.auditing.findings import EXACT, PRINTED, Finding, Method, Role
from earshot_simulations.auditing.losses import Bracket, outcome_epsilon

DELTA = 1e-5
TEACHERS = 200
_LEADS = 11
"""Leads that are tried, from a tie to all teachers."""
_ERROR = 1e-11
"""Relative, of a probability and query; the law is in closed form."""


def audit_printed_scale() -> Iterator[Finding]:
    """Few queries, as many as the paper's teachers, and more: the claim is too small, or large."""
    for queries, epsilon in ((10, 1.0), (TEACHERS, 100.0), (2000, 10.0)):
        yield finding(queries, epsilon)


def finding(queries: int, epsilon: float) -> Finding:
    """Of K queries under one claim."""
    return Finding(
        PRINTED,
        f"PATE-AAE, Laplace noise of scale K/2ε: ε = {epsilon:g}, K = {queries:,} queries, two "
        f"classes, {TEACHERS} teachers",
        Unit.REPLACED_PHONE,
        DELTA,
        epsilon,
        proven_epsilon(queries, epsilon),
        measured_epsilon(queries, epsilon),
        Method(EXACT, "exact: how often each class wins, by the law of the noise, the worst lead"),
        Role.PRINTED,
    )


def added_epsilon(epsilon: float) -> float:
    """4ε, purely: K times the 2/b of a query, b = K/2ε, by plain addition."""
    return 4 * epsilon


@functools.lru_cache(maxsize=64)
def proven_epsilon(queries: int, epsilon: float, delta: float = DELTA) -> float:
    """What K such answers cost at most: by addition, or at δ as divergences compose."""
    event = Pure(2 / printed_scale(epsilon, queries), queries)
    return min(added_epsilon(epsilon), composed([event], delta).epsilon)


@functools.lru_cache(maxsize=64)
def measured_epsilon(
    queries: int, epsilon: float, delta: float = DELTA, teachers: int = TEACHERS
) -> Bracket:
    """What they cost at least: one query K times over, two classes, one vote that moves.

    How often the first class wins is all that K equal queries tell; the worst of the leads that
    are tried, in both directions.

    Args:
        queries: K.
        epsilon: that is claimed.
        delta: δ.
        teachers: votes of each query.
    """
    from scipy.stats import binom

    scale, times = printed_scale(epsilon, queries), np.arange(queries + 1)
    worst = Bracket(0.0, 0.0)
    # A lead has the parity of the number of votes.
    leads = {2 * round(each / 2) + teachers % 2 for each in np.linspace(0, teachers, _LEADS)}
    for lead in sorted(lead for lead in leads if lead <= teachers):
        here, there = (
            np.asarray(binom.pmf(times, queries, wins(each / scale))) for each in (lead, lead - 2)
        )
        for p, q in ((here, there), (there, here)):
            found = outcome_epsilon(p, q, delta, queries * _ERROR)
            worst = max(worst, found, key=lambda each: each.low)
    return worst


def wins(lead: float) -> float:
    """How likely a class with this lead over the other wins, the lead in scales of the noise.

    The difference of two Laplace numbers is below −d with probability (2 + d) e^(−d) / 4.
    """
    other = (2 + abs(lead)) * math.exp(-abs(lead)) / 4
    return 1 - other if lead >= 0 else other
