"""GNThreshold-Adaptive: labels above the widest gap of noisy votes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.thresholds import (
    gap_divergences,
    log_chance,
    threshold_ratio,
    widest_gaps,
)
from earshot_models.votes.counts import middle_of_widest_gap
from earshot_models.votes.electorate import PollForm
from earshot_models.votes.rules.against_thresholds import ThresholdRule
from earshot_models.votes.rules.label_votes import Votes
from earshot_models.votes.rules.laws import SIDES, widest_gap_law
from earshot_models.votes.rules.rule import Passing
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.overriding import override


@dataclass(frozen=True, kw_only=True)
class AdaptiveRule(ThresholdRule):
    """Answer with labels above the widest gap of noisy votes.

    The threshold is computed from noisy votes, at no further cost. At least one label wins and at
    least one does not. Of gaps of equal width the upper one counts.
    """

    name: ClassVar[str] = "gnthreshold-adaptive"
    exact: ClassVar[bool] = False

    @override
    def check_poll(self, poll: PollForm) -> None:
        checks.whole("classes", poll.classes, 2)
        super().check_poll(poll)

    @override
    def winning(self, votes: Votes, teachers: float) -> Passing:
        return above_widest_gap(votes)

    @override
    def law(self, votes: Numbers, teachers: int) -> Numbers:
        """Return the probability of each of `answers`, for votes on three labels, unchecked."""
        return widest_gap_law(votes, self.sigma)

    @override
    def answers(self, labels: int) -> list[tuple[int, ...]]:
        """Return the answers on three labels, in the order of `law`."""
        return list(SIDES)

    @override
    def answer_divergences(
        self, votes: Numbers, teachers: int, orders: Numbers, method: Method, changed: int
    ) -> Numbers:
        return gap_divergences(votes, self.sigma, orders, method, changed)

    @override
    def usual_divergence(self, order: float, changed: int) -> float:
        """Return the cost of an answer by the noise on votes alone: that of noisy votes."""
        return order / threshold_ratio(self.sigma, changed) ** 2

    @override
    def log_other_answer(self, votes: Numbers, teachers: int, moved: float) -> Numbers:
        first, second = widest_gaps(votes)
        # Each of the two gaps lies between two sums, so a teacher changes their difference by 4.
        clear = np.maximum(first - second - 4 * moved, 0.0)
        return log_chance(clear, self.sigma, votes.shape[1])

    @override
    def draws(self, poll: PollForm) -> int:
        """Return the draws that decide a query: each count may move the threshold four times."""
        return 1 + 4 * poll.classes


def above_widest_gap(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which values are above the widest gap of the sorted ones; of equal gaps the upper.

    Args:
        values: Values (queries, labels), at least two labels.

    Returns:
        bool (queries, labels).

    Raises:
        InvalidInputError: There are fewer than two labels.
    """
    return np.asarray(values > middle_of_widest_gap(values)[:, None])
