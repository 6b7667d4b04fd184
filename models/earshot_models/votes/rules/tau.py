"""τ voting: labels that win with ballots clipped to a length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.electorate import PollForm
from earshot_models.votes.label_ballots import Clipped
from earshot_models.votes.rules.label_votes import LabelRule, Votes
from earshot_models.votes.subsets import checked_predictions
from earshot_protocol.overriding import override


@dataclass(frozen=True, kw_only=True)
class TauRule(LabelRule):
    """Answer with labels as binary does, with ballots clipped to a length.

    v = b · min(1, τ/‖b‖), in L2 (Dziedzic et al., PoPETs 2023, Definition 7) or, for comparison, in
    L1 (Zhu et al., CVPR 2020). Votes are multiples of 2^-10, see `label_ballots.Clipped`. A label
    still needs more than half of the teachers: with unanimous ballots of 4τ² ones none wins.

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
    def votes(self, predictions: npt.NDArray[np.integer]) -> Votes:
        table = checked_predictions(predictions)
        ballot = Clipped(table.shape[2], self.tau, self.norm)
        # Teacher by teacher, to hold only one 64-bit ballot table at a time.
        total = sum(ballot.cast(each) for each in table)
        return np.asarray(total / ballot.vote)
