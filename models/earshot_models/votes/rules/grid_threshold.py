"""Grid-threshold: labels with more votes than a threshold that is far from all counts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar, Self

import numpy as np
import numpy.typing as npt
from cyclopts import Parameter

from earshot_models.votes.costs.costs import Method
from earshot_models.votes.costs.thresholds import fixed_divergences, grid_divergence, log_nearer
from earshot_models.votes.electorate import PollForm
from earshot_models.votes.rules.against_thresholds import ThresholdRule, check_votes
from earshot_models.votes.rules.label_votes import Votes
from earshot_models.votes.rules.laws import grid_law
from earshot_models.votes.rules.rule import Passing, Plain
from earshot_protocol import checks
from earshot_protocol.arrays import Numbers
from earshot_protocol.errors import InvalidParametersError
from earshot_protocol.overriding import override
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.randomness import RandomBytes


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

    A curator takes argmax_t u(t) + Gumbel(g), u(t) = min_i |s_i − t|, over a public grid; the s_i
    include 0 and M, so that labels without votes do not win. Then it answers as `gnthreshold`. One
    teacher changes u(t) by one at most: this is the exponential mechanism with parameter 2/g, and
    is sampled as such.

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
    def times(self, factor: float) -> Self:
        return replace(super().times(factor), grid=tuple(each * factor for each in self.grid))

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
    def winning(self, votes: Votes, teachers: float) -> Passing:
        grid = np.array(self.grid)
        return np.asarray(votes > grid[room(grid, votes, teachers).argmax(axis=1)][:, None])

    @property
    def _choice_scale(self) -> float:
        """Scale g of a curator's noise on the choice of a threshold."""
        return checks.positive("scale", self.scale or 0.0)

    @override
    def drawn(self, votes: Votes, teachers: int, random: RandomBytes) -> Passing:
        limits = self.thresholds(votes, teachers, random)[:, None]
        return np.asarray(noisy_counts.with_normal(votes, self.sigma, random) > limits)

    def thresholds(
        self, votes: Votes, teachers: int, random: RandomBytes = os.urandom
    ) -> npt.NDArray[np.float64]:
        """Return a curator's threshold for every query, (queries,), which may be published."""
        grid = np.array(self.grid)
        apart = room(grid, votes, teachers)
        chosen: Votes = grid[noisy_counts.likeliest(apart, self._choice_scale, random)]
        return chosen

    @property
    @override
    def choice_rho(self) -> float:
        return 1 / (2 * self._choice_scale**2)

    @override
    def law(self, votes: Numbers, teachers: int) -> Numbers:
        """Return the probability of each threshold with each of `answers`, without the check."""
        table = np.asarray(votes, dtype=np.float64)[None]
        apart = room(np.array(self.grid), table, teachers)[0]
        return grid_law(votes, self.grid, apart, self._choice_scale, self.sigma)

    @override
    def answer_divergences(
        self, votes: Numbers, teachers: int, orders: Numbers, method: Method, changed: int
    ) -> Numbers:
        """Return the cost of answers at the worst threshold of the grid, and of its choice."""
        each = [
            fixed_divergences(votes, limit, self.sigma, orders, method, changed)
            for limit in self.grid
        ]
        return np.asarray(np.max(each, axis=0) + grid_divergence(self._choice_scale, orders))

    @override
    def log_other_answer(self, votes: Numbers, teachers: int, moved: float) -> Numbers:
        each = [log_nearer(votes, limit, moved, self.sigma) for limit in self.grid]
        return np.asarray(np.max(each, axis=0))

    @override
    def choice_divergence(self, order: float) -> float:
        return float(grid_divergence(self._choice_scale, [order])[0])

    @override
    def draws(self, poll: PollForm) -> int:
        return super().draws(poll) + len(self.grid)


def room(grid: Numbers, votes: Votes, teachers: float) -> Votes:
    """Return each threshold's distance from the nearest votes, (queries, thresholds).

    Votes of 0 and M are always included.
    """
    edges = np.broadcast_to([0.0, teachers], (len(votes), 2))
    counted = np.concatenate([votes, edges], axis=1)
    return np.stack([abs(counted - each).min(axis=1) for each in grid], axis=1)
