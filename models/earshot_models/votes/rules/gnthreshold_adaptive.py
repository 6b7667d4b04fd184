"""GNThreshold-Adaptive: labels above the widest gap of noisy votes."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.thresholds import (
    gap_divergences,
    log_chance,
    threshold_ratio,
    widest_gaps,
)
from earshot_models.votes.counts import checked_label_votes, middle_of_widest_gap
from earshot_models.votes.electorate import PollForm
from earshot_models.votes.rules.against_thresholds import (
    ThresholdAnswering,
    ThresholdRule,
    added,
    check_numbers,
    noisy,
    passed,
)
from earshot_models.votes.rules.label_votes import Outcomes, Votes
from earshot_models.votes.rules.laws import SIDES, widest_gap_law
from earshot_models.votes.rules.rule import Numbers, Passing
from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.overriding import override
from earshot_protocol.randomness import RandomBytes


@dataclass(frozen=True)
class AdaptiveThreshold(ThresholdAnswering):
    """A threshold in the middle of the widest gap between sorted noisy votes.

    Noise comes first, so anything done with noisy votes is free. At least one label wins and at
    least one does not. Among gaps of equal width the upper one counts.

    Attributes:
        deviation: Standard deviation of the noise, σ, in votes.
        teachers: Number of teachers, M.
        most: Number of a teacher's largest outputs that count, v; None for all.
        check: Check of the query, on the largest s; None for none.

    Raises:
        InvalidParametersError: The deviation σ is not positive, or `teachers` or `most` is not
            whole.
    """

    deviation: float
    teachers: int
    most: int | None = None
    check: ConfidentCheck | None = None

    def __post_init__(self) -> None:
        check_numbers(self.deviation, self.teachers, self.most)

    @override
    def votes(self, scores: npt.NDArray[np.number]) -> Votes:
        return added(scores, self.teachers, self.most)

    @override
    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Outcomes:
        """Return which of at least two labels win, as
        `gnthreshold.GNThreshold.winners` does.

        Raises:
            InvalidInputError: Votes are on one label, out of range or not numbers, or not a table.
        """
        table = checked_label_votes(votes, self.teachers)
        if table.shape[1] < 2:
            raise InvalidInputError("votes on one label have no gap: must be on at least two")
        counts = noisy(table, self.deviation, random)
        return passed(self.check, table, above_widest_gap(counts), random)

    exact: ClassVar[bool] = False

    @override
    def law(self, votes: Numbers) -> Numbers:
        """Return the probability of each of `answers`, for votes on three labels, unchecked."""
        return widest_gap_law(votes, self.deviation)

    @override
    def answers(self, labels: int) -> list[tuple[int, ...]]:
        """Return the answers on three labels, in the order of `law`."""
        return list(SIDES)

    @override
    def answer_divergences(
        self, votes: Numbers, orders: Numbers, method: Method, changed: int
    ) -> Numbers:
        return gap_divergences(votes, self.deviation, orders, method, changed)

    @override
    def usual_divergence(self, order: float, changed: int) -> float:
        """Return what an answer costs by the noise on votes alone: the cost of noisy votes."""
        return order / threshold_ratio(self.deviation, changed) ** 2

    @override
    def log_other_answer(self, votes: Numbers, moved: float) -> Numbers:
        first, second = widest_gaps(votes)
        # Two gaps lie between two sums each, so a teacher moves them by four votes in all.
        clear = np.maximum(first - second - 4 * moved, 0.0)
        return log_chance(clear, self.deviation, votes.shape[1])


def above_widest_gap(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which values are above the widest gap of the sorted ones; of equal gaps the upper.

    Args:
        values: Values (queries, labels), at least two labels.

    Returns:
        bool (queries, labels).
    """
    return np.asarray(values > middle_of_widest_gap(values)[:, None])


@dataclass(frozen=True, kw_only=True)
class AdaptiveRule(ThresholdRule):
    """Answer with labels above the widest gap of noisy votes."""

    name: ClassVar[str] = "gnthreshold-adaptive"

    @override
    def check_poll(self, poll: PollForm) -> None:
        checks.whole("classes", poll.classes, 2)
        super().check_poll(poll)

    @override
    def voting(self, poll: PollForm) -> AdaptiveThreshold:
        return AdaptiveThreshold(self.sigma, poll.teachers, self.winners, self.check)

    @override
    def winning(self, votes: Votes, teachers: float) -> Passing:
        return above_widest_gap(votes)

    @override
    def draws(self, poll: PollForm) -> int:
        """Return the draws that decide a query: each count may turn the threshold four times."""
        return 1 + 4 * poll.classes
