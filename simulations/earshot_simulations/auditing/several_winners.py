"""A curator's votes with several winners: what their outcomes tell.

Of each rule, the law of its outcomes under some votes and under the neighbour that changes it most;
ε of some queries of them, by enumeration; and draws of the rule itself against that law.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import Check as Agreement
from earshot_models.votes.costs import costs, multi_winner
from earshot_models.votes.costs.costs import Divergences, Method, epsilon
from earshot_models.votes.rules.binary import BinaryVoting
from earshot_models.votes.rules.laws import answers_of
from earshot_models.votes.rules.powerset import PowersetVoting
from earshot_models.votes.rules.tau import ClippedVoting
from earshot_models.votes.subsets import SubsetVotes
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.randomness import RandomBytes
from earshot_simulations.auditing.findings import EXACT, Check, Finding, Result, Role
from earshot_simulations.auditing.findings import Method as How
from earshot_simulations.auditing.laws import Numbers
from earshot_simulations.auditing.outcome_laws import (
    Pair,
    farthest,
    label_law,
    measured,
    moved_votes,
    set_law,
)
from earshot_simulations.auditing.proofs import DELTA
from earshot_simulations.auditing.selection import law_check

SEVERAL_WINNERS = "several-winners"
ORDERS = np.concatenate([1 + np.geomspace(0.01, 0.9, 24), costs.ORDERS])
QUERIES = 5
_TEACHERS, _LABELS = 51, 20
ENUMERATED = How(EXACT, "exact: the law of every outcome, losses convolved, in both directions")


@dataclass(frozen=True)
class Audited:
    """One rule on one query, and the neighbour that changes its outcome most.

    Attributes:
        case: in words.
        pairs: laws of its independent outcomes.
        claimed: divergences that the rule is usually said to have, (orders,): those of its noise.
        proven: by each method, of check and answer, (orders,).
    """

    case: str
    pairs: list[Pair]
    claimed: Numbers
    proven: dict[Method, Numbers]


def audit_several_winners(draws: int, seed: int) -> Iterator[Result]:
    """Every rule, plain and with its check.

    Args:
        draws: of each rule against its law.
        seed: of their noise.
    """
    for audited in (*labels(), *sets()):
        yield from findings(audited)
    yield from drawn(draws, seed)


def findings(
    audited: Audited,
    role: Role = Role.PRODUCT,
    subject: str = SEVERAL_WINNERS,
    unit: Unit = Unit.REPLACED_PHONE,
) -> Iterator[Finding]:
    """One for each method by which a cost is proven."""
    found = measured(audited.pairs, QUERIES, DELTA)
    for method, divergences in audited.proven.items():
        yield Finding(
            subject,
            f"{audited.case}; {QUERIES} queries, proven {_WORDS[method]}",
            unit,
            DELTA,
            epsilon(QUERIES * audited.claimed, ORDERS, DELTA)[0],
            epsilon(QUERIES * divergences, ORDERS, DELTA)[0],
            found,
            ENUMERATED,
            role,
        )


_WORDS = {
    Method.INDEPENDENT: "from the noise",
    Method.EXACT: "from all outcomes",
}


def labels() -> Iterator[Audited]:
    """A teacher turns its whole ballot around: every label moves across the threshold."""
    half = _TEACHERS / 2
    check = Agreement(38.0, 8.0)
    for rule, voting in (
        ("binary votes", BinaryVoting(_TEACHERS, 5.0)),
        ("votes clipped to 1.8 in L2", ClippedVoting(_TEACHERS, 1.8, 2, 5.0)),
        ("votes clipped to 3.4 in L1", ClippedVoting(_TEACHERS, 3.4, 1, 5.0)),
        ("binary votes with a check", BinaryVoting(_TEACHERS, 5.0, check)),
    ):
        moved, touched = _farthest_ballots(voting)
        # Beside the check, where both it and the answer tell something, it is not the middle.
        starts = [half - moved / 2] if voting.check is None else [half + 2, half + 6, half + 12]
        apart = [_apart(voting, at, at + moved) for at in starts]
        start = starts[int(np.argmax(apart))]
        pair = Pair(label_law(voting, start), label_law(voting, start + moved), touched)
        still = label_law(voting, 0.0)
        votes = np.zeros((1, _LABELS))
        votes[0, :touched] = start
        yield Audited(
            f"{rule}, {_LABELS} labels, {_TEACHERS} teachers, s = 5",
            [pair, Pair(still, still, _LABELS - touched)] if touched < _LABELS else [pair],
            _noise_alone(voting),
            {
                method: _sum(multi_winner.label_divergences(voting, votes, ORDERS, method))
                for method in _WORDS
            },
        )


def _apart(voting: BinaryVoting | ClippedVoting, one: float, two: float) -> float:
    here, there = label_law(voting, one), label_law(voting, two)
    return float(np.abs(np.log(here) - np.log(there)) @ (here + there))


def _noise_alone(voting: BinaryVoting | ClippedVoting) -> Numbers:
    change = multi_winner.gaussian_divergence(voting, _LABELS, ORDERS)
    if voting.check is not None:
        change = change * (1 + (voting.deviation / voting.check.deviation) ** 2)
    return change


def _farthest_ballots(voting: BinaryVoting | ClippedVoting) -> tuple[float, int]:
    """By how much a label moves, and how many do, where two ballots share none."""
    rows = np.tril(np.ones((_LABELS, _LABELS), dtype=np.int64))
    ballot = voting.ballot(_LABELS)
    entries = ballot.cast(rows).max(axis=1) / ballot.vote
    sizes = np.arange(1, _LABELS + 1)
    best = int(np.argmax(np.where(2 * sizes <= _LABELS, sizes * entries**2, 0)))
    return float(entries[best]), 2 * int(sizes[best])


def sets() -> Iterator[Audited]:
    """One vote moves from any set of labels to any other, of which all are tried."""
    for cast, deviation, check in (
        ((9, 4, 1, 1), 2.0, None),
        ((8, 7), 3.0, None),
        ((15,), 4.0, Agreement(12.0, 6.0)),
    ):
        labels_there = 3
        counts = cast + (0,) * (2**labels_there - len(cast))
        voting = PowersetVoting(labels_there, deviation, check)
        here = with_check(set_law(counts, deviation), max(counts), check)
        there = farthest(
            here,
            [
                with_check(set_law(each, deviation), max(each), check)
                for each in moved_votes(counts)
            ],
        )
        claimed = ORDERS / deviation**2
        if check is not None:
            claimed = claimed + ORDERS / (2 * check.deviation**2)
        yield Audited(
            f"sets of {labels_there} labels, cast {cast}, σ = {deviation:g}"
            + (" with a check" if check else ""),
            [Pair(here, there)],
            claimed,
            {
                method: _sum(multi_winner.set_divergences(voting, _cast(counts), ORDERS, method))
                for method in _WORDS
            },
        )


def drawn(draws: int, seed: int) -> Iterator[Check]:
    """Draws of the rules that curators run against the laws that were measured."""
    check = Agreement(26.0, 6.0)
    votes = (20.0, 23.0, 31.0)
    for name, voting in (
        ("binary votes", BinaryVoting(_TEACHERS, 7.0, check)),
        ("clipped votes", ClippedVoting(_TEACHERS, 1.2, 2, 7.0, check)),
    ):
        yield drawn_labels(name, voting, votes, draws, seed)
    counts = (5, 4, 2, 0, 0, 0, 0, 0)
    one = _cast(counts)
    many = SubsetVotes(
        np.tile(one.sets, (draws, 1)),
        np.tile(one.counts, draws),
        np.arange(draws) * len(one.counts),
    )
    law = set_law(counts, 2.5)
    expected = dict(zip(answers_of(3), law.tolist(), strict=True))
    yield against("sets of labels", PowersetVoting(3, 2.5), many, expected, seed)


def drawn_labels(
    name: str,
    voting: BinaryVoting | ClippedVoting,
    votes: tuple[float, ...],
    draws: int,
    seed: int,
    role: Role = Role.PRODUCT,
) -> Check:
    """Draws of a rule for labels, all of them together, against their laws."""
    outcomes = (1, 0, -1)
    laws = [label_law(voting, each) for each in votes]
    shape = np.meshgrid(*(range(len(law)) for law in laws), indexing="ij")
    expected = {
        tuple(outcomes[place] for place in places): math.prod(
            float(law[place]) for law, place in zip(laws, places, strict=True)
        )
        for places in zip(*(axis.ravel().tolist() for axis in shape), strict=True)
    }
    return against(name, voting, np.tile(votes, (draws, 1)), expected, seed, role)


def against(
    name: str,
    voting: Any,
    votes: Any,
    expected: dict[tuple[int, ...], float],
    seed: int,
    role: Role = Role.PRODUCT,
    subject: str = SEVERAL_WINNERS,
) -> Check:
    """Draws of a rule against the law of its outcomes, in the order of `expected`."""
    random: RandomBytes = np.random.default_rng(seed).bytes
    found: npt.NDArray[np.int64] = voting.winners(votes, random)
    counted = Counter(tuple(row) for row in found.tolist())
    return law_check(subject, f"{name}: what the rule draws", counted, expected, role)


def with_check(law: Numbers, most: float, check: Agreement | None) -> Numbers:
    """The law with `no answer` last."""
    from scipy.stats import norm

    if check is None:
        return law
    passing = float(norm.cdf((most - check.threshold) / check.deviation))
    return np.append(passing * law, 1 - passing)


def _cast(counts: tuple[int, ...]) -> SubsetVotes:
    """One query, whose sets have numbers in binary."""
    places = [place for place, count in enumerate(counts) if count]
    width = len(counts).bit_length() - 1
    rows = [[place >> (width - 1 - bit) & 1 for bit in range(width)] for place in places]
    table = np.array([counts[place] for place in places], dtype=np.int64)
    return SubsetVotes(np.array(rows, dtype=np.int8), table, np.zeros(1, dtype=np.int64))


def _sum(divergences: Divergences) -> Numbers:
    """Of one query that is asked and answered."""
    total: Numbers = (divergences.asked + divergences.answered)[0]
    return total
