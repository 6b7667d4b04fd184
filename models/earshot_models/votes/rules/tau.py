"""τ voting: labels that win with ballots clipped to a length."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.electorate import PollForm
from earshot_models.votes.label_ballots import Clipped
from earshot_models.votes.rules.label_votes import LabelRule, Majorities, Votes, of_all
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.overriding import override


@dataclass(frozen=True)
class ClippedVoting(Majorities):
    """Voting with ballots clipped to length τ before they count, else as `BinaryVoting` (τ voting).

    v = b · min(1, τ/‖b‖), in L2 (Dziedzic et al., PoPETs 2023, Definition 7) or, for comparison, in
    L1 (Zhu et al., CVPR 2020). Votes are multiples of 2^-10, see `label_ballots.Clipped`. A label
    must still have half of all teachers: of unanimous ballots of 4τ² ones none wins.

    Attributes:
        teachers: Number of teachers, n, public.
        tau: Length to which ballots are clipped, τ; from √k on in L2, k in L1, nothing is clipped,
            which is `BinaryVoting`.
        norm: Norm used to clip ballots: 1 or 2.
        deviation: Standard deviation of the noise, s, in votes.
        check: Check of every label by itself, on max{V, n − V}; None for none.

    Raises:
        InvalidParametersError: There are no teachers, τ is not positive, the norm is another, or s
            is not positive and finite.
    """

    teachers: int
    tau: float
    norm: int
    deviation: float
    check: ConfidentCheck | None = None

    def __post_init__(self) -> None:
        checks.whole("teachers", self.teachers)
        checks.positive("tau", self.tau)
        checks.positive("deviation", self.deviation)
        if self.norm not in (1, 2):
            raise InvalidParametersError(f"norm={self.norm}: must be 1 or 2")

    @override
    def ballot(self, labels: int) -> Clipped:
        """Return the ballot that one teacher casts on one query.

        Raises:
            InvalidParametersError: The length τ clips nothing with this many labels; the message
                says what does.
        """
        free = labels if self.norm == 1 else math.sqrt(labels)
        if self.tau >= free:
            raise InvalidParametersError(
                f"tau={self.tau}: with {labels} labels this clips nothing, which is BinaryVoting; "
                f"must be below {free:.6g}"
            )
        return Clipped(labels, self.tau, self.norm)

    @override
    def votes(self, predictions: npt.NDArray[np.integer]) -> Votes:
        table = of_all(predictions, self.teachers)
        ballot = self.ballot(table.shape[2])
        # Teacher by teacher, so that ballots of 64 bits are never held all at once.
        total = sum(ballot.cast(each) for each in table)
        return np.asarray(total / ballot.vote)


@dataclass(frozen=True, kw_only=True)
class TauRule(LabelRule):
    """Answer with labels as binary does, with ballots clipped to a length.

    Attributes:
        tau: Length of a clipped ballot (τ).
        norm: Norm used to clip ballots: 1 or 2.
    """

    tau: float
    norm: int = 2

    name: ClassVar[str] = "tau"

    @property
    @override
    def needs_ballots(self) -> bool:
        return True

    @override
    def ballot(self, poll: PollForm) -> Clipped:
        return Clipped(poll.classes, self.tau, self.norm)

    @override
    def voting(self, poll: PollForm) -> ClippedVoting:
        return ClippedVoting(poll.teachers, self.tau, self.norm, self.sigma, self.check)
