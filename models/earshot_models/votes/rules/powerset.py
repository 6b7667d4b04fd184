"""Powerset voting: the label set with the most votes."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs.costs import Divergences, Method
from earshot_models.votes.costs.dependent import dependent_divergence
from earshot_models.votes.costs.multi_winner import number_divergences
from earshot_models.votes.costs.outcomes import checked_orders
from earshot_models.votes.costs.powerset import log_other_set, set_divergence
from earshot_models.votes.electorate import Electorate, PollForm
from earshot_models.votes.label_ballots import Subset
from earshot_models.votes.rules.label_votes import Outcomes
from earshot_models.votes.rules.rule import CheckedRule, Passing, Times, VoteKind
from earshot_models.votes.subsets import SubsetVotes, subset_votes
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers, Whole
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.overriding import override
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.privacy.events import Event, Pure
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE, Agreement, Ballot, OneHot

_CERTAIN = math.log(89.0)
MOST_SET_LABELS = 512
"""Most labels with a curator, who draws from all 2^512 sets."""


@dataclass(frozen=True, kw_only=True)
class PowersetRule(CheckedRule):
    """Answer with the label set that has the most votes.

    argmax over all 2^k sets of count + N(0, σ²) (Dziedzic et al., PoPETs 2023, Definition 8).
    Contrary to their remark, a set without votes can win: otherwise an answer would prove that its
    set was cast. Noise of the M sets without votes is not drawn one by one: a coin decides whether
    the largest of M draws exceeds all other counts, and then one of these sets is drawn uniformly.
    The coin's odds are computed to a tenth of `noisy_counts.ODDS`. A check is of the largest count.

    Attributes:
        winners: Most labels of a set (v), with a federated tally; all by default.
    """

    winners: int | None = None

    name: ClassVar[str] = "powerset"
    several: ClassVar[bool] = True

    @property
    @override
    def needs_ballots(self) -> bool:
        return True

    @override
    def check_poll(self, poll: PollForm) -> None:
        checks.whole("classes", poll.classes)
        check_winners(self.winners, poll.classes)

    @override
    def check_curator(self, poll: PollForm, weighed: bool) -> None:
        super().check_curator(poll, weighed)
        if self.winners is not None:
            raise InvalidParametersError(
                "winners: a curator counts all sets of labels; leave it out, or take a federated "
                "tally"
            )
        checks.whole("labels", poll.classes, 1, MOST_SET_LABELS)

    @override
    def ballot(self, poll: PollForm) -> Subset:
        return Subset(poll.classes, self.winners)

    @override
    def check_ballot(self, poll: PollForm) -> Agreement:
        return Agreement()

    @override
    def decide(
        self, asked: Electorate, weights: Whole, scores: Numbers | None, random: RandomBytes
    ) -> tuple[Whole, Passing]:
        found = self.outcomes(subset_votes(asked.predictions), random)
        return found, (found != NONE).any(axis=1)

    def outcomes(self, votes: SubsetVotes, random: RandomBytes = os.urandom) -> Outcomes:
        """Return the labels of the sets that win.

        Args:
            votes: Votes for sets of at most `MOST_SET_LABELS` labels.
            random: Source of bytes; a seeded one belongs in simulations only.

        Returns:
            int64 (queries, labels): 1 or 0, or `NONE` for all labels of a query that did not pass
            the check.
        """
        noisy = noisy_counts.with_normal(votes.counts, self.sigma, random)
        best = np.maximum.reduceat(noisy, votes.starts)
        # The first set of each query that has the largest noisy count.
        leading = np.flatnonzero(noisy == best[votes.query])
        first = leading[np.unique(votes.query[leading], return_index=True)[1]]
        found = votes.sets[first].astype(np.int64)
        pairs = zip((best / self.sigma).tolist(), votes.log_uncast.tolist(), strict=True)
        for query, (bar, log_count) in enumerate(pairs):
            if noisy_counts.coin(*_any_beyond(bar, log_count), random):
                found[query] = _uncast(votes, query, random)
        if self.check is not None:
            found[~self.check.passing(votes.most, random)] = NONE
        return found

    def divergences(
        self,
        votes: SubsetVotes,
        orders: npt.ArrayLike,
        method: Method,
        unit: Unit = Unit.REPLACED_PHONE,
    ) -> Divergences:
        """Return the cost of each query: of its check, and of its answer if there is one.

        By noise alone, an answer costs λ/σ² for a moved vote, and λ/2σ² for one that is added or
        removed; dependent on votes, Theorem 6 for all 2^k sets; exactly, by their distribution. A
        check costs at most λ/2σ₁².

        Args:
            votes: Votes for sets.
            orders: Orders λ, each above 1.
            method: Method of working out the divergences.
            unit: Unit in which neighbours differ.

        Returns:
            Divergences `asked` and `answered`, each (queries, orders); zeros asked without a check.

        Raises:
            InvalidParametersError: An order is 1 or less.
        """
        chosen = checked_orders(orders)
        asked = np.zeros((len(votes.starts), len(chosen)))
        if self.check is not None:
            limit, deviation = self.check.threshold, self.check.deviation
            asked = number_divergences(votes.most, limit, deviation, chosen, method)
        # This is σ/Δ of Theorem 6, whose λ/σ² is for two counts that change by one each.
        ratio = self.sigma * (math.sqrt(2.0) if unit is Unit.PHONE else 1.0)
        answer: Numbers
        match method:
            case Method.INDEPENDENT:
                answer = np.broadcast_to(chosen / ratio**2, asked.shape)
            case Method.DEPENDENT:
                answer = dependent_divergence(log_other_set(votes, self.sigma), ratio, chosen)
            case Method.EXACT:
                answer = set_divergence(votes, self.sigma, chosen, unit)
        return Divergences(asked, answer)

    @override
    def read(self, poll: PollForm, totals: Whole, voters: float, teachers: float) -> Whole:
        sets: Whole = self.ballot(poll).sets()[totals.argmax(axis=1)]
        return sets

    @override
    def agreeing(self, poll: PollForm, answers: Whole, proposed: Whole) -> Whole:
        return np.asarray((answers == proposed).all(axis=-1))

    @override
    def _counted(self, poll: PollForm) -> Ballot:
        # One vote for a set has the sensitivity of one for a class, for any number of sets.
        return OneHot(2)

    @override
    def curator_events(
        self, poll: PollForm, times: Times, unit: Unit, weight: int
    ) -> tuple[Event, ...]:
        events = super().curator_events(poll, times, unit, weight)
        if times[VoteKind.VOTES]:  # the coin of sets without votes
            events += (Pure(2 * noisy_counts.ODDS, times[VoteKind.VOTES]),)
        return events

    @override
    def least_agreement(self, poll: PollForm, voters: float) -> float:
        return 1.0  # each teacher may cast a different set


def check_winners(winners: int | None, labels: int) -> None:
    """Check the number of labels that count.

    Raises:
        InvalidParametersError: There are not that many labels.
    """
    if winners is not None and not 1 <= winners <= labels:
        raise InvalidParametersError(
            f"winners={winners}: must be from 1 to the {labels} labels there are"
        )


def _uncast(votes: SubsetVotes, query: int, random: RandomBytes) -> Outcomes:
    """Draw one of the sets without votes, uniformly; there is at least one."""
    start = int(votes.starts[query])
    cast = {each.tobytes() for each in votes.sets[start : start + int(votes.cast[query])]}
    size = -(-votes.labels // 8)
    while True:  # there are no more cast sets than teachers, so this takes few draws
        drawn = np.frombuffer(random(size), dtype=np.uint8)
        members = np.unpackbits(drawn, count=votes.labels).astype(np.int8)
        if members.tobytes() not in cast:
            return members.astype(np.int64)


def _any_beyond(bar: float, log_count: float) -> tuple[float, float]:
    """Return the probabilities that the largest of M normal draws is above a bar, and is not.

    1 − Φ(bar)^M and Φ(bar)^M, the bar in deviations. The error function is exact to some units in
    the last place, ln M is at most 355, and M·ln Φ at most 89 before a probability underflows the
    coin: so both have an error below 10^-11.
    """
    beyond = math.erfc(abs(bar) / math.sqrt(2)) / 2
    missing = -math.log1p(-beyond) if bar > 0 else -math.log(beyond) if beyond else math.inf
    if not missing or log_count == -math.inf:
        return 0.0, 1.0
    exponent = log_count + math.log(missing)
    lacking = math.exp(exponent) if exponent < _CERTAIN else math.inf
    return -math.expm1(-lacking), math.exp(-lacking)
