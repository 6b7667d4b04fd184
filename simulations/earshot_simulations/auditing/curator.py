"""Winners of votes that a curator counts, audited by the exact law of what is published.

A query has as many outcomes as classes, and one for no answer. Of few teachers all neighbours are
known: every vote that can be moved, in both directions. The same query many times over shows what
small losses add up to.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from earshot_models.votes.costs.costs import Method, epsilon, epsilons, event
from earshot_models.votes.costs.costs import query_divergences as divergences_of
from earshot_models.votes.costs.personal import Group, OwnersAccount, weights
from earshot_models.votes.rules.confident import ConfidentGNMax
from earshot_models.votes.rules.gnmax import GNMax
from earshot_models.votes.rules.interactive import InteractiveGNMax
from earshot_models.votes.rules.lnmax import LNMax
from earshot_protocol.privacy.divergences import ORDERS
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.auditing import power
from earshot_simulations.auditing.findings import EXACT, Check, Finding, Role
from earshot_simulations.auditing.findings import Method as How
from earshot_simulations.auditing.laws import Numbers
from earshot_simulations.auditing.losses import Bracket, outcome_epsilon
from earshot_simulations.auditing.proofs import DELTA, composed_finding
from earshot_simulations.auditing.selection import law_check

CURATOR = "curator-votes"
_QUERIES = 30
_SCORES = np.array([[0.5, 0.3, 0.2]])
"""Of a student, for the one that takes part."""
_TABLES = ((14, 13, 13), (20, 20, 0), (26, 14, 0), (31, 5, 4), (40, 0, 0))
"""Votes from a draw between all to one voice: descending."""
_DOUBT = 1e-10
"""Relative, of a probability that is a sum over points of quadrature."""
Aggregator = LNMax | GNMax | ConfidentGNMax | InteractiveGNMax
_MECHANISMS: dict[str, Aggregator] = {
    "LNMax, γ = 0.1": LNMax(0.1),
    "GNMax, σ = 8": GNMax(8.0),
    "Confident-GNMax, T = 25, σ₁ = 12, σ₂ = 8": ConfidentGNMax(25.0, 12.0, 8.0),
    "Interactive-GNMax, T = 10, σ₁ = 12, σ₂ = 8": InteractiveGNMax(10.0, 12.0, 8.0, 0.9),
}
HOW = How(EXACT, "exact: how often each outcome comes, for these votes and all neighbours")


def audit_curator(trials: int, seed: int) -> Iterator[Finding | Check]:
    """Every aggregator, by noise alone at the worst of some votes, and exactly at votes of each.

    Args:
        trials: winners that are drawn.
        seed: of these.
    """
    for name, aggregator in _MECHANISMS.items():
        yield independent(name, aggregator)
        if aggregator.exact:
            yield exact(name, aggregator, (31, 5, 4))
        yield drawn(name, aggregator, trials, seed)
    yield from owners_within(trials=200)


def independent(name: str, aggregator: Aggregator) -> Finding:
    """What noise alone is said to cost, beside the worst of all votes that are tried."""
    measured = max((measure(aggregator, votes) for votes in _TABLES), key=lambda each: each.low)
    return _finding(name, "by noise alone", aggregator, _TABLES[0], Method.INDEPENDENT, measured)


def exact(name: str, aggregator: Aggregator, votes: tuple[int, ...]) -> Finding:
    """What exact accounting says of some votes, beside what their outcomes lose."""
    case = f"exact, votes {'/'.join(map(str, votes))}"
    measured = measure(aggregator, votes)
    return _finding(name, case, aggregator, votes, Method.EXACT, measured)


def measure(aggregator: Aggregator, votes: tuple[int, ...], queries: int = _QUERIES) -> Bracket:
    """ε of so many answers to one query, at the worst neighbour, in both directions.

    How often each outcome comes is all that many answers tell; every way to divide them is tried.
    """
    here = _divided(np.array(list(outcomes(aggregator, votes).values())), queries)
    worst = Bracket(0.0, 0.0)
    for other in neighbours(votes):
        there = _divided(np.array(list(outcomes(aggregator, other).values())), queries)
        for p, q in ((here, there), (there, here)):
            found = outcome_epsilon(p, q, DELTA, queries * _DOUBT)
            worst = max(worst, found, key=lambda each: each.low)
    return worst


def _divided(chances: Numbers, queries: int) -> Numbers:
    """The law of how often each of some outcomes comes in so many independent queries."""
    from scipy.special import gammaln, xlogy

    ends = np.array(
        list(itertools.combinations(range(queries + len(chances) - 1), len(chances) - 1))
    )
    first, last = np.full((len(ends), 1), -1), np.full((len(ends), 1), queries + len(chances) - 1)
    times = np.diff(np.hstack([first, ends, last]), axis=1) - 1
    logs = gammaln(queries + 1) - gammaln(times + 1).sum(axis=1) + xlogy(times, chances).sum(axis=1)
    law: Numbers = np.exp(logs)
    return law


def neighbours(votes: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """All that differ in one vote, which is moved."""
    for here, there in itertools.permutations(range(len(votes)), 2):
        if votes[here]:
            moved = list(votes)
            moved[here] -= 1
            moved[there] += 1
            yield tuple(moved)


def outcomes(aggregator: Aggregator, votes: tuple[int, ...]) -> dict[tuple[int, ...], float]:
    """How likely each class wins, and, where there is a check, that there is no answer."""
    from scipy.stats import norm

    table = np.array([votes], dtype=np.float64)
    law, check = aggregator.law(table[0]), aggregator.check
    if check is None:
        return {(place,): float(chance) for place, chance in enumerate(law)}
    agreement = aggregator.agreement(table, _SCORES if aggregator.takes_scores else None)[0]
    passing = norm.cdf((agreement - check.threshold) / check.deviation)
    found: dict[tuple[int, ...], float] = {
        (place,): float(passing * chance) for place, chance in enumerate(law)
    }
    found[-1,] = float(1 - passing)
    return found


def _finding(
    name: str,
    case: str,
    aggregator: Aggregator,
    votes: tuple[int, ...],
    method: Method,
    measured: Bracket,
) -> Finding:
    """Claimed is what papers convert; proven what a ledger composes of the same curve."""
    scores = _SCORES if aggregator.takes_scores else None
    each = divergences_of(aggregator, np.array([votes]), ORDERS, method, scores=scores)
    curve = _QUERIES * (each.asked + each.answered)[0]
    claimed = epsilon(curve, ORDERS, DELTA, classic=True)[0]
    return composed_finding(
        CURATOR,
        f"{name}; {_QUERIES} queries, {case}",
        Unit.REPLACED_PHONE,
        claimed,
        (event(curve, ORDERS),),
        measured,
        HOW,
    )


def drawn(
    name: str,
    aggregator: Aggregator,
    trials: int,
    seed: int,
    role: Role = Role.PRODUCT,
    subject: str = CURATOR,
) -> Check:
    """Whether winners are of the law that the accounting knows."""
    votes = (20, 14, 6)
    table, random = np.tile(votes, (trials, 1)), np.random.default_rng(seed).bytes
    scores = (np.tile(_SCORES, (trials, 1)),) if aggregator.takes_scores else ()
    rule: Any = aggregator
    winners = rule.winners(table, *scores, random)
    counted: Counter[tuple[int, ...]] = Counter((int(each),) for each in winners)
    return law_check(subject, f"{name}: who wins", counted, outcomes(aggregator, votes), role)


@dataclass(frozen=True)
class Budgets:
    """Owners, by groups, and how loud each is.

    Attributes:
        groups: of equal budgets.
        loud: weight of a vote of each group.
    """

    groups: tuple[Group, ...]
    loud: Numbers


def owners_within(trials: int) -> Iterator[Check]:
    """Accounts of owners whose weights are theirs, and rounded to whole numbers."""
    groups = (Group(0.5, 15), Group(0.8, 15), Group(2.0, 10))
    for words, loud in (("weights", weights(groups)), ("whole weights", np.array([1.0, 1.0, 2.0]))):
        yield spent_within(f"owners of three budgets, {words}", Budgets(groups, loud), trials)


def spent_within(case: str, budgets: Budgets, queries: int) -> Check:
    """Whether owners that vote until they cannot pay keep within their budgets, by the ledger."""
    of = np.repeat(np.arange(len(budgets.groups)), [group.members for group in budgets.groups])
    limits = np.array([group.epsilon for group in budgets.groups])[of]
    aggregator = ConfidentGNMax(25.0, 30.0, 20.0)
    account = OwnersAccount(limits, DELTA)
    generator = np.random.default_rng(0)
    asked, answered = np.zeros(len(of)), np.zeros(len(of))
    for _ in range(queries):
        voting = account.willing(aggregator, budgets.loud[of])
        yes = bool(generator.random() < 0.5)
        account.pay(aggregator, voting, yes)
        asked += np.square(voting)
        answered += np.square(voting) * yes
    return budget_check(CURATOR, case, limits, aggregator, asked, answered)


def budget_check(
    subject: str,
    case: str,
    limits: Numbers,
    aggregator: ConfidentGNMax,
    asked: Numbers,
    answered: Numbers,
    role: Role = Role.PRODUCT,
) -> Check:
    """Spent budgets, reckoned from what was asked and answered, squares of weights added up."""
    each = divergences_of(aggregator, np.ones((1, 2)), ORDERS)
    curves = asked[:, None] * each.asked + answered[:, None] * each.answered
    worst = float((epsilons(curves, ORDERS, DELTA) / limits).max())
    return Check(
        subject,
        case,
        "every owner's ε at most its own",
        f"{worst:.3g} of it at most",
        worst <= 1.001,  # a grid of orders against the best of all
        "every query's check and answer by the weights that were cast, composed anew",
        f"{power.EXACTLY} beyond .1 %",
        role,
    )
