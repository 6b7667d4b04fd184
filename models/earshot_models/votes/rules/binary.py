"""Binary voting: every label that more than half of the teachers find."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import Check
from earshot_models.votes.electorate import Poll
from earshot_models.votes.label_ballots import Approval
from earshot_models.votes.rules.label_votes import (
    LabelRule,
    Outcomes,
    Votes,
    majorities,
    of_all,
)
from earshot_protocol import checks
from earshot_protocol.overriding import override
from earshot_protocol.randomness import RandomBytes


@dataclass(frozen=True)
class BinaryVoting:
    """Voting in which every label found by more than half of the teachers wins: V + N(0, s²) > n/2.

    Each label is decided by itself (Dziedzic et al., PoPETs 2023, Definition 4), with the noise on
    the positive votes.

    Attributes:
        teachers: Number of teachers, n, public.
        deviation: Standard deviation of the noise, s, in votes.
        check: Check of every label by itself, on max{V, n − V} (their Algorithm 1); None for none.

    Raises:
        InvalidParametersError: There are no teachers, or s is not positive and finite.
    """

    teachers: int
    deviation: float
    check: Check | None = None

    def __post_init__(self) -> None:
        checks.whole("teachers", self.teachers)
        checks.positive("deviation", self.deviation)

    def ballot(self, labels: int) -> Approval:
        """Return the ballot that one teacher casts on one query."""
        return Approval(labels)

    def votes(self, predictions: npt.NDArray[np.integer]) -> Votes:
        """Return the votes that each label gets.

        Args:
            predictions: Zeros and ones, (teachers, queries, labels).

        Returns:
            float64 (queries, labels).

        Raises:
            InvalidInputError: There are other numbers, another shape, or not all teachers.
        """
        table = of_all(predictions, self.teachers)
        return np.asarray(table.sum(axis=0), dtype=np.float64)

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Outcomes:
        """Return which labels win.

        Args:
            votes: Votes of the labels, (queries, labels), each from 0 to the number of teachers.
            random: Source of bytes; a seeded one belongs in simulations only.

        Returns:
            int64 (queries, labels): 1 or 0, or `NONE` for a label that did not pass the check.

        Raises:
            InvalidInputError: Votes are out of range or not numbers, or not a table.
        """
        return majorities(self, votes, random)


@dataclass(frozen=True, kw_only=True)
class BinaryRule(LabelRule):
    """Answer with every label that more than half of the teachers find."""

    name: ClassVar[str] = "binary"

    @override
    def ballot(self, poll: Poll) -> Approval:
        return Approval(poll.classes)

    @override
    def voting(self, poll: Poll) -> BinaryVoting:
        return BinaryVoting(poll.teachers, self.sigma, self.check)
