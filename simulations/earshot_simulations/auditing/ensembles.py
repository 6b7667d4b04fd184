"""Votes of an ensemble that a curator counts: what their outcomes tell, rule by rule.

Each case is a rule on the votes of one query. Of the rule there is the law of all outcomes, at
these votes and at the neighbour that changes them most; ε of some queries follows by enumeration,
and draws of the rule itself are held against the law. None of it comes from the accounting: labels
have normal laws, and other rules say their own law (`votes.rules.laws`), which has tests of its
own. A planted fault is a case whose rule does not run as it is accounted for.
"""

from __future__ import annotations

import functools
import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.costs import costs, multi_winner, thresholds
from earshot_models.votes.costs.costs import Divergences, Method, epsilon
from earshot_models.votes.costs.outcomes import log_winning
from earshot_models.votes.output_ballots import STEPS, Outputs
from earshot_models.votes.rules.against_thresholds import ThresholdVoting
from earshot_models.votes.rules.binary import BinaryVoting
from earshot_models.votes.rules.confident import ConfidentGNMax
from earshot_models.votes.rules.gnmax import GNMax
from earshot_models.votes.rules.gnthreshold import GNThreshold
from earshot_models.votes.rules.gnthreshold_adaptive import AdaptiveThreshold
from earshot_models.votes.rules.grid_threshold import GridThreshold
from earshot_models.votes.rules.interactive import InteractiveGNMax
from earshot_models.votes.rules.laws import answers_of
from earshot_models.votes.rules.lnmax import LNMax
from earshot_models.votes.rules.powerset import PowersetVoting
from earshot_models.votes.rules.rule import UNITS
from earshot_models.votes.rules.tau import ClippedVoting
from earshot_models.votes.subsets import SubsetVotes
from earshot_protocol.overriding import override
from earshot_protocol.privacy.divergences import ORDERS as LEDGER_ORDERS
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_simulations.auditing.ballots import difference_loss, noise_law, vote_finding
from earshot_simulations.auditing.findings import EXACT, Check, Finding, Result, Technique
from earshot_simulations.auditing.laws import Numbers
from earshot_simulations.auditing.losses import Bracket
from earshot_simulations.auditing.outcomes import (
    Pair,
    Votes,
    convolved_epsilon,
    counted_epsilon,
    moved_labels,
    moved_votes,
    with_check,
)
from earshot_simulations.auditing.proofs import DELTA, composed_finding
from earshot_simulations.auditing.sampling import OutcomeLaw, law_check

ORDERS = np.concatenate([1 + np.geomspace(0.01, 0.9, 24), costs.ORDERS])
_ENUMERATED = Technique(
    EXACT, "exact: the law of every outcome, losses convolved, in both directions"
)
_COUNTED = Technique(
    EXACT, "exact: how often each outcome comes, for these votes and all neighbours"
)
_WORDS = {
    Method.INDEPENDENT: "from the noise",
    Method.EXACT: "from all outcomes",
}
_SCORES = np.array([[0.5, 0.3, 0.2]])
"""Scores of a student, for the rule in which it takes part."""
_LABELS = 20
_DRAWN = (20.0, 23.0, 31.0)
"""Votes on which rules for labels are drawn."""

Aggregator = LNMax | GNMax | ConfidentGNMax | InteractiveGNMax


@dataclass(frozen=True)
class Case(ABC):
    """A rule on the votes of one query.

    Attributes:
        words: Rule and votes in words.
        rule: Rule that is accounted for.
        votes: Votes of each class, label or set.
        unit: Unit in which neighbours differ.
        methods: Methods by which a cost is proven.
        runs: Rule that runs; the same by default, and another one for a planted fault.
        pays_check: Whether checks are accounted for; not in a planted fault.
    """

    words: str
    rule: Any
    votes: Votes
    unit: Unit = Unit.REPLACED_PHONE
    methods: tuple[Method, ...] = (Method.INDEPENDENT,)
    runs: Any = None
    pays_check: bool = True

    queries: ClassVar[int] = 5

    @property
    def running(self) -> Any:
        """Rule whose outcomes are measured."""
        return self.runs or self.rule

    @abstractmethod
    def neighbours(self) -> Iterator[Sequence[Pair]]:
        """Yield the laws of one query's independent outcomes, here and at each neighbour."""

    @abstractmethod
    def divergences(self, method: Method) -> Divergences:
        """Return what the query is proven to cost, at the orders of the account, by a method."""

    @abstractmethod
    def findings(self) -> Iterator[Finding]:
        """Yield the measurement beside the cost that each method proves."""

    @functools.cached_property
    def measured(self) -> Bracket:
        """Measured ε of all queries together, at the neighbour that tells most."""
        found = [convolved_epsilon(pairs, self.queries, DELTA) for pairs in self.neighbours()]
        return Bracket(max(each.low for each in found), max(each.high for each in found))

    def proven(self, method: Method) -> Numbers:
        """Return the divergences that are accounted for, (orders,)."""
        each = self.divergences(method)
        return np.asarray((each.asked + each.answered if self.pays_check else each.answered)[0])


class Winners(Case):
    """A rule for one winner; of few teachers all neighbours are known."""

    queries = 30

    @override
    def neighbours(self) -> Iterator[Sequence[Pair]]:
        here = winner_law(self.running, self.votes)
        return ([Pair(here, winner_law(self.running, each))] for each in moved_votes(self.votes))

    @functools.cached_property
    @override
    def measured(self) -> Bracket:
        here = winner_law(self.running, self.votes)
        others = [winner_law(self.running, each) for each in moved_votes(self.votes)]
        return counted_epsilon(here, others, self.queries, DELTA)

    @override
    def divergences(self, method: Method) -> Divergences:
        scores = _SCORES if self.rule.takes_scores else None
        table = np.array([self.votes])
        return costs.query_divergences(self.rule, table, LEDGER_ORDERS, method, scores=scores)

    @override
    def findings(self) -> Iterator[Finding]:
        """Yield what papers convert of a curve beside what a ledger composes of it."""
        for method in self.methods:
            curve = self.queries * self.proven(method)
            claimed = epsilon(curve, LEDGER_ORDERS, DELTA, classic=True)[0]
            events = (costs.event(curve, LEDGER_ORDERS),)
            yield composed_finding(self.words, self.unit, claimed, events, self.measured, _COUNTED)


class SeveralWinners(Case):
    """A rule by which any number of labels wins; it is accounted for at `ORDERS`."""

    @abstractmethod
    def usual(self) -> Numbers:
        """Return what the query is usually said to cost: its noise alone, (orders,)."""

    def _usual_check(self) -> Numbers:
        """Return what the check of one number is usually said to cost, (orders,)."""
        check = self.rule.check if self.pays_check else None
        return np.zeros(len(ORDERS)) if check is None else ORDERS / (2 * check.deviation**2)

    @override
    def findings(self) -> Iterator[Finding]:
        claimed = self.queries * self.usual()
        for method in self.methods:
            yield Finding(
                f"{self.words}; {self.queries} queries, proven {_WORDS[method]}",
                self.unit,
                DELTA,
                epsilon(claimed, ORDERS, DELTA)[0],
                epsilon(self.queries * self.proven(method), ORDERS, DELTA)[0],
                self.measured,
                _ENUMERATED,
            )


class Labels(SeveralWinners):
    """A rule for every label by itself: a teacher turns its whole ballot around.

    Attributes:
        votes: Votes of each label that moves, one number.
    """

    @override
    def neighbours(self) -> Iterator[Sequence[Pair]]:
        moved, touched = _farthest_ballots(self.rule)
        (votes,) = self.votes
        here, there = (label_law(self.running, each) for each in (votes, votes + moved))
        still = label_law(self.running, 0.0)
        pair = Pair(here, there, touched)
        yield [pair, Pair(still, still, _LABELS - touched)] if touched < _LABELS else [pair]

    @override
    def divergences(self, method: Method) -> Divergences:
        votes = np.zeros((1, _LABELS))
        votes[0, : _farthest_ballots(self.rule)[1]] = self.votes[0]
        return multi_winner.label_divergences(self.rule, votes, ORDERS, method)

    @override
    def usual(self) -> Numbers:
        change = multi_winner.gaussian_divergence(self.rule, _LABELS, ORDERS)
        if self.rule.check is not None and self.pays_check:
            change = change * (1 + (self.rule.deviation / self.rule.check.deviation) ** 2)
        return np.asarray(change)


class Sets(SeveralWinners):
    """A rule for sets of labels: one vote moves from any set to any other, of which all are tried.

    Attributes:
        votes: Votes of all sets, cast or not.
    """

    @override
    def neighbours(self) -> Iterator[Sequence[Pair]]:
        here = set_law(self.running, self.votes)
        return ([Pair(here, set_law(self.running, each))] for each in moved_votes(self.votes))

    @override
    def divergences(self, method: Method) -> Divergences:
        return multi_winner.set_divergences(self.rule, _cast(self.votes), ORDERS, method)

    @override
    def usual(self) -> Numbers:
        return np.asarray(ORDERS / self.rule.deviation**2 + self._usual_check())


class Thresholds(SeveralWinners):
    """A rule for labels against a threshold.

    A teacher that is replaced moves votes either way; one that is left out takes votes away.
    """

    @override
    def neighbours(self) -> Iterator[Sequence[Pair]]:
        changed = thresholds.changed_labels(self.rule, len(self.votes), self.unit)
        here = limit_law(self.running, self.votes)
        for each in moved_labels(self.votes, changed):
            if self.unit is not Unit.PHONE or (np.array(each) <= self.votes).all():
                yield [Pair(here, limit_law(self.running, each))]

    @override
    def divergences(self, method: Method) -> Divergences:
        table = np.array([self.votes])
        return thresholds.threshold_divergences(self.rule, table, ORDERS, method, self.unit)

    @override
    def usual(self) -> Numbers:
        claimed = thresholds.gaussian_divergence(self.rule, len(self.votes), ORDERS, self.unit)
        return np.asarray(claimed + ORDERS * self.rule.choice_rho + self._usual_check())


def _most_telling(cases: Iterable[Case]) -> Case:
    """Return the case that measures the largest ε."""
    return max(cases, key=lambda each: each.measured.low)


def audit_curator(trials: int, seed: int) -> Iterator[Result]:
    """Audit rules for one winner, by noise alone at the worst of some votes, and by their votes.

    Args:
        trials: Winners drawn of each rule.
        seed: Seed of the draws.
    """
    tables = ((14, 13, 13), (20, 20, 0), (26, 14, 0), (31, 5, 4), (40, 0, 0))
    rules: dict[str, Aggregator] = {
        "LNMax, γ = 0.1": LNMax(0.1),
        "GNMax, σ = 8": GNMax(8.0),
        "Confident-GNMax, T = 25, σ₁ = 12, σ₂ = 8": ConfidentGNMax(25.0, 12.0, 8.0),
        "Interactive-GNMax, T = 10, σ₁ = 12, σ₂ = 8": InteractiveGNMax(10.0, 12.0, 8.0, 0.9),
    }
    for name, rule in rules.items():
        words = f"{name}; {Winners.queries} queries, "
        by_noise = f"{words}by noise alone"
        yield from _most_telling(Winners(by_noise, rule, votes) for votes in tables).findings()
        if rule.exact:
            votes = (31, 5, 4)
            exact = f"{words}exact, votes {'/'.join(map(str, votes))}"
            yield from Winners(exact, rule, votes, methods=(Method.EXACT,)).findings()
        yield drawn_winners(name, rule, trials, seed)


def audit_several_winners(draws: int, seed: int) -> Iterator[Result]:
    """Audit rules for labels and for sets of labels, plain and with a check.

    Args:
        draws: Answers drawn of each rule.
        seed: Seed of the draws.
    """
    teachers, check = 51, ConfidentCheck(38.0, 8.0)
    half = teachers / 2
    both = (Method.INDEPENDENT, Method.EXACT)
    for rule, voting in (
        ("binary votes", BinaryVoting(teachers, 5.0)),
        ("votes clipped to 1.8 in L2", ClippedVoting(teachers, 1.8, 2, 5.0)),
        ("votes clipped to 3.4 in L1", ClippedVoting(teachers, 3.4, 1, 5.0)),
        ("binary votes with a check", BinaryVoting(teachers, 5.0, check)),
    ):
        # Beside the check, where both it and the answer tell something, it is not the middle.
        middle = half - _farthest_ballots(voting)[0] / 2
        votes = (middle,) if voting.check is None else (half + 2, half + 6, half + 12)
        words = f"{rule}, {_LABELS} labels, {teachers} teachers, s = 5"
        cases = (Labels(words, voting, (each,), methods=both) for each in votes)
        yield from _most_telling(cases).findings()
    for cast, deviation, agreed in (
        ((9, 4, 1, 1), 2.0, None),
        ((8, 7), 3.0, None),
        ((15,), 4.0, ConfidentCheck(12.0, 6.0)),
    ):
        words = f"sets of 3 labels, cast {cast}, σ = {deviation:g}"
        words += " with a check" if agreed else ""
        counts = cast + (0,) * (2**3 - len(cast))
        voting_for_sets = PowersetVoting(3, deviation, agreed)
        yield from Sets(words, voting_for_sets, counts, methods=both).findings()
    agreement = ConfidentCheck(26.0, 6.0)
    yield drawn_labels("binary votes", BinaryVoting(teachers, 7.0, agreement), draws, seed)
    clipped = ClippedVoting(teachers, 1.2, 2, 7.0, agreement)
    yield drawn_labels("clipped votes", clipped, draws, seed)
    counts = (5, 4, 2, 0, 0, 0, 0, 0)
    one, sets = _cast(counts), PowersetVoting(3, 2.5)
    many = SubsetVotes(
        np.tile(one.sets, (draws, 1)),
        np.tile(one.counts, draws),
        np.arange(draws) * len(one.counts),
    )
    law = dict(zip(answers_of(3), set_law(sets, counts).tolist(), strict=True))
    yield _drawn("sets of labels: what the rule draws", sets, [many], law, seed)


def audit_thresholds(draws: int, seed: int) -> Iterator[Result]:
    """Audit rules against thresholds by a curator, and the sums behind those by a server.

    Args:
        draws: Answers drawn of each rule.
        seed: Seed of the draws.
    """
    teachers = 50
    fixed, adaptive = GNThreshold(20.5, 4.0, teachers), AdaptiveThreshold(4.0, teachers)
    grid = GridThreshold((8.0, 20.0, 32.0, 44.0), 4.0, 4.0, teachers)
    near, even, wide = (20.0, 21.0, 3.0), (30.0, 20.0, 10.0), (40.0, 22.0, 9.0)
    low, high = ConfidentCheck(24.0, 6.0), ConfidentCheck(30.0, 6.0)
    checked, one = " with a check, v = 1", ", v = 1"
    first, widest, chosen = (
        "a fixed threshold", "the widest gap of noisy votes", "a threshold from a grid"
    )  # fmt: skip
    cases: tuple[tuple[str, ThresholdVoting, Votes], ...] = (
        (first, fixed, near),
        (first + one, replace(fixed, most=1), near),
        (first + checked, replace(fixed, most=1, check=low), near),
        (widest, adaptive, even),
        (widest, adaptive, wide),
        (widest + one, replace(adaptive, most=1), even),
        (widest + checked, replace(adaptive, most=1, check=high), even),
        (chosen, grid, even),
        (chosen + one, replace(grid, most=1), even),
        (chosen + checked, replace(grid, most=1, check=high), even),
    )
    for (words, voting, votes), unit in itertools.product(cases, UNITS):
        if voting.most is None and unit is Unit.PHONE:
            continue  # all labels may change either way
        methods = (Method.INDEPENDENT, *([Method.EXACT] if voting.exact else []))
        said = f"{words}, votes {', '.join(f'{vote:g}' for vote in votes)}, σ = 4"
        yield from Thresholds(said, voting, votes, unit, methods).findings()
    yield from _servers()
    agreement = ConfidentCheck(26.0, 6.0)
    for words, limit in (
        (first, GNThreshold(22.0, 4.0, teachers, check=agreement)),
        (widest, replace(adaptive, check=agreement)),
        (chosen, replace(grid, check=agreement, grid=(8.0, 20.0, 32.0))),
    ):
        law, answers = limit_law(limit, _DRAWN), limit.answers(len(_DRAWN))
        # Thresholds of a grid are not part of what is published.
        chances = law[:-1].reshape(-1, len(answers)).sum(axis=0)
        expected = dict(zip(answers, chances.tolist(), strict=True)) | {(-1, -1, -1): law[-1]}
        given = [np.tile(_DRAWN, (draws, 1))]
        yield _drawn(f"{words}: what the rule draws", limit, given, expected, seed)


def _servers() -> Iterator[Finding]:
    """Audit noisy counts: whatever is made of them, thresholds and checks included, tells no more.

    Counts are in whole votes, and in steps.
    """
    shares = 45
    for counts, steps, deviation, queries in (
        ("votes", 1, 30.0, 40), ("probabilities", STEPS, 3.0, 4)
    ):  # fmt: skip
        summed = VoteSum(Outputs(_LABELS, 3, steps), queries, deviation, DELTA, shares)
        law = noise_law(summed, shares)
        for unit in UNITS:
            moved = [steps] * 3 if unit is Unit.PHONE else [steps] * 3 + [-steps] * 3
            case = (
                f"noisy counts of {counts}, v = 3 of {_LABELS} labels, σ = {deviation:g}; "
                f"{queries} queries"
            )
            losses = difference_loss(law, np.tile(moved, queries), 2e-4)
            yield vote_finding(summed, case, unit, losses)


def winner_law(rule: Aggregator, votes: Votes) -> Numbers:
    """Return how likely each class wins and, where there is a check, that there is no answer."""
    table = np.array([votes], dtype=np.float64)
    if rule.check is None:
        return rule.law(table[0])
    agreement = rule.agreement(table, _SCORES if rule.takes_scores else None)[0]
    return with_check(rule.law(table[0]), agreement, rule.check)


def label_law(rule: BinaryVoting | ClippedVoting, votes: float) -> Numbers:
    """Return how likely a label wins, does not win, or has no answer."""
    from scipy.stats import norm

    win = float(norm.cdf((votes - rule.teachers / 2) / rule.deviation))
    return with_check(np.array([win, 1 - win]), max(votes, rule.teachers - votes), rule.check)


def set_law(rule: PowersetVoting, votes: Votes) -> Numbers:
    """Return how likely each set of labels wins, by the quadrature of a winner of all classes."""
    law: Numbers = np.exp(log_winning(np.array(votes), rule.deviation))
    return with_check(law, max(votes), rule.check)


def limit_law(rule: ThresholdVoting, votes: Votes) -> Numbers:
    """Return how likely each outcome is, together with the threshold that a grid gave."""
    return with_check(rule.law(np.array(votes)), max(votes), rule.check)


def drawn_winners(
    name: str, rule: Aggregator, trials: int, seed: int, runs: Aggregator | None = None
) -> Check:
    """Check that winners are of the law that the accounting knows.

    Args:
        name: Rule in words.
        rule: Rule that is accounted for.
        trials: Winners drawn.
        seed: Seed of the draws.
        runs: Rule that runs, if not the same.
    """
    votes = (20, 14, 6)
    law: OutcomeLaw = {
        (place if place < len(votes) else -1,): float(chance)
        for place, chance in enumerate(winner_law(rule, votes))
    }
    given = [np.tile(votes, (trials, 1))]
    if rule.takes_scores:
        given.append(np.tile(_SCORES, (trials, 1)))
    return _drawn(f"{name}: who wins", runs or rule, given, law, seed)


def drawn_labels(
    name: str,
    rule: BinaryVoting | ClippedVoting,
    draws: int,
    seed: int,
    runs: BinaryVoting | None = None,
) -> Check:
    """Check that draws of a rule for labels, all of them together, are of their laws.

    Args:
        name: Rule in words.
        rule: Rule that is accounted for.
        draws: Answers drawn.
        seed: Seed of the draws.
        runs: Rule that runs, if not the same.
    """
    laws = [dict(zip((1, 0, -1), label_law(rule, each), strict=False)) for each in _DRAWN]
    expected = {
        answer: math.prod(float(law[each]) for law, each in zip(laws, answer, strict=True))
        for answer in itertools.product(*laws)
    }
    given = [np.tile(_DRAWN, (draws, 1))]
    return _drawn(f"{name}: what the rule draws", runs or rule, given, expected, seed)


def _drawn(case: str, rule: Any, given: Sequence[Any], law: OutcomeLaw, seed: int) -> Check:
    """Check draws of a rule, from what its `winners` takes, one for each row."""
    found = rule.winners(*given, np.random.default_rng(seed).bytes)
    drawn = Counter(tuple(row) for row in found.reshape(len(found), -1).tolist())
    return law_check(case, drawn, law)


def _farthest_ballots(rule: BinaryVoting | ClippedVoting) -> tuple[float, int]:
    """Return by how much a label moves, and how many do, where two ballots share none."""
    rows = np.tril(np.ones((_LABELS, _LABELS), dtype=np.int64))
    ballot = rule.ballot(_LABELS)
    entries = ballot.cast(rows).max(axis=1) / ballot.vote
    sizes = np.arange(1, _LABELS + 1)
    best = int(np.argmax(np.where(2 * sizes <= _LABELS, sizes * entries**2, 0)))
    return float(entries[best]), 2 * int(sizes[best])


def _cast(counts: Votes) -> SubsetVotes:
    """Return one query, whose sets have numbers in binary."""
    places = [place for place, count in enumerate(counts) if count]
    width = len(counts).bit_length() - 1
    rows = [[place >> (width - 1 - bit) & 1 for bit in range(width)] for place in places]
    table = np.array([counts[place] for place in places], dtype=np.int64)
    return SubsetVotes(np.array(rows, dtype=np.int8), table, np.zeros(1, dtype=np.int64))
