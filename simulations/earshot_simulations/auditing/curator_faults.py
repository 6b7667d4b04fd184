"""Planted faults of a curator's votes: noise twice, checks for nothing, and costs in the open."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs import releases
from earshot_models.votes.costs.costs import Method, event, query_divergences, spent_epsilon
from earshot_models.votes.costs.personal import (
    Group,
    concentration,
    concentrations,
    weights,
)
from earshot_models.votes.rules.confident import ConfidentGNMax
from earshot_protocol.privacy.divergences import ORDERS
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.privacy.noisy_counts import with_normal
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE
from earshot_simulations.auditing.curator import HOW, budget_check, drawn, measure
from earshot_simulations.auditing.findings import EXACT, FAULTS, Check, Finding, Role
from earshot_simulations.auditing.findings import Method as How
from earshot_simulations.auditing.losses import Bracket
from earshot_simulations.auditing.proofs import DELTA, composed_finding
from earshot_simulations.auditing.published_costs import published_cost
from earshot_simulations.auditing.watching import replaced


def curator_faults(trials: int, seed: int) -> Iterator[Finding | Check]:
    """All of them.

    Args:
        trials: winners that are drawn.
        seed: of these.
    """
    yield reused_noise(trials, seed)
    yield unpaid_check()
    yield raw_cost()
    yield local_sensitivity()
    yield rounded_weights()


@dataclass(frozen=True)
class _ReusedNoise(ConfidentGNMax):
    """Checks the largest noisy count and answers by the same noise."""

    def winners(
        self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom
    ) -> npt.NDArray[np.int64]:
        noisy = with_normal(votes, self.deviation, random)
        passing = noisy.max(axis=1) >= self.threshold
        return np.where(passing, noisy.argmax(axis=1), NONE).astype(np.int64)


def reused_noise(trials: int, seed: int) -> Check:
    """One noisy histogram for check and answer: neither has the law that is accounted for."""
    broken = _ReusedNoise(25.0, 8.0, 8.0)
    name = "noise of a check used for the answer, too"
    return drawn(name, broken, trials, seed, Role.FAULT, FAULTS)


def unpaid_check(queries: int = 30) -> Finding:
    """Only answers are counted, as if a check told nothing (Mühl 2021, 4.2.2, in words)."""
    aggregator, votes = ConfidentGNMax(36.0, 6.0, 6.0), (36, 2, 2)
    each = query_divergences(aggregator, np.array([votes]), ORDERS, Method.EXACT)
    counted = queries * each.answered[0]
    return composed_finding(
        FAULTS,
        f"{queries} checks that nobody pays for, T = 36, σ₁ = 6, votes 36/2/2",
        Unit.REPLACED_PHONE,
        0.0,
        (event(counted, ORDERS),),
        measure(aggregator, votes, queries),
        HOW,
        Role.FAULT,
    )


def raw_cost() -> Finding:
    """A data-dependent ε that is shown as it is: neighbours' differ."""
    aggregator = ConfidentGNMax(25.0, 12.0, 8.0)
    shown = [
        spent_epsilon(
            aggregator, np.array([votes] * 20), np.ones(20, dtype=bool), DELTA, Method.DEPENDENT
        )[0]
        for votes in ((37, 2, 1), (36, 3, 1))
    ]
    measured = math.inf if shown[0] != shown[1] else 0.0
    return Finding(
        FAULTS,
        f"a data-dependent ε published raw: {shown[0]:.6f} and, for a neighbour, {shown[1]:.6f}",
        Unit.REPLACED_PHONE,
        DELTA,
        max(shown),
        max(shown),
        Bracket(measured, measured),
        How(EXACT, "exact: one output of each, which the other never gives"),
        Role.FAULT,
    )


def local_sensitivity() -> Finding:
    """Publish a cost with noise for the votes that there were, and none for those nearby."""
    with replaced(releases, smooth_sensitivity=lambda local, beta: float(local[0])):
        return published_cost("exact, two classes", Role.FAULT, FAULTS)


def rounded_weights() -> Check:
    """Queries are planned by weights, and votes cast by weights rounded to whole numbers."""
    groups = (Group(1.0, 20), Group(1.5, 20))
    aggregator = ConfidentGNMax(25.0, 60.0, 40.0)
    planned = weights(groups)
    limits = np.array([group.epsilon for group in groups])
    check, answer = concentrations(aggregator)
    rho = concentration(limits, DELTA) / np.square(planned) / (check + answer)
    queries = math.floor(rho.min())
    cast = np.square(np.rint(planned)) * queries
    return budget_check(
        FAULTS,
        f"{queries} queries for weights 0.8 and 1.2, cast as 1 and 1",
        limits,
        aggregator,
        cast,
        cast,
        Role.FAULT,
    )
