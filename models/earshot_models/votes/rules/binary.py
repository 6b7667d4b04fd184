"""Binary voting: every label that more than half of the teachers find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.electorate import PollForm
from earshot_models.votes.label_ballots import Approval
from earshot_models.votes.rules.label_votes import LabelRule, Majorities, Votes, of_all
from earshot_protocol import checks
from earshot_protocol.overriding import override


@dataclass(frozen=True)
class BinaryVoting(Majorities):
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
    check: ConfidentCheck | None = None

    def __post_init__(self) -> None:
        checks.whole("teachers", self.teachers)
        checks.positive("deviation", self.deviation)

    @override
    def ballot(self, labels: int) -> Approval:
        return Approval(labels)

    @override
    def votes(self, predictions: npt.NDArray[np.integer]) -> Votes:
        table = of_all(predictions, self.teachers)
        return np.asarray(table.sum(axis=0), dtype=np.float64)


@dataclass(frozen=True, kw_only=True)
class BinaryRule(LabelRule):
    """Answer with every label that more than half of the teachers find."""

    name: ClassVar[str] = "binary"

    @override
    def ballot(self, poll: PollForm) -> Approval:
        return Approval(poll.classes)

    @override
    def voting(self, poll: PollForm) -> BinaryVoting:
        return BinaryVoting(poll.teachers, self.sigma, self.check)
