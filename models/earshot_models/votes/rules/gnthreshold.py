"""GNThreshold: labels with more votes than a public threshold."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.costs.bits import bit_divergence
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.thresholds import fixed_divergences, log_other_labels
from earshot_models.votes.counts import checked_label_votes
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
from earshot_models.votes.rules.laws import answers_of, threshold_law
from earshot_models.votes.rules.rule import Numbers, Passing
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.overriding import override
from earshot_protocol.randomness import RandomBytes


@dataclass(frozen=True)
class GNThreshold(ThresholdAnswering):
    """A public threshold above which labels win: s + N(0, σ²) > th (Muschiol 2021, Definition 10).

    Attributes:
        threshold: Threshold of the noisy votes, th, in votes.
        deviation: Standard deviation of the noise, σ, in votes.
        teachers: Number of teachers, M.
        most: Number of a teacher's largest outputs that count, v; None for all.
        check: Check of the query, on the largest s; None for none.

    Raises:
        InvalidParametersError: The threshold th is not finite, the deviation σ is not positive, or
            `teachers` or `most` is not whole.
    """

    threshold: float
    deviation: float
    teachers: int
    most: int | None = None
    check: ConfidentCheck | None = None

    def __post_init__(self) -> None:
        check_numbers(self.deviation, self.teachers, self.most)
        if not math.isfinite(self.threshold):
            raise InvalidParametersError(
                f"threshold={self.threshold}: must be a finite number of votes"
            )

    @override
    def votes(self, scores: npt.NDArray[np.number]) -> Votes:
        return added(scores, self.teachers, self.most)

    @override
    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Outcomes:
        table = checked_label_votes(votes, self.teachers)
        counts = noisy(table, self.deviation, random)
        return passed(self.check, table, counts > self.threshold, random)

    exact: ClassVar[bool] = True

    @override
    def law(self, votes: Numbers) -> Numbers:
        return threshold_law(votes, self.threshold, self.deviation)

    @override
    def answers(self, labels: int) -> list[tuple[int, ...]]:
        return answers_of(labels)

    @override
    def answer_divergences(
        self, votes: Numbers, orders: Numbers, method: Method, changed: int
    ) -> Numbers:
        return fixed_divergences(votes, self.threshold, self.deviation, orders, method, changed)

    @override
    def usual_divergence(self, order: float, changed: int) -> float:
        """Return what an answer costs by the noise on votes alone: the cost of its bits."""
        return changed * float(bit_divergence(self.deviation, [order])[0])

    @override
    def log_other_answer(self, votes: Numbers, moved: float) -> Numbers:
        return log_nearer(votes, self.threshold, moved, self.deviation)


def log_nearer(votes: Numbers, threshold: float, moved: float, deviation: float) -> Numbers:
    """Bound the log-probability that noise changes a label, all `moved` votes nearer to it."""
    clear = np.maximum(np.abs(votes - threshold) - moved, 0.0)
    return log_other_labels(clear, 0.0, deviation)


@dataclass(frozen=True, kw_only=True)
class GNThresholdRule(ThresholdRule):
    """Answer with labels that have more votes than a public threshold.

    Attributes:
        cut: Votes above which a label is given; by default half of the teachers.
    """

    cut: float | None = None

    name: ClassVar[str] = "gnthreshold"

    @override
    def voting(self, poll: PollForm) -> GNThreshold:
        cut = poll.teachers / 2 if self.cut is None else self.cut
        return GNThreshold(cut, self.sigma, poll.teachers, self.winners, self.check)

    @override
    def winning(self, votes: Votes, teachers: float) -> Passing:
        return np.asarray(votes > (teachers / 2 if self.cut is None else self.cut))
