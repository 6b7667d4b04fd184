"""Rules by which one class wins a vote of teachers, or none.

A curator holds the votes and publishes winners alone, neither noisy counts nor margins; the costs
are in `earshot_models.votes.costs`. Noise is independent for every query, for every class, and for
a check and its answer.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs import costs, dependent
from earshot_models.votes.costs.costs import Divergences, Method
from earshot_models.votes.counts import checked_votes, vote_counts
from earshot_models.votes.electorate import Electorate, PollForm
from earshot_models.votes.rules.rule import Passing, VotingRule
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers, Whole
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.overriding import override
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE, Agreement, OneHot

Winners = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class OneWinnerRule(VotingRule):
    """A rule by which one class wins."""

    @override
    def ballot(self, poll: PollForm) -> OneHot:
        return OneHot(poll.classes)

    @override
    def check_ballot(self, poll: PollForm) -> Agreement:
        return Agreement()

    @override
    def read(self, poll: PollForm, totals: Whole, voters: float, teachers: float) -> Whole:
        return np.asarray(totals.argmax(axis=1))

    @override
    def least_agreement(self, poll: PollForm, voters: float) -> float:
        return voters / poll.classes

    @override
    def decide(
        self, asked: Electorate, weights: Whole, scores: Numbers | None, random: RandomBytes
    ) -> tuple[Whole, Passing]:
        votes = vote_counts(asked.predictions, weights, asked.classes)
        return self.answers(checked_votes(votes), random, scores)

    def answers(
        self,
        votes: Numbers,
        random: RandomBytes = os.urandom,
        scores: npt.NDArray[np.number] | None = None,
    ) -> tuple[Winners, Passing]:
        """Return one class for every query, and whether the teachers' answer was paid for.

        Args:
            votes: Votes of each class, (queries, classes), as `counts.checked_votes` returns them.
            random: Source of bytes; a seeded one belongs in simulations only.
            scores: Probability of each class by a student, if the rule takes them.

        Returns:
            Classes, `NONE` where teachers do not agree, int64 (queries,); and bool (queries,).
        """
        found, passing = self.unasked(votes, scores), np.ones(len(votes), dtype=np.bool_)
        if self.check is not None:
            passing = self.check.passing(self.agreement(votes, scores), random)
        found[passing] = self.drawn(votes[passing], random)
        return found, passing

    def outcomes(
        self,
        votes: npt.NDArray[np.number],
        random: RandomBytes = os.urandom,
        scores: npt.NDArray[np.number] | None = None,
    ) -> Winners:
        """Return the classes of `answers`.

        Args:
            votes: Votes of each class, (queries, classes); weighted votes need not be whole.
            random: Source of bytes; a seeded one belongs in simulations only.
            scores: Probability of each class by a student, if the rule takes them.

        Raises:
            InvalidInputError: The votes are invalid (see `counts.checked_votes`).
        """
        return self.answers(checked_votes(votes), random, scores)[0]

    def agreement(self, votes: Numbers, scores: npt.NDArray[np.number] | None = None) -> Numbers:
        """Return the input of the check, (queries,): the votes of the leading class."""
        most: Numbers = votes.max(axis=1)
        return most

    def unasked(self, votes: Numbers, scores: npt.NDArray[np.number] | None) -> Winners:
        """Return the answers of queries that do not pass the check, (queries,)."""
        return np.full(len(votes), NONE, dtype=np.int64)

    @abstractmethod
    def drawn(self, votes: Numbers, random: RandomBytes) -> Winners:
        """Return the class with the largest noisy count of every query, (queries,)."""

    @abstractmethod
    def law(self, votes: Numbers) -> Numbers:
        """Return the probability that each class wins where there is an answer, (classes,)."""

    @abstractmethod
    def answer_divergences(
        self, votes: Numbers, orders: Numbers, method: Method, weight: float
    ) -> Numbers:
        """Return the cost of answers for the owner of a vote of this weight, (queries, orders)."""

    def divergences(
        self,
        votes: npt.NDArray[np.number],
        orders: npt.ArrayLike,
        method: Method = Method.INDEPENDENT,
        weight: float = 1.0,
        *,
        scores: npt.NDArray[np.number] | None = None,
        voted: npt.NDArray[np.bool_] | None = None,
    ) -> Divergences:
        """Return the cost of each query for the owner of a vote of this weight.

        Args:
            votes: Votes for each class, weights included, (queries, classes).
            orders: Orders λ, each above 1.
            method: Method of working out the divergences.
            weight: Weight of the vote that neighbours move.
            scores: Scores of the student, (queries, classes), if the rule takes them.
            voted: Queries that the teachers answered, bool (queries,); answers to others cost
                nothing. None for all.

        Raises:
            InvalidParametersError: There are no votes, a weight or an order is out of range, scores
                are missing or not used by the rule, or the method is not available for this noise.
        """
        table = dependent.checked_votes(votes)
        if (table < 0).any():
            raise InvalidParametersError("votes: must not be negative")
        chosen = np.atleast_1d(np.asarray(orders, dtype=np.float64))
        moved = checks.positive("weight", weight)
        answers = np.ones(len(table), dtype=bool) if voted is None else np.asarray(voted)
        if answers.shape != (len(table),) or answers.dtype != np.bool_:
            raise InvalidParametersError("voted: must be true or false for every query")
        if (scores is not None) != self.takes_scores:
            raise InvalidParametersError(
                "scores: must be given if, and only if, a student takes part"
            )
        asked = np.zeros((len(table), len(chosen)))
        if self.check is not None:
            agreement = self.agreement(table, scores)
            asked = costs.check_divergences(self.check, agreement, chosen, method, moved)
        answered = np.zeros((len(table), len(chosen)))
        if answers.any():
            answered[answers] = self.answer_divergences(table[answers], chosen, method, moved)
        return Divergences(asked, answered)

    def spent_epsilon(
        self,
        votes: npt.NDArray[np.number],
        voted: npt.NDArray[np.bool_],
        delta: float,
        method: Method = Method.INDEPENDENT,
        *,
        classic: bool = False,
    ) -> tuple[float, float]:
        """Return ε of all checks and answers, and the best order.

        Args:
            votes: Votes of every query that was asked, (queries, classes).
            voted: Queries that the teachers answered, bool (queries,).
            delta: Value of δ at which ε is stated.
            method: Method of working out the divergences.
            classic: Whether to use the older conversion (see `costs.epsilons`).

        Raises:
            InvalidParametersError: An argument is one that `divergences` or `costs.epsilons`
                refuses.
        """

        def curve(orders: Numbers) -> Numbers:
            each = self.divergences(votes, orders, method, voted=voted)
            total: Numbers = (each.asked + each.answered).sum(axis=0)
            return total

        return costs.best_epsilon(curve, delta, classic=classic)
