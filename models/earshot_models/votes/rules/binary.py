"""Binary voting: every label that more than half of the teachers find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.electorate import PollForm
from earshot_models.votes.label_ballots import Approval
from earshot_models.votes.rules.label_votes import LabelRule, Votes
from earshot_models.votes.subsets import checked_predictions
from earshot_protocol.overriding import override


@dataclass(frozen=True, kw_only=True)
class BinaryRule(LabelRule):
    """Answer with every label that more than half of the teachers find.

    V + N(0, σ²) > n/2, each label separately (Dziedzic et al., PoPETs 2023, Definition 4); its
    check is of max{V, n − V} (their Algorithm 1).
    """

    name: ClassVar[str] = "binary"

    @override
    def ballot(self, poll: PollForm) -> Approval:
        return Approval(poll.classes)

    @override
    def votes(self, predictions: npt.NDArray[np.integer]) -> Votes:
        return np.asarray(checked_predictions(predictions).sum(axis=0), dtype=np.float64)
