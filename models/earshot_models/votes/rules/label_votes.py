"""Labels that win a vote of teachers with several winners, by noise that a curator adds.

The curator holds the votes, and nothing but winners is published. Every rule has the noise on the
votes that a label gets and compares them with half of the teachers, whose number is public. The
published rule (Dziedzic et al., PoPETs 2023, Definitions 4 and 7 and Algorithm 1) compares noisy
votes for a label with the votes that are not for it, which are exactly the number of teachers less
the former: that doubles the distance and halves the noise. The cost of the rules here is computed
in `votes.costs.multi_winner`.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.counts import checked_label_votes
from earshot_models.votes.electorate import Electorate, PollForm
from earshot_models.votes.label_ballots import Approval
from earshot_models.votes.rules.rule import CheckedRule, Numbers, Passing
from earshot_models.votes.subsets import checked_predictions
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.overriding import override
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE, Ballot, Whole

Votes = npt.NDArray[np.float64]
Outcomes = npt.NDArray[np.int64]


class Majorities(Protocol):
    """Answers of a curator's vote in which each label is decided by itself."""

    def ballot(self, labels: int) -> Ballot:
        """Return the ballot that one teacher casts on one query.

        Raises:
            InvalidParametersError: There is no such ballot on this many labels.
        """

    def votes(self, predictions: npt.NDArray[np.integer]) -> Votes:
        """Return the votes that each label gets.

        Args:
            predictions: Zeros and ones, (teachers, queries, labels).

        Returns:
            float64 (queries, labels).

        Raises:
            InvalidInputError: There are other numbers, another shape, or not all teachers.
        """

    def winners(
        self: SeparateLabels, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom
    ) -> Outcomes:
        """Return which labels win.

        Args:
            votes: Votes of the labels, (queries, labels), each from 0 to the number of teachers.
            random: Source of bytes; a seeded one belongs in simulations only.

        Returns:
            int64 (queries, labels): 1 or 0, or `NONE` for a label that did not pass the check.

        Raises:
            InvalidInputError: Votes are out of range or not numbers, or not a table.
        """
        table = checked_label_votes(votes, self.teachers)
        noisy = noisy_counts.with_normal(table, self.deviation, random)
        found = (noisy > self.teachers / 2).astype(np.int64)
        if self.check is not None:
            found[~self.check.passing(label_agreement(table, self.teachers), random)] = NONE
        return found


class SeparateLabels(Majorities, Protocol):
    """A curator's vote in which each label is decided by itself."""

    @property
    def teachers(self) -> int:
        """Number of teachers, n, public."""

    @property
    def deviation(self) -> float:
        """Standard deviation of the noise, s, in votes."""

    @property
    def check(self) -> ConfidentCheck | None:
        """Check of every label by itself; None for none."""


@dataclass(frozen=True, kw_only=True)
class LabelRule(CheckedRule):
    """A rule by which each label is decided by itself."""

    several: ClassVar[bool] = True
    between_classes: ClassVar[bool] = False

    @override
    def check_ballot(self, poll: PollForm) -> Approval:
        return Approval(poll.classes)

    @abstractmethod
    def voting(self, poll: PollForm) -> SeparateLabels:
        """Return the curator's vote."""

    @override
    def decide(
        self, asked: Electorate, weights: Whole, scores: Numbers | None, random: RandomBytes
    ) -> tuple[Whole, Passing]:
        voting = self.voting(asked.poll)
        found = voting.winners(voting.votes(asked.predictions), random)
        return found, (found != NONE).any(axis=1)

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


def of_all(predictions: npt.NDArray[np.integer], teachers: int) -> npt.NDArray[np.int8]:
    """Return predictions, if they are those of all teachers."""
    table = checked_predictions(predictions)
    if len(table) != teachers:
        raise InvalidInputError(
            f"predictions of {len(table)} teachers: must be those of all {teachers}, with zeros "
            "from one that abstains"
        )
    return table
