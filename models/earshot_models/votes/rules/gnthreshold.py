"""GNThreshold: labels with more votes than a public threshold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.thresholds import fixed_divergences, log_nearer
from earshot_models.votes.rules.against_thresholds import ThresholdRule
from earshot_models.votes.rules.label_votes import Votes
from earshot_models.votes.rules.laws import threshold_law
from earshot_models.votes.rules.rule import Passing
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.overriding import override


@dataclass(frozen=True, kw_only=True)
class GNThresholdRule(ThresholdRule):
    """Answer with labels that have more votes than a public threshold.

    s + N(0, σ²) > th (Muschiol 2021, Definition 10).

    Attributes:
        cut: Votes above which a label is given; by default half of the teachers.
    """

    cut: float | None = None

    name: ClassVar[str] = "gnthreshold"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cut is not None and not math.isfinite(self.cut):
            raise InvalidParametersError(f"cut={self.cut}: must be a finite number of votes")

    def _cut(self, teachers: float) -> float:
        return teachers / 2 if self.cut is None else self.cut

    @override
    def winning(self, votes: Votes, teachers: float) -> Passing:
        return np.asarray(votes > self._cut(teachers))

    @override
    def law(self, votes: Numbers, teachers: int) -> Numbers:
        return threshold_law(votes, self._cut(teachers), self.sigma)

    @override
    def answer_divergences(
        self, votes: Numbers, teachers: int, orders: Numbers, method: Method, changed: int
    ) -> Numbers:
        return fixed_divergences(votes, self._cut(teachers), self.sigma, orders, method, changed)

    @override
    def log_other_answer(self, votes: Numbers, teachers: int, moved: float) -> Numbers:
        return log_nearer(votes, self._cut(teachers), moved, self.sigma)
