"""Published data-dependent costs: all votes of a few teachers, all neighbours.

Such a cost is published with noise in proportion to its smooth sensitivity. That noise depends on
the votes, too: if it differs by more than e^β on a neighbour, the scale of the noise reveals the
votes. Cost and noise are recorded from `tally.dependent.publish` itself.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from earshot_models.votes.costs import releases
from earshot_models.votes.costs.releases import CostRelease, VotesCost
from earshot_models.votes.electorate import Electorate
from earshot_models.votes.rules.confident import ConfidentRule
from earshot_models.votes.rules.gnmax import GNMaxRule
from earshot_models.votes.rules.gnthreshold import GNThresholdRule
from earshot_models.votes.rules.rule import VotingRule
from earshot_models.votes.tally.budgets import QueryBudget
from earshot_models.votes.tally.central import Central
from earshot_models.votes.tally.dependent import publish
from earshot_protocol.arrays import Numbers
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import EXACT, Check, Finding, Result, Technique, p_said
from earshot_simulations.auditing.losses import Bracket
from earshot_simulations.auditing.outcomes import Votes, moved_votes
from earshot_simulations.auditing.watching import replaced

_BUDGET = QueryBudget(8.0, 1e-5, Unit.REPLACED_PHONE, 100)
_TEACHERS = 16
_QUERIES = 20
_ROUNDING = 1e-9
_FIT = 1e-9
_EXACT = Technique(
    EXACT, "exact: the normal laws of all votes and all their neighbours, before rounding"
)


@dataclass(frozen=True)
class PublishedCost:
    """The law of a published cost.

    Attributes:
        mean: Cost without noise: the mean of the published one, before rounding.
        release: Order and noise of the release.
    """

    mean: float
    release: CostRelease


CASES: dict[str, tuple[VotesCost, VotingRule, int]] = {
    "exact, two classes": (VotesCost.EXACT, GNMaxRule(sigma=4.0), 2),
    "exact, two classes, with a check": (
        VotesCost.EXACT,
        ConfidentRule(sigma=4.0, threshold=10, check_sigma=5.0),
        2,
    ),
    "data-dependent, three classes": (VotesCost.DEPENDENT, GNMaxRule(sigma=4.0), 3),
    "data-dependent, three classes, with a check": (
        VotesCost.DEPENDENT,
        ConfidentRule(sigma=4.0, threshold=10, check_sigma=4.0),
        3,
    ),
    "data-dependent, two labels against a threshold": (
        VotesCost.DEPENDENT,
        GNThresholdRule(sigma=3.0, winners=1),
        2,
    ),
}


def audit_published_costs(draws: int, seed: int) -> Iterator[Result]:
    """Audit every way of publishing a cost.

    Args:
        draws: Draws of a published cost.
        seed: Seed of the draws.
    """
    for name in CASES:
        yield published_cost(name)
    yield drawn(draws, seed)


Sensitivity = Callable[[Numbers, float], float]


def published_cost(name: str, sensitivity: Sensitivity | None = None) -> Finding:
    """Compare the cost of publishing, at its order, with the largest divergence between neighbours.

    Args:
        name: Case, one of `CASES`.
        sensitivity: Planted fault: function that replaces `releases.smooth_sensitivity`.
    """
    cost, rule, classes = CASES[name]
    seen = {votes: _publish(cost, rule, votes, sensitivity) for votes in _all(classes)}
    release = next(iter(seen.values())).release
    measured, worst = max(
        (divergence(seen[votes], seen[other], release.order), votes)
        for votes in seen
        for other in moved_votes(votes)
    )
    votes = "/".join(map(str, worst))
    return Finding(
        f"{name}: {_TEACHERS} teachers, {_QUERIES} queries, worst votes {votes}; divergence at "
        f"λ = {release.order:.3g}",
        Unit.REPLACED_PHONE,
        0.0,
        release.divergence,
        release.divergence,
        Bracket(measured - _ROUNDING, measured),
        _EXACT,
    )


def divergence(one: PublishedCost, other: PublishedCost, order: float) -> float:
    """Return Rényi's divergence of two normal laws; infinite if the first is too wide."""
    s, t = one.release.noise, other.release.noise
    between = order * t**2 + (1 - order) * s**2
    if not s and not t:
        return 0.0 if one.mean == other.mean else math.inf
    if not s or between <= 0:
        return math.inf
    apart = order * (one.mean - other.mean) ** 2 / (2 * between)
    return apart + math.log(t / s) + math.log(t**2 / between) / (2 * (order - 1))


def drawn(draws: int, seed: int) -> Check:
    """Check that a published cost has the calibrated noise, and is rounded up."""
    from scipy.stats import kstest

    release = CostRelease(8.0, 0.1, 3.0, 0.5, 0.0)
    random = np.random.default_rng(seed).bytes
    found = np.array([releases.published(2.0, release, random) for _ in range(draws)])
    value = float(kstest(found - 0.5 / 1024, "norm", args=(2.0, release.noise)).pvalue)
    return Check(
        "the noise on a cost",
        f"normal, of the stated deviation (p ≥ {_FIT:g})",
        p_said(value),
        value >= _FIT,
        f"Kolmogorov and Smirnov's test of {draws} costs",
        power.of_kolmogorov(draws, _FIT),
    )


def _all(classes: int) -> Iterator[Votes]:
    """Yield every way for the teachers to vote, each for one class, or one label."""
    for votes in itertools.product(range(_TEACHERS + 1), repeat=classes):
        if sum(votes) == _TEACHERS:
            yield votes


def _publish(
    cost: VotesCost, rule: VotingRule, votes: Votes, sensitivity: Sensitivity | None
) -> PublishedCost:
    """Publish the cost of queries with these votes, all of them answered."""
    voted = np.repeat(np.arange(len(votes)), np.array(votes, dtype=np.int64))
    answers = np.full(_QUERIES, int(np.argmax(votes)))
    if rule.several:
        voted, answers = (np.eye(len(votes), dtype=np.int64)[each] for each in (voted, answers))
    predictions = np.repeat(voted[:, None], _QUERIES, axis=1)
    electorate = Electorate(predictions, len(votes))
    tally = Central(rule, electorate, np.ones(_TEACHERS, dtype=np.int64))
    with _watched(sensitivity) as seen:
        publish(cost, tally, answers, _BUDGET)
    return seen[0]


@contextlib.contextmanager
def _watched(sensitivity: Sensitivity | None) -> Iterator[list[PublishedCost]]:
    """Record how costs are published."""
    seen: list[PublishedCost] = []
    before, smooth = releases.published, sensitivity or releases.smooth_sensitivity

    def noting(mean: float, release: CostRelease, *given: Any) -> float:
        seen.append(PublishedCost(mean, release))
        return before(mean, release, *given)

    with replaced(releases, published=noting, smooth_sensitivity=smooth):
        yield seen
