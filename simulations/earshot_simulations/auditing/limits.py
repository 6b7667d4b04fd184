"""Votes against thresholds: what a curator's labels tell, and what noisy counts tell a server.

Each rule, plain and with its check, with all outputs of a teacher and with its largest alone, for a
teacher that is left out and for one that is replaced: laws of all outcomes under some votes and
under the neighbour that changes them most. Sums are of such ballots, in whole votes and in steps.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from earshot_models.votes.confident_check import Check as Agreement
from earshot_models.votes.costs import thresholds
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.output_ballots import STEPS, Outputs
from earshot_models.votes.rules.against_thresholds import ThresholdVoting
from earshot_models.votes.rules.gnthreshold import GNThreshold
from earshot_models.votes.rules.gnthreshold_adaptive import AdaptiveThreshold
from earshot_models.votes.rules.grid_threshold import GridThreshold
from earshot_models.votes.rules.rule import UNITS
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_simulations.auditing.ballots import difference_loss, noise_law, vote_finding
from earshot_simulations.auditing.findings import Check, Finding, Result
from earshot_simulations.auditing.laws import Numbers
from earshot_simulations.auditing.outcome_laws import (
    Pair,
    farthest,
    moved_labels,
)
from earshot_simulations.auditing.proofs import DELTA
from earshot_simulations.auditing.several_winners import (
    ORDERS,
    Audited,
    against,
    findings,
    with_check,
)

THRESHOLDS = "thresholds"

_TEACHERS = 50
_FIXED = GNThreshold(20.5, 4.0, _TEACHERS)
_ADAPTIVE = AdaptiveThreshold(4.0, _TEACHERS)
_GRID = GridThreshold((8.0, 20.0, 32.0, 44.0), 4.0, 4.0, _TEACHERS)
_NEAR, _EVEN, _WIDE = (20.0, 21.0, 3.0), (30.0, 20.0, 10.0), (40.0, 22.0, 9.0)
_LIMITS: tuple[tuple[str, ThresholdVoting, tuple[float, ...]], ...] = (
    ("a fixed threshold", _FIXED, _NEAR),
    ("a fixed threshold, v = 1", replace(_FIXED, most=1), _NEAR),
    (
        "a fixed threshold with a check, v = 1",
        replace(_FIXED, most=1, check=Agreement(24.0, 6.0)),
        _NEAR,
    ),
    ("the widest gap of noisy votes", _ADAPTIVE, _EVEN),
    ("the widest gap of noisy votes", _ADAPTIVE, _WIDE),
    ("the widest gap of noisy votes, v = 1", replace(_ADAPTIVE, most=1), _EVEN),
    (
        "the widest gap of noisy votes with a check, v = 1",
        replace(_ADAPTIVE, most=1, check=Agreement(30.0, 6.0)),
        _EVEN,
    ),
    ("a threshold from a grid", _GRID, _EVEN),
    ("a threshold from a grid, v = 1", replace(_GRID, most=1), _EVEN),
    (
        "a threshold from a grid with a check, v = 1",
        replace(_GRID, most=1, check=Agreement(30.0, 6.0)),
        _EVEN,
    ),
)
_SUMMED = (("votes", 1, 30.0, 40), ("probabilities", STEPS, 3.0, 4))
"""What is summed, its steps, σ in votes, and queries."""
_STEP = 2e-4
_SHARES = 45


def audit_thresholds(draws: int, seed: int) -> Iterator[Result]:
    """Every rule, and the sums behind the federated ones.

    Args:
        draws: of each rule against its law.
        seed: of their noise.
    """
    yield from curators()
    yield from servers()
    yield from drawn(draws, seed)


def curators() -> Iterator[Finding]:
    """Labels alone are published."""
    for (rule, voting, votes), unit in itertools.product(_LIMITS, UNITS):
        if voting.most is None and unit is Unit.PHONE:
            continue  # all labels may change either way
        yield from findings(audited(rule, voting, votes, unit), subject=THRESHOLDS, unit=unit)


def audited(rule: str, voting: ThresholdVoting, votes: tuple[float, ...], unit: Unit) -> Audited:
    """A rule on some votes, and the neighbour that changes its outcome most.

    Args:
        rule: in words.
        voting: the rule.
        votes: s, of three labels.
        unit: a teacher that is replaced moves votes either way, one that is left out takes votes
            away.
    """
    changed = thresholds.changed_labels(voting, len(votes), unit)
    moved = moved_labels(votes, changed)
    if unit is Unit.PHONE:
        moved = [each for each in moved if (np.array(each) <= votes).all()]
    here = limit_law(voting, votes)
    there = farthest(here, [limit_law(voting, each) for each in moved])
    claimed = thresholds.gaussian_divergence(voting, len(votes), ORDERS, unit)
    claimed = claimed + ORDERS * voting.choice_rho
    if voting.check is not None:
        claimed = claimed + ORDERS / (2 * voting.check.deviation**2)
    methods = [Method.INDEPENDENT, Method.EXACT] if voting.exact else [Method.INDEPENDENT]
    table = np.array([votes])
    proven = {}
    for method in methods:
        each = thresholds.threshold_divergences(voting, table, ORDERS, method, unit)
        proven[method] = (each.asked + each.answered)[0]
    words = ", ".join(f"{vote:g}" for vote in votes)
    return Audited(f"{rule}, votes {words}, σ = 4", [Pair(here, there)], claimed, proven)


def limit_law(voting: ThresholdVoting, votes: tuple[float, ...]) -> Numbers:
    """Of all outcomes, and of which threshold a grid gave."""
    law = voting.law(np.array(votes))
    return with_check(law, max(votes), voting.check)


def servers() -> Iterator[Finding]:
    """Noisy counts: whatever is made of them, thresholds and checks included, tells no more."""
    for what, steps, deviation, queries in _SUMMED:
        summed = VoteSum(Outputs(20, 3, steps), queries, deviation, DELTA, _SHARES)
        law = noise_law(summed, _SHARES)
        for unit in UNITS:
            moved = [steps] * 3 if unit is Unit.PHONE else [steps] * 3 + [-steps] * 3
            losses = difference_loss(law, np.tile(moved, queries), _STEP)
            case = (
                f"noisy counts of {what}, v = 3 of 20 labels, σ = {deviation:g}; {queries} queries"
            )
            yield vote_finding(summed, case, unit, losses, subject=THRESHOLDS)


def drawn(draws: int, seed: int) -> Iterator[Check]:
    """Draws of the rules that curators run against the laws that were measured."""
    check = Agreement(26.0, 6.0)
    votes = (20.0, 23.0, 31.0)
    for name, limit in (
        ("a fixed threshold", GNThreshold(22.0, 4.0, _TEACHERS, check=check)),
        ("the widest gap of noisy votes", replace(_ADAPTIVE, check=check)),
        ("a threshold from a grid", replace(_GRID, grid=(8.0, 20.0, 32.0), check=check)),
    ):
        law = limit_law(limit, votes)
        answers = limit.answers(len(votes))
        # Thresholds of a grid are not part of what is published.
        chances = law[:-1].reshape(-1, len(answers)).sum(axis=0)
        expected = dict(zip(answers, chances.tolist(), strict=True)) | {(-1, -1, -1): law[-1]}
        yield against(name, limit, np.tile(votes, (draws, 1)), expected, seed, subject=THRESHOLDS)
