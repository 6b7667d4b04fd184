"""Rules by which any number of labels wins, each decided separately.

A curator holds the votes and publishes winners alone. Every rule adds noise to the votes for a
label and compares them with half of the number of teachers, which is public. The published rule
(Dziedzic et al., PoPETs 2023, Definitions 4 and 7 and Algorithm 1) compares noisy votes for a label
with the votes that are not for it, which are exactly the number of teachers less the former: that
doubles the distance and halves the noise.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs.costs import Divergences, Method
from earshot_models.votes.costs.multi_winner import LabelChange
from earshot_models.votes.costs.outcomes import checked_orders
from earshot_models.votes.counts import checked_label_votes
from earshot_models.votes.electorate import Electorate, PollForm
from earshot_models.votes.label_ballots import Approval
from earshot_models.votes.rules.rule import CheckedRule, Passing
from earshot_protocol.arrays import Numbers, Whole
from earshot_protocol.overriding import override
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE

Votes = npt.NDArray[np.float64]
Outcomes = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class LabelRule(CheckedRule):
    """A rule by which each label is decided separately."""

    several: ClassVar[bool] = True
    between_classes: ClassVar[bool] = False

    @override
    def check_ballot(self, poll: PollForm) -> Approval:
        return Approval(poll.classes)

    @override
    def decide(
        self, asked: Electorate, weights: Whole, scores: Numbers | None, random: RandomBytes
    ) -> tuple[Whole, Passing]:
        found = self.outcomes(self.votes(asked.predictions), asked.teachers, random)
        return found, (found != NONE).any(axis=1)

    @abstractmethod
    def votes(self, predictions: npt.NDArray[np.integer]) -> Votes:
        """Return the votes that each label gets, float64 (queries, labels).

        Args:
            predictions: Zeros and ones, (teachers, queries, labels), zeros where one abstains.

        Raises:
            InvalidInputError: There are other numbers, or another shape.
        """

    def outcomes(
        self, votes: npt.NDArray[np.number], teachers: int, random: RandomBytes = os.urandom
    ) -> Outcomes:
        """Return which labels win.

        Args:
            votes: Votes of the labels, (queries, labels), each from 0 to the number of teachers.
            teachers: Number of teachers, n, public.
            random: Source of bytes; a seeded one belongs in simulations only.

        Returns:
            int64 (queries, labels): 1 or 0, or `NONE` for a label that did not pass the check.

        Raises:
            InvalidInputError: Votes are out of range or not numbers, or not a table.
        """
        table = checked_label_votes(votes, teachers)
        noisy = noisy_counts.with_normal(table, self.sigma, random)
        found = (noisy > teachers / 2).astype(np.int64)
        if self.check is not None:
            found[~self.check.passing(label_agreement(table, teachers), random)] = NONE
        return found

    def divergences(
        self,
        votes: npt.NDArray[np.number],
        teachers: int,
        orders: npt.ArrayLike,
        method: Method,
        unit: Unit = Unit.REPLACED_PHONE,
        answered: npt.NDArray[np.bool_] | None = None,
    ) -> Divergences:
        """Return the cost of each query: of its check, and of the answers given.

        Independent of votes, noise of deviation σ on counts that one ballot moves by Δ in L2 costs
        λΔ²/2σ² (`multi_winner.gaussian_divergence`), and bits alone cost less
        (`bits.bit_divergence`). Dependent on votes, bounds are added up over labels (Theorem 6 of
        Papernot et al., ICLR 2018), and the smaller of both is taken, order by order.

        Args:
            votes: Votes for labels, (queries, labels), as `outcomes` takes them.
            teachers: Number of teachers, n.
            orders: Orders λ, each above 1.
            method: Method of working out the divergences.
            unit: Unit in which neighbours differ.
            answered: Labels that passed the check, bool (queries, labels); all by default.

        Returns:
            Divergences `asked` and `answered`, each (queries, orders); zeros asked without a check.

        Raises:
            InvalidInputError: Votes are out of range.
            InvalidParametersError: An order is 1 or less, or there is no such ballot on this many
                labels.
        """
        table, chosen = checked_label_votes(votes, teachers), checked_orders(orders)
        change = LabelChange(self.ballot(PollForm(table.shape[1], teachers)), unit)
        everything = np.ones(table.shape, dtype=np.bool_)
        asked = np.zeros((len(table), len(chosen)))
        if self.check is not None:
            limit, deviation = self.check.threshold, self.check.deviation
            agreement = label_agreement(table, teachers)
            asked = change.cost(agreement, limit, deviation, chosen, method, everything)
        passed = everything if answered is None else answered
        paid = change.cost(table, teachers / 2, self.sigma, chosen, method, passed)
        return Divergences(asked, paid)

    @override
    def read(self, poll: PollForm, totals: Whole, voters: float, teachers: float) -> Whole:
        votes = totals.astype(np.float64) / self.ballot(poll).vote
        return (votes > voters / 2).astype(np.int64)

    @override
    def least_agreement(self, poll: PollForm, voters: float) -> float:
        return voters / 2


def label_agreement(votes: Votes, teachers: int) -> Votes:
    """Return max{V, n − V}, for a check of labels: one vote changes it by one at most."""
    return np.maximum(votes, teachers - votes)
