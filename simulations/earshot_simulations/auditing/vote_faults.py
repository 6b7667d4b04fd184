"""Planted faults of a curator's votes: each was printed, and is sold here as what is proven."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from earshot_models.votes.confident_check import Check as Agreement
from earshot_models.votes.costs.costs import Method, epsilon
from earshot_models.votes.costs.multi_winner import gaussian_divergence, label_divergences
from earshot_models.votes.costs.muschiol import claimed_threshold
from earshot_models.votes.costs.thresholds import threshold_divergences
from earshot_models.votes.rules.binary import BinaryVoting
from earshot_models.votes.rules.gnthreshold import GNThreshold
from earshot_models.votes.rules.gnthreshold_adaptive import AdaptiveThreshold
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.privacy.mechanisms import Unit
from earshot_simulations.auditing.findings import EXACT, FAULTS, Check, Finding, Result, Role
from earshot_simulations.auditing.findings import Method as How
from earshot_simulations.auditing.limits import limit_law
from earshot_simulations.auditing.outcome_laws import Pair, label_law, measured
from earshot_simulations.auditing.printed_votes import raw_threshold_epsilon
from earshot_simulations.auditing.proofs import DELTA
from earshot_simulations.auditing.several_winners import (
    ENUMERATED,
    ORDERS,
    QUERIES,
    drawn_labels,
)
from earshot_simulations.auditing.watching import replaced

_LABELS = 20
_VOTING = BinaryVoting(51, 5.0)


def audit_vote_faults(draws: int, seed: int) -> Iterator[Result]:
    """All of them.

    Args:
        draws: of the one that only draws show.
        seed: of these.
    """
    yield raw_threshold()
    yield half_the_noise_on_positive_votes()
    yield half_the_noise_drawn(draws, seed)
    yield unpaid_check()
    yield free_check()


def raw_threshold() -> Finding:
    """The widest gap is looked for before there is any noise."""
    voting = AdaptiveThreshold(4.0, 50)
    votes, others = (50, 25, 0, 0, 0), (50, 26, 0, 0, 0)
    proven = threshold_divergences(voting, np.array([votes]), ORDERS, Method.INDEPENDENT)
    bound = epsilon(proven.answered[0], ORDERS, DELTA)[0]
    return Finding(
        FAULTS,
        "a threshold from raw votes, sold as one from noisy votes: one query",
        Unit.REPLACED_PHONE,
        DELTA,
        bound,
        bound,
        raw_threshold_epsilon(votes, others, voting.deviation, DELTA),
        How(EXACT, "exact: all 32 answers"),
        Role.FAULT,
    )


def half_the_noise_on_positive_votes() -> Finding:
    """Noisy votes against n less the votes: noise s counts half."""
    thin = replace(_VOTING, deviation=_VOTING.deviation / 2)
    votes = np.full((1, _LABELS), 25.0)
    pair = Pair(label_law(thin, 25.0), label_law(thin, 26.0), _LABELS)
    proven = label_divergences(_VOTING, votes, ORDERS, Method.INDEPENDENT).answered[0]
    claimed = gaussian_divergence(_VOTING, _LABELS, ORDERS)
    return Finding(
        FAULTS,
        f"half the noise on the positive count: {_LABELS} labels, {QUERIES} queries",
        Unit.REPLACED_PHONE,
        DELTA,
        epsilon(QUERIES * claimed, ORDERS, DELTA)[0],
        epsilon(QUERIES * proven, ORDERS, DELTA)[0],
        measured([pair], QUERIES, DELTA),
        ENUMERATED,
        Role.FAULT,
    )


def half_the_noise_drawn(draws: int, seed: int) -> Check:
    """The rule itself draws half of its noise: only what it draws shows it."""

    whole = noisy_counts.with_normal
    with replaced(noisy_counts, with_normal=lambda votes, s, *rest: whole(votes, s / 2, *rest)):
        found = drawn_labels("half the noise", _VOTING, (20.0, 23.0, 31.0), draws, seed, Role.FAULT)
    return replace(found, subject=FAULTS)


def unpaid_check() -> Finding:
    """Answered queries are charged for their answer alone, though their check told more."""
    voting = BinaryVoting(51, 40.0, Agreement(38.0, 2.0))
    votes = np.full((1, _LABELS), 38.0)
    pair = Pair(label_law(voting, 38.0), label_law(voting, 39.0), _LABELS)
    proven = label_divergences(voting, votes, ORDERS, Method.INDEPENDENT).answered[0]
    bound = epsilon(QUERIES * proven, ORDERS, DELTA)[0]
    return Finding(
        FAULTS,
        f"a check that nobody pays for: {_LABELS} labels, {QUERIES} queries",
        Unit.REPLACED_PHONE,
        DELTA,
        bound,
        bound,
        measured([pair], QUERIES, DELTA),
        ENUMERATED,
        Role.FAULT,
    )


def free_check() -> Finding:
    """The check of a vote against a threshold is free for answered samples (Muschiol 2021, 4.2.4).

    "Revealing the same data twice does not harm privacy again": but noise is fresh, and both tell.
    """
    voting = GNThreshold(21.0, 40.0, 50, most=3, check=Agreement(21.0, 2.0))
    votes = (21.0, 21.0, 21.0)
    pair = Pair(limit_law(voting, votes), limit_law(voting, (20.0, 20.0, 20.0)))
    table = np.array([votes])
    proven = threshold_divergences(voting, table, ORDERS, Method.INDEPENDENT, Unit.PHONE)
    claimed = claimed_threshold(voting.deviation, ORDERS, 3)
    return Finding(
        FAULTS,
        f"a check against a threshold that answered samples do not pay: {QUERIES} queries",
        Unit.PHONE,
        DELTA,
        epsilon(QUERIES * claimed, ORDERS, DELTA)[0],
        epsilon(QUERIES * proven.answered[0], ORDERS, DELTA)[0],
        measured([pair], QUERIES, DELTA),
        ENUMERATED,
        Role.FAULT,
    )
