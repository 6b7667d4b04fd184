"""Labels with more votes than a threshold, by noise that a curator adds.

After Muschiol (2021), whose adaptive threshold is computed from votes without noise, so that one
more vote can move it by half of the teachers. Two private ways replace it here. Nothing but
outcomes is published; their cost is computed in `earshot_models.votes.costs.thresholds`.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_models.votes.confident_check import Check
from earshot_models.votes.rules.multi_winner import Outcomes, Votes, checked_label_votes
from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError, InvalidParametersError
from earshot_protocol.privacy import noisy_counts
from earshot_protocol.randomness import RandomBytes
from earshot_protocol.voting.teacher_ballots import NONE


@dataclass(frozen=True)
class GNThreshold:
    """A public threshold above which labels win: s + N(0, σ²) > th (Muschiol 2021, Definition 10).

    Attributes:
        threshold: Threshold of the noisy votes, th, in votes.
        deviation: Standard deviation of the noise, σ, in votes.
        teachers: Number of teachers, M.
        most: Number of a teacher's largest outputs that count, v; None for all.
        check: Check of the query, on the largest s; None for none.

    Raises:
        InvalidParametersError: th is not finite, σ is not positive, or teachers or v is not whole.
    """

    threshold: float
    deviation: float
    teachers: int
    most: int | None = None
    check: Check | None = None

    def __post_init__(self) -> None:
        _check_numbers(self.deviation, self.teachers, self.most)
        if not math.isfinite(self.threshold):
            raise InvalidParametersError(
                f"threshold={self.threshold}: must be a finite number of votes"
            )

    def votes(self, scores: npt.NDArray[np.number]) -> Votes:
        """Return the votes of each label, or parts of votes.

        Args:
            scores: Outputs of the teachers, from 0 to 1, (teachers, queries, labels).

        Returns:
            s, float64 (queries, labels).

        Raises:
            InvalidInputError: Outputs are not numbers, out of range, or not of all teachers.
            InvalidParametersError: A teacher may name more labels than there are.
        """
        return _added(scores, self.teachers, self.most)

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Outcomes:
        """Return which labels win.

        Args:
            votes: s, (queries, labels), each from 0 to the number of teachers.
            random: Source of bytes; a seeded one belongs in simulations only.

        Returns:
            int64 (queries, labels): 1 or 0, or `NONE` for a query that did not pass the check.

        Raises:
            InvalidInputError: Votes are out of range or not numbers, or not a table.
        """
        table = checked_label_votes(votes, self.teachers)
        noisy = _noisy(table, self.deviation, random)
        return _passed(self.check, table, noisy > self.threshold, random)


@dataclass(frozen=True)
class AdaptiveThreshold:
    """A threshold in the middle of the widest gap between sorted noisy votes.

    Noise comes first, so anything done with noisy votes is free. At least one label wins and at
    least one does not. Among gaps of equal width the upper one counts.

    Attributes:
        deviation: Standard deviation of the noise, σ, in votes.
        teachers: Number of teachers, M.
        most: Number of a teacher's largest outputs that count, v; None for all.
        check: Check of the query, on the largest s; None for none.

    Raises:
        InvalidParametersError: σ is not positive, or teachers or v is not whole.
    """

    deviation: float
    teachers: int
    most: int | None = None
    check: Check | None = None

    def __post_init__(self) -> None:
        _check_numbers(self.deviation, self.teachers, self.most)

    def votes(self, scores: npt.NDArray[np.number]) -> Votes:
        """Return the votes of each label, as `GNThreshold.votes` does."""
        return _added(scores, self.teachers, self.most)

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Outcomes:
        """Return which of at least two labels win, as `GNThreshold.winners` does.

        Raises:
            InvalidInputError: Votes are on one label, out of range or not numbers, or not a table.
        """
        table = checked_label_votes(votes, self.teachers)
        if table.shape[1] < 2:
            raise InvalidInputError("votes on one label have no gap: must be on at least two")
        noisy = _noisy(table, self.deviation, random)
        return _passed(self.check, table, above_widest_gap(noisy), random)


@dataclass(frozen=True)
class GridThreshold:
    """A public threshold that is far from all votes, chosen by Gumbel noise.

    argmax_t u(t) + Gumbel(g), u(t) = min_i |s_i − t|, over a public grid; votes of 0 and M are
    always counted in, so that no threshold lies beyond them and labels without votes do not win.
    Then as `GNThreshold`. One teacher changes u(t) by one at most: this is the exponential
    mechanism of 2/g, and is drawn as that.

    Attributes:
        grid: Possible thresholds, each between 0 and M.
        scale: Scale of the noise on u, g, in votes.
        deviation: Standard deviation of the noise on s, σ, in votes.
        teachers: Number of teachers, M.
        most: Number of a teacher's largest outputs that count, v; None for all.
        check: Check of the query, on the largest s; None for none.

    Raises:
        InvalidParametersError: The grid is empty or beyond all votes, g or σ is not positive, or
            teachers or v is not whole.
    """

    grid: tuple[float, ...]
    scale: float
    deviation: float
    teachers: int
    most: int | None = None
    check: Check | None = None

    def __post_init__(self) -> None:
        _check_numbers(self.deviation, self.teachers, self.most)
        checks.positive("scale", self.scale)
        if not self.grid or not all(0 < each < self.teachers for each in self.grid):
            raise InvalidParametersError(
                f"grid={self.grid}: must be thresholds above 0 and below the {self.teachers} "
                "teachers"
            )

    def votes(self, scores: npt.NDArray[np.number]) -> Votes:
        """Return the votes of each label, as `GNThreshold.votes` does."""
        return _added(scores, self.teachers, self.most)

    def room(self, votes: Votes) -> Votes:
        """Return u, each threshold's distance from the nearest votes, (queries, thresholds)."""
        edges = np.broadcast_to([0.0, self.teachers], (len(votes), 2))
        counted = np.concatenate([votes, edges], axis=1)
        return np.stack([abs(counted - each).min(axis=1) for each in self.grid], axis=1)

    def thresholds(
        self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom
    ) -> npt.NDArray[np.float64]:
        """Return a threshold for every query, (queries,); it may be published."""
        room = self.room(checked_label_votes(votes, self.teachers))
        chosen: Votes = np.array(self.grid)[noisy_counts.likeliest(room, self.scale, random)]
        return chosen

    def winners(self, votes: npt.NDArray[np.number], random: RandomBytes = os.urandom) -> Outcomes:
        """Return which labels win, as `GNThreshold.winners` does."""
        table = checked_label_votes(votes, self.teachers)
        limits = self.thresholds(table, random)[:, None]
        noisy = _noisy(table, self.deviation, random)
        return _passed(self.check, table, noisy > limits, random)


ThresholdVoting = GNThreshold | AdaptiveThreshold | GridThreshold


def above_widest_gap(values: npt.NDArray[np.float64]) -> npt.NDArray[np.bool_]:
    """Return which values are above the widest gap of the sorted ones; of equal gaps the upper.

    Args:
        values: Values (queries, labels), at least two labels.

    Returns:
        bool (queries, labels).
    """
    ordered = np.sort(values, axis=1)[:, ::-1]
    widest = (ordered[:, :-1] - ordered[:, 1:]).argmax(axis=1)[:, None]
    upper, lower = (np.take_along_axis(ordered, widest + more, axis=1) for more in (0, 1))
    above: npt.NDArray[np.bool_] = values > (upper + lower) / 2
    return above


def largest_outputs(scores: npt.NDArray[np.float64], most: int) -> npt.NDArray[np.float64]:
    """Keep only the largest numbers of each row, zeros elsewhere; of equal ones the first.

    Args:
        scores: Scores (…, labels).
        most: Number of scores that stay.

    Raises:
        InvalidParametersError: More are to stay than there are labels.
    """
    labels = scores.shape[-1]
    if most > labels:
        raise InvalidParametersError(f"most={most}: must be at most {labels}, the number of labels")
    if most == labels:
        return scores
    order = np.argsort(-scores, axis=-1, kind="stable")
    cut = scores.copy()
    np.put_along_axis(cut, order[..., most:], 0.0, axis=-1)
    return cut


def _check_numbers(deviation: float, teachers: int, most: int | None) -> None:
    checks.positive("deviation", deviation)
    checks.whole("teachers", teachers)
    if most is not None:
        checks.whole("most", most)


def _added(scores: npt.NDArray[np.number], teachers: int, most: int | None) -> Votes:
    table = np.asarray(scores)
    if table.ndim != 3 or table.shape[0] != teachers or table.shape[2] < 1:
        raise InvalidInputError(
            f"scores of shape {table.shape}: must be teachers × queries × labels, with {teachers} "
            "teachers"
        )
    if not np.can_cast(table.dtype, np.float64) or not ((table >= 0) & (table <= 1)).all():
        raise InvalidInputError("scores: must be numbers from 0 to 1")
    total = np.zeros(table.shape[1:])
    for each in table:
        outputs = each.astype(np.float64)
        total += outputs if most is None else largest_outputs(outputs, most)
    # Rounding must not lift votes above the number of teachers.
    return np.minimum(total, teachers)


def _noisy(table: Votes, deviation: float, random: RandomBytes) -> Votes:
    return noisy_counts.with_normal(table, deviation, random)


def _passed(
    check: Check | None, table: Votes, winning: npt.NDArray[np.bool_], random: RandomBytes
) -> Outcomes:
    found = winning.astype(np.int64)
    if check is not None:
        found[~check.passing(table.max(axis=1), random)] = NONE
    return found
