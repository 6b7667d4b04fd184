"""Grid-threshold: labels with more votes than a threshold that is far from all counts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from cyclopts import Parameter

from earshot_models.votes.confident_check import ConfidentCheck
from earshot_models.votes.costs.bits import bit_divergence
from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.thresholds import fixed_divergences, grid_divergence
from earshot_models.votes.counts import checked_label_votes
from earshot_models.votes.electorate import PollForm
from earshot_models.votes.rules.against_thresholds import (
    ThresholdAnswering,
    ThresholdRule,
    added,
    check_numbers,
    check_votes,
    noisy,
    passed,
)
from earshot_models.votes.rules.gnthreshold import log_nearer
from earshot_models.votes.rules.label_votes import Outcomes, Votes
from earshot_models.votes.rules.laws import answers_of, grid_law
from earshot_models.votes.rules.rule import Numbers, Passing, Plain
from earshot_protocol import checks
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.overriding import override
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.randomness import RandomBytes


@dataclass(frozen=True)
class GridThreshold(ThresholdAnswering):
    """A public threshold that is far from all votes, chosen by Gumbel noise.

    argmax_t u(t) + Gumbel(g), u(t) = min_i |s_i − t|, over a public grid; votes of 0 and M are
    always counted in, so that no threshold lies beyond them and labels without votes do not win.
    Then as `gnthreshold.GNThreshold`. One teacher changes u(t) by one at most: this is the
    exponential mechanism of 2/g, and is drawn as that.

    Attributes:
        grid: Possible thresholds, each between 0 and M.
        scale: Scale of the noise on u, g, in votes.
        deviation: Standard deviation of the noise on s, σ, in votes.
        teachers: Number of teachers, M.
        most: Number of a teacher's largest outputs that count, v; None for all.
        check: Check of the query, on the largest s; None for none.

    Raises:
        InvalidParametersError: The grid is empty or beyond all votes, g or σ is not positive, or
            `teachers` or `most` is not whole.
    """

    grid: tuple[float, ...]
    scale: float
    deviation: float
    teachers: int
    most: int | None = None
    check: ConfidentCheck | None = None

    def __post_init__(self) -> None:
        check_numbers(self.deviation, self.teachers, self.most)
        checks.positive("scale", self.scale)
        if not self.grid or not all(0 < each < self.teachers for each in self.grid):
            raise InvalidParametersError(
                f"grid={self.grid}: must be thresholds above 0 and below the {self.teachers} "
                "teachers"
            )

    @override
    def votes(self, scores: npt.NDArray[np.number]) -> Votes:
        return added(scores, self.teachers, self.most)

    def room(self, votes: Votes) -> Votes:
        """Return u, each threshold's distance from the nearest votes, (queries, thresholds)."""
        return room(np.array(self.grid), votes, self.teachers)

    def thresholds(
        self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom
    ) -> npt.NDArray[np.float64]:
        """Return a threshold for every query, (queries,); it may be published."""
        room = self.room(checked_label_votes(votes, self.teachers))
        chosen: Votes = np.array(self.grid)[noisy_counts.likeliest(room, self.scale, random)]
        return chosen

    @override
    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Outcomes:
        table = checked_label_votes(votes, self.teachers)
        limits = self.thresholds(table, random)[:, None]
        counts = noisy(table, self.deviation, random)
        return passed(self.check, table, counts > limits, random)

    exact: ClassVar[bool] = True

    @property
    @override
    def choice_rho(self) -> float:
        return 1 / (2 * self.scale**2)

    @override
    def law(self, votes: Numbers) -> Numbers:
        """Return the probability of each threshold with each of `answers`, without the check."""
        apart = self.room(np.asarray(votes, dtype=np.float64)[None])[0]
        return grid_law(votes, self.grid, apart, self.scale, self.deviation)

    @override
    def answers(self, labels: int) -> list[tuple[int, ...]]:
        return answers_of(labels)

    @override
    def answer_divergences(
        self, votes: Numbers, orders: Numbers, method: Method, changed: int
    ) -> Numbers:
        """Return what answers cost, the worst threshold of the grid, and its choice."""
        each = [
            fixed_divergences(votes, limit, self.deviation, orders, method, changed)
            for limit in self.grid
        ]
        return np.asarray(np.max(each, axis=0) + grid_divergence(self.scale, orders))

    @override
    def usual_divergence(self, order: float, changed: int) -> float:
        """Return what an answer costs by the noise on votes alone: the cost of its bits."""
        return changed * float(bit_divergence(self.deviation, [order])[0])

    @override
    def log_other_answer(self, votes: Numbers, moved: float) -> Numbers:
        each = [log_nearer(votes, limit, moved, self.deviation) for limit in self.grid]
        return np.asarray(np.max(each, axis=0))

    @override
    def choice_divergence(self, order: float) -> float:
        return float(grid_divergence(self.scale, [order])[0])


def room(grid: Numbers, votes: Votes, teachers: float) -> Votes:
    """Return each threshold's distance from the nearest votes, (queries, thresholds).

    Nobody's and everybody's vote, 0 and M, are always counted in.
    """
    edges = np.broadcast_to([0.0, teachers], (len(votes), 2))
    counted = np.concatenate([votes, edges], axis=1)
    return np.stack([abs(counted - each).min(axis=1) for each in grid], axis=1)


def _numbers(kind: Any, tokens: Sequence[Any]) -> tuple[float, ...]:
    """Return numbers from text such as 10,20,30.

    Raises:
        ValueError: The text says something else.
    """
    text = ",".join(each.value for each in tokens)
    try:
        return tuple(float(each) for each in text.split(","))
    except ValueError:
        raise ValueError("must be numbers of votes by commas, such as 10,20,30") from None


@dataclass(frozen=True, kw_only=True)
class GridRule(ThresholdRule):
    """Answer with labels that have more votes than a threshold that is far from all counts.

    Attributes:
        grid: Thresholds in votes, separated by commas; one that is far from all counts is taken.
        scale: Scale of a curator's Gumbel noise on the choice from --grid, in votes; none with
            secure sums, whose server chooses by noisy counts.
    """

    grid: Annotated[tuple[float, ...], Parameter(converter=_numbers, n_tokens=1)]
    scale: float | None = None

    name: ClassVar[str] = "grid-threshold"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.scale is not None:
            checks.noise("scale", self.scale)
        if not self.grid:
            raise InvalidParametersError("grid: must be one threshold at least")
        for each in self.grid:
            check_votes(each)

    @override
    def identity(self, classes: int) -> Plain:
        return super().identity(classes) | {"grid": ", ".join(map(repr, self.grid))}

    @override
    def weighing(self, mean: float) -> Self:
        return replace(super().weighing(mean), grid=tuple(each * mean for each in self.grid))

    @override
    def check_curator(self, poll: PollForm, weighed: bool) -> None:
        self._check_grid(poll, self.scale is not None)
        super().check_curator(poll, weighed)

    @override
    def check_sums(self, poll: PollForm) -> None:
        self._check_grid(poll, self.scale is None)
        super().check_sums(poll)

    def _check_grid(self, poll: PollForm, scaled: bool) -> None:
        if max(self.grid) >= poll.teachers:
            raise InvalidParametersError(
                f"grid={self.grid}: must be below the {poll.teachers} teachers"
            )
        if not scaled:
            raise InvalidParametersError(
                "scale: a curator chooses a threshold from a grid with noise of its own and needs "
                "it; the server of a secure sum chooses by noisy counts: leave it out"
            )

    @override
    def voting(self, poll: PollForm) -> GridThreshold:
        scale = self.scale or 0.0
        return GridThreshold(self.grid, scale, self.sigma, poll.teachers, self.winners, self.check)

    @override
    def winning(self, votes: Votes, teachers: float) -> Passing:
        grid = np.array(self.grid)
        return np.asarray(votes > grid[room(grid, votes, teachers).argmax(axis=1)][:, None])

    @override
    def draws(self, poll: PollForm) -> int:
        return super().draws(poll) + len(self.grid)
