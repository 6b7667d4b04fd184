"""Votes that a curator counts: the privacy cost of their outcomes, rule by rule.

Each case is a rule on the votes of one query. From the law of all outcomes, at these votes and at
the neighbour that changes them most, ε of some queries follows by enumeration; draws of the rule
itself are tested against that law. Nothing here uses the accounting: labels have normal laws, and
other rules state their law (`votes.rules.laws`), which is tested separately. A planted fault is a
case whose rule does not run as it is accounted for.
"""

from __future__ import annotations

import functools
import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from earshot_models.votes.costs import costs, multi_winner, thresholds
from earshot_models.votes.costs.costs import Divergences, Method, epsilon
from earshot_models.votes.costs.outcomes import log_winning
from earshot_models.votes.electorate import PollForm
from earshot_models.votes.output_ballots import STEPS, Outputs
from earshot_models.votes.rules.against_thresholds import ThresholdRule
from earshot_models.votes.rules.binary import BinaryRule
from earshot_models.votes.rules.confident import ConfidentRule
from earshot_models.votes.rules.gnmax import GNMaxRule
from earshot_models.votes.rules.gnthreshold import GNThresholdRule
from earshot_models.votes.rules.gnthreshold_adaptive import AdaptiveRule
from earshot_models.votes.rules.grid_threshold import GridRule
from earshot_models.votes.rules.interactive import InteractiveRule
from earshot_models.votes.rules.label_votes import LabelRule
from earshot_models.votes.rules.laws import answers_of
from earshot_models.votes.rules.lnmax import LNMaxRule
from earshot_models.votes.rules.one_winner import OneWinnerRule
from earshot_models.votes.rules.powerset import PowersetRule
from earshot_models.votes.rules.rule import UNITS, VotingRule
from earshot_models.votes.rules.tau import TauRule
from earshot_models.votes.subsets import SubsetVotes
from earshot_protocol.arrays import Numbers, Whole
from earshot_protocol.overriding import override
from earshot_protocol.privacy.divergences import ORDERS as LEDGER_ORDERS
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.voting.teacher_ballots import Ballot
from earshot_protocol.voting.vote_sums import VoteSum
from earshot_simulations.auditing.ballots import difference_loss, noise_law, vote_finding
from earshot_simulations.auditing.findings import EXACT, Check, Finding, Result, Technique
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
    EXACT, "exact: how often each outcome occurs, for these votes and all neighbours"
)
_WORDS = {
    Method.INDEPENDENT: "from the noise",
    Method.EXACT: "from all outcomes",
}
_SCORES = np.array([[0.5, 0.3, 0.2]])
"""Scores of a student, for the rule that uses them."""
_LABELS = 20
_DRAWN = (20.0, 23.0, 31.0)
"""Votes for which outcomes of rules for labels are drawn."""

R = TypeVar("R", bound=VotingRule)


@dataclass(frozen=True)
class Case(ABC, Generic[R]):
    """A rule on the votes of one query.

    Attributes:
        words: Description of the rule and votes.
        rule: Rule that is accounted for.
        votes: Votes of each class, label or set.
        unit: Unit in which neighbours differ.
        methods: Methods by which a cost is proven.
        runs: Rule that runs; None for `rule`, another one for a planted fault.
        pays_check: Whether checks are accounted for; False for a planted fault.
    """

    words: str
    rule: R
    votes: Votes
    unit: Unit = Unit.REPLACED_PHONE
    methods: tuple[Method, ...] = (Method.INDEPENDENT,)
    runs: R | None = None
    pays_check: bool = True

    queries: ClassVar[int] = 5

    @property
    def running(self) -> R:
        """Rule whose outcomes are measured."""
        return self.runs or self.rule

    @abstractmethod
    def neighbours(self) -> Iterator[Sequence[Pair]]:
        """Yield the laws of one query's independent outcomes, here and at each neighbour."""

    @abstractmethod
    def divergences(self, method: Method) -> Divergences:
        """Return the proven cost of the query by a method, at the orders of the account."""

    @abstractmethod
    def findings(self) -> Iterator[Finding]:
        """Yield the measurement with the cost that each method proves."""

    @functools.cached_property
    def measured(self) -> Bracket:
        """Measured ε of all queries together, at the worst neighbour."""
        found = [convolved_epsilon(pairs, self.queries, DELTA) for pairs in self.neighbours()]
        return Bracket(max(each.low for each in found), max(each.high for each in found))

    def proven(self, method: Method) -> Numbers:
        """Return the divergences that are accounted for, (orders,)."""
        each = self.divergences(method)
        return np.asarray((each.asked + each.answered if self.pays_check else each.answered)[0])


class Winners(Case[OneWinnerRule]):
    """A rule for one winner, of so few teachers that all neighbours are enumerated."""

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
        return self.rule.divergences(table, LEDGER_ORDERS, method, scores=scores)

    @override
    def findings(self) -> Iterator[Finding]:
        """Yield the papers' conversion of a curve with the ledger's composition of it."""
        for method in self.methods:
            curve = self.queries * self.proven(method)
            claimed = epsilon(curve, LEDGER_ORDERS, DELTA, classic=True)[0]
            events = (costs.event(curve, LEDGER_ORDERS),)
            yield composed_finding(self.words, self.unit, claimed, events, self.measured, _COUNTED)


class SeveralWinners(Case[R]):
    """A rule by which any number of labels may win; it is accounted for at `ORDERS`."""

    @abstractmethod
    def usual(self) -> Numbers:
        """Return the usual claim of a query's cost, by its noise alone, (orders,)."""

    def _usual_check(self) -> Numbers:
        """Return the usual claim of a check's cost, (orders,)."""
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


@dataclass(frozen=True, kw_only=True)
class Labels(SeveralWinners[LabelRule]):
    """A rule that decides each label separately; a neighbour's teacher reverses its whole ballot.

    Attributes:
        votes: One number: the votes of every label that moves.
        teachers: Number of teachers.
    """

    teachers: int

    @override
    def neighbours(self) -> Iterator[Sequence[Pair]]:
        moved, touched = _farthest_ballots(self.rule)
        (votes,) = self.votes
        here, there, still = (
            label_law(self.running, self.teachers, each) for each in (votes, votes + moved, 0.0)
        )
        pair = Pair(here, there, touched)
        yield [pair, Pair(still, still, _LABELS - touched)] if touched < _LABELS else [pair]

    @override
    def divergences(self, method: Method) -> Divergences:
        votes = np.zeros((1, _LABELS))
        votes[0, : _farthest_ballots(self.rule)[1]] = self.votes[0]
        return self.rule.divergences(votes, self.teachers, ORDERS, method)

    @override
    def usual(self) -> Numbers:
        change = multi_winner.gaussian_divergence(_ballot(self.rule), self.rule.sigma, ORDERS)
        if self.rule.check is not None and self.pays_check:
            change = change * (1 + (self.rule.sigma / self.rule.check.deviation) ** 2)
        return np.asarray(change)


class Sets(SeveralWinners[PowersetRule]):
    """A rule for sets of labels: one vote moves from a set to another; all pairs are tried.

    Attributes:
        votes: Votes of all sets, cast or not.
    """

    @override
    def neighbours(self) -> Iterator[Sequence[Pair]]:
        here = set_law(self.running, self.votes)
        return ([Pair(here, set_law(self.running, each))] for each in moved_votes(self.votes))

    @override
    def divergences(self, method: Method) -> Divergences:
        return self.rule.divergences(_cast(self.votes), ORDERS, method)

    @override
    def usual(self) -> Numbers:
        return np.asarray(ORDERS / self.rule.sigma**2 + self._usual_check())


@dataclass(frozen=True, kw_only=True)
class Thresholds(SeveralWinners[ThresholdRule]):
    """A rule for labels against a threshold.

    A replaced teacher moves votes either way; one that is left out only removes votes.

    Attributes:
        teachers: Number of teachers.
    """

    teachers: int

    @property
    def _changed(self) -> int:
        """Labels that a teacher changes."""
        return thresholds.changed_labels(self.rule.winners, len(self.votes), self.unit)

    @override
    def neighbours(self) -> Iterator[Sequence[Pair]]:
        here = limit_law(self.running, self.teachers, self.votes)
        for each in moved_labels(self.votes, self._changed):
            if self.unit is not Unit.PHONE or (np.array(each) <= self.votes).all():
                yield [Pair(here, limit_law(self.running, self.teachers, each))]

    @override
    def divergences(self, method: Method) -> Divergences:
        table = np.array([self.votes])
        return self.rule.divergences(table, self.teachers, ORDERS, method, self.unit)

    @override
    def usual(self) -> Numbers:
        claimed = thresholds.gaussian_divergence(self.rule.sigma, self._changed, ORDERS)
        return np.asarray(claimed + ORDERS * self.rule.choice_rho + self._usual_check())


def _most_telling(cases: Iterable[Case[R]]) -> Case[R]:
    """Return the case that measures the largest ε."""
    return max(cases, key=lambda each: each.measured.low)


def audit_curator(trials: int, seed: int) -> Iterator[Result]:
    """Audit rules for one winner: by noise alone, at the worst of some votes, and by their votes.

    Args:
        trials: Winners drawn of each rule.
        seed: Seed of the draws.
    """
    tables = ((14, 13, 13), (20, 20, 0), (26, 14, 0), (31, 5, 4), (40, 0, 0))
    rules: dict[str, OneWinnerRule] = {
        "LNMax, γ = 0.1": LNMaxRule(sigma=10.0),
        "GNMax, σ = 8": GNMaxRule(sigma=8.0),
        "Confident-GNMax, T = 25, σ₁ = 12, σ₂ = 8": ConfidentRule(
            sigma=8.0, threshold=25.0, check_sigma=12.0
        ),
        "Interactive-GNMax, T = 10, σ₁ = 12, σ₂ = 8": InteractiveRule(
            sigma=8.0, threshold=10.0, check_sigma=12.0, confidence=0.9
        ),
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
    teachers = 51
    half = teachers / 2
    both = (Method.INDEPENDENT, Method.EXACT)
    for name, rule in (
        ("binary votes", BinaryRule(sigma=5.0)),
        ("votes clipped to 1.8 in L2", TauRule(sigma=5.0, tau=1.8)),
        ("votes clipped to 3.4 in L1", TauRule(sigma=5.0, tau=3.4, norm=1)),
        ("binary votes with a check", BinaryRule(sigma=5.0, threshold=38.0, check_sigma=8.0)),
    ):
        # With a check, the worst votes are not in the middle: both check and answer reveal some.
        middle = half - _farthest_ballots(rule)[0] / 2
        votes = (middle,) if rule.check is None else (half + 2, half + 6, half + 12)
        words = f"{name}, {_LABELS} labels, {teachers} teachers, s = 5"
        cases = (Labels(words, rule, (each,), methods=both, teachers=teachers) for each in votes)
        yield from _most_telling(cases).findings()
    for cast, rule_of_sets in (
        ((9, 4, 1, 1), PowersetRule(sigma=2.0)),
        ((8, 7), PowersetRule(sigma=3.0)),
        ((15,), PowersetRule(sigma=4.0, threshold=12.0, check_sigma=6.0)),
    ):
        words = f"sets of 3 labels, cast {cast}, σ = {rule_of_sets.sigma:g}"
        words += " with a check" if rule_of_sets.check else ""
        counts = cast + (0,) * (2**3 - len(cast))
        yield from Sets(words, rule_of_sets, counts, methods=both).findings()
    binary = BinaryRule(sigma=7.0, threshold=26.0, check_sigma=6.0)
    yield drawn_labels("binary votes", binary, teachers, draws, seed)
    clipped = TauRule(sigma=7.0, tau=1.2, threshold=26.0, check_sigma=6.0)
    yield drawn_labels("clipped votes", clipped, teachers, draws, seed)
    counts = (5, 4, 2, 0, 0, 0, 0, 0)
    one, sets = _cast(counts), PowersetRule(sigma=2.5)
    many = SubsetVotes(
        np.tile(one.sets, (draws, 1)),
        np.tile(one.counts, draws),
        np.arange(draws) * len(one.counts),
    )
    law = dict(zip(answers_of(3), set_law(sets, counts).tolist(), strict=True))
    source = np.random.default_rng(seed).bytes
    yield _drawn("sets of labels: what the rule draws", sets.outcomes(many, source), law)


def audit_thresholds(draws: int, seed: int) -> Iterator[Result]:
    """Audit rules against thresholds: a curator's, and the noisy counts of a server's.

    Args:
        draws: Answers drawn of each rule.
        seed: Seed of the draws.
    """
    teachers = 50
    fixed, adaptive = GNThresholdRule(sigma=4.0, cut=20.5), AdaptiveRule(sigma=4.0)
    grid = GridRule(sigma=4.0, grid=(8.0, 20.0, 32.0, 44.0), scale=4.0)
    near, even, wide = (20.0, 21.0, 3.0), (30.0, 20.0, 10.0), (40.0, 22.0, 9.0)
    low, high = (_check(each) for each in (24.0, 30.0))
    checked, one = " with a check, v = 1", ", v = 1"
    first, widest, chosen = (
        "a fixed threshold", "the widest gap of noisy votes", "a threshold from a grid"
    )  # fmt: skip
    cases: tuple[tuple[str, ThresholdRule, Votes], ...] = (
        (first, fixed, near),
        (first + one, replace(fixed, winners=1), near),
        (first + checked, replace(fixed, winners=1, **low), near),
        (widest, adaptive, even),
        (widest, adaptive, wide),
        (widest + one, replace(adaptive, winners=1), even),
        (widest + checked, replace(adaptive, winners=1, **high), even),
        (chosen, grid, even),
        (chosen + one, replace(grid, winners=1), even),
        (chosen + checked, replace(grid, winners=1, **high), even),
    )
    for (words, rule, votes), unit in itertools.product(cases, UNITS):
        if rule.winners is None and unit is Unit.PHONE:
            continue  # all labels may change either way
        methods = (Method.INDEPENDENT, *([Method.EXACT] if rule.exact else []))
        said = f"{words}, votes {', '.join(f'{vote:g}' for vote in votes)}, σ = 4"
        yield from Thresholds(said, rule, votes, unit, methods, teachers=teachers).findings()
    yield from _servers()
    agreement = _check(26.0)
    limits: tuple[tuple[str, ThresholdRule], ...] = (
        (first, GNThresholdRule(sigma=4.0, cut=22.0, **agreement)),
        (widest, replace(adaptive, **agreement)),
        (chosen, replace(grid, grid=(8.0, 20.0, 32.0), **agreement)),
    )
    for words, limit in limits:
        law, answers = limit_law(limit, teachers, _DRAWN), limit.answers(len(_DRAWN))
        # Thresholds of a grid are not published.
        chances = law[:-1].reshape(-1, len(answers)).sum(axis=0)
        expected = dict(zip(answers, chances.tolist(), strict=True)) | {(-1, -1, -1): law[-1]}
        source = np.random.default_rng(seed).bytes
        found = limit.outcomes(np.tile(_DRAWN, (draws, 1)), teachers, source)
        yield _drawn(f"{words}: what the rule draws", found, expected)


def _check(threshold: float) -> dict[str, Any]:
    """Return the options of a check."""
    return {"threshold": threshold, "check_sigma": 6.0}


def _servers() -> Iterator[Finding]:
    """Audit noisy counts, which bound all that is computed from them: thresholds, checks.

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


def winner_law(rule: OneWinnerRule, votes: Votes) -> Numbers:
    """Return the probability that each class wins, and of no answer if there is a check."""
    table = np.array([votes], dtype=np.float64)
    if rule.check is None:
        return rule.law(table[0])
    agreement = rule.agreement(table, _SCORES if rule.takes_scores else None)[0]
    return with_check(rule.law(table[0]), agreement, rule.check)


def label_law(rule: LabelRule, teachers: int, votes: float) -> Numbers:
    """Return the probability that a label wins, loses, or (with a check) has no answer."""
    from scipy.stats import norm

    win = float(norm.cdf((votes - teachers / 2) / rule.sigma))
    return with_check(np.array([win, 1 - win]), max(votes, teachers - votes), rule.check)


def set_law(rule: PowersetRule, votes: Votes) -> Numbers:
    """Return the probability that each set of labels wins, by the quadrature for one winner."""
    law: Numbers = np.exp(log_winning(np.array(votes), rule.sigma))
    return with_check(law, max(votes), rule.check)


def limit_law(rule: ThresholdRule, teachers: int, votes: Votes) -> Numbers:
    """Return the probability of each outcome, jointly with the threshold chosen from a grid."""
    return with_check(rule.law(np.array(votes), teachers), max(votes), rule.check)


def drawn_winners(
    name: str, rule: OneWinnerRule, trials: int, seed: int, runs: OneWinnerRule | None = None
) -> Check:
    """Check that drawn winners follow the law of the rule.

    Args:
        name: Description of the rule.
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
    scores = np.tile(_SCORES, (trials, 1)) if rule.takes_scores else None
    source = np.random.default_rng(seed).bytes
    found = (runs or rule).outcomes(np.tile(votes, (trials, 1)), source, scores)
    return _drawn(f"{name}: who wins", found, law)


def drawn_labels(
    name: str,
    rule: LabelRule,
    teachers: int,
    draws: int,
    seed: int,
    runs: LabelRule | None = None,
) -> Check:
    """Check that draws of a rule for labels follow the joint law of all labels.

    Args:
        name: Description of the rule.
        rule: Rule that is accounted for.
        teachers: Number of teachers.
        draws: Answers drawn.
        seed: Seed of the draws.
        runs: Rule that runs, if not the same.
    """
    laws = [dict(zip((1, 0, -1), label_law(rule, teachers, each), strict=False)) for each in _DRAWN]
    expected = {
        answer: math.prod(float(law[each]) for law, each in zip(laws, answer, strict=True))
        for answer in itertools.product(*laws)
    }
    source = np.random.default_rng(seed).bytes
    found = (runs or rule).outcomes(np.tile(_DRAWN, (draws, 1)), teachers, source)
    return _drawn(f"{name}: what the rule draws", found, expected)


def _drawn(case: str, found: Whole, law: OutcomeLaw) -> Check:
    """Check outcomes that a rule drew, one for each row."""
    drawn = Counter(tuple(row) for row in found.reshape(len(found), -1).tolist())
    return law_check(case, drawn, law)


def _ballot(rule: LabelRule) -> Ballot:
    """Return a teacher's ballot; it does not depend on how many teachers there are."""
    return rule.ballot(PollForm(_LABELS, 1))


def _farthest_ballots(rule: LabelRule) -> tuple[float, int]:
    """Return by how much each label moves, and how many do, for the worst disjoint ballots."""
    rows = np.tril(np.ones((_LABELS, _LABELS), dtype=np.int64))
    ballot = _ballot(rule)
    entries = ballot.cast(rows).max(axis=1) / ballot.vote
    sizes = np.arange(1, _LABELS + 1)
    best = int(np.argmax(np.where(2 * sizes <= _LABELS, sizes * entries**2, 0)))
    return float(entries[best]), 2 * int(sizes[best])


def _cast(counts: Votes) -> SubsetVotes:
    """Return the votes of one query; a set's place in `counts` has its labels as binary digits."""
    places = [place for place, count in enumerate(counts) if count]
    width = len(counts).bit_length() - 1
    rows = [[place >> (width - 1 - bit) & 1 for bit in range(width)] for place in places]
    table = np.array([counts[place] for place in places], dtype=np.int64)
    return SubsetVotes(np.array(rows, dtype=np.int8), table, np.zeros(1, dtype=np.int64))
