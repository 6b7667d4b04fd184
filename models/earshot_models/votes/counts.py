"""Tables of teachers' votes that a curator holds: counting and validation."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.arrays import Whole
from earshot_protocol.errors import InvalidInputError
from earshot_protocol.voting.teacher_ballots import NONE

_ROUNDING = 1e-3
"""Tolerance of the sum of a student's scores: float32 over some thousand classes."""


def vote_counts(predictions: Whole, weights: Whole, classes: int) -> Whole:
    """Return the total weight of the votes for each class, int64 (queries, classes).

    Args:
        predictions: Class that each teacher names, `NONE` abstaining, (teachers, queries).
        weights: Weight of each teacher, int64 (teachers,).
        classes: Number of classes (m).
    """
    counts = np.zeros((predictions.shape[1], classes), dtype=np.int64)
    for chosen, weight in zip(predictions, weights.tolist(), strict=True):
        cast = np.flatnonzero(chosen != NONE)
        counts[cast, chosen[cast]] += weight
    return counts


def checked_votes(votes: npt.NDArray[np.number]) -> npt.NDArray[np.float64]:
    """Validate teachers' votes, weighted or not, and return them as float64.

    Args:
        votes: Votes of each class, (queries, classes).

    Raises:
        InvalidInputError: The array is not a table of two classes or more, or a count is not a
            number, not finite, or negative.
    """
    table = np.asarray(votes)
    if table.ndim != 2 or table.shape[1] < 2:
        raise InvalidInputError(
            f"votes of shape {table.shape}: must be queries × classes, with at least two classes"
        )
    return _numbers("votes", table)


def checked_counts(votes: npt.NDArray[np.number], teachers: int) -> npt.NDArray[np.int64]:
    """Validate votes of teachers who vote once each on every query, and return them as int64.

    Args:
        votes: Votes of each class, (queries, classes).
        teachers: Number of teachers.

    Raises:
        InvalidInputError: The array is one that `checked_votes` refuses, a count is not whole, or a
            query's counts do not add up to the number of teachers.
        InvalidParametersError: The number of teachers is not whole and positive.
    """
    teachers = checks.whole("teachers", teachers)
    table = checked_votes(votes)
    counts = table.astype(np.int64)
    if (counts != table).any():
        raise InvalidInputError("votes: must be whole numbers where every teacher has one vote")
    wrong = np.flatnonzero(counts.sum(axis=1) != teachers)
    if len(wrong):
        raise InvalidInputError(
            f"votes: {len(wrong)} of {len(counts)} queries do not have one vote from each of the "
            f"{teachers} teachers; query {wrong[0]} has {counts[wrong[0]].sum()}"
        )
    return counts


def checked_scores(
    scores: npt.NDArray[np.number], shape: tuple[int, int]
) -> npt.NDArray[np.float64]:
    """Validate a student's class probabilities, and return them as float64.

    Args:
        scores: Scores (queries, classes), each from 0 to 1, adding up to 1 for each query.
        shape: Shape that is expected.

    Raises:
        InvalidInputError: The shape is another, or scores are not probabilities of classes.
    """
    table = np.asarray(scores)
    if table.shape != shape:
        raise InvalidInputError(
            f"scores of shape {table.shape}: must be {shape}, one for every query and class"
        )
    found = _numbers("scores", table)
    if (abs(found.sum(axis=1) - 1) > _ROUNDING).any():
        raise InvalidInputError("scores: must be probabilities, which add up to 1 for every query")
    return found


def checked_label_votes(votes: npt.NDArray[np.number], teachers: int) -> npt.NDArray[np.float64]:
    """Validate an ensemble's votes for labels, and return them as float64.

    Args:
        votes: Votes (queries, labels), each from 0 to the number of teachers.
        teachers: Number of teachers, n.

    Raises:
        InvalidInputError: Votes are out of range or not numbers, or not a table.
    """
    table = np.asarray(votes)
    if table.ndim != 2 or table.shape[1] < 1 or not np.can_cast(table.dtype, np.float64):
        raise InvalidInputError(
            f"votes of {table.dtype} and shape {table.shape}: must be numbers, queries × labels"
        )
    found = table.astype(np.float64)
    if not ((found >= 0) & (found <= teachers)).all():
        raise InvalidInputError(
            f"votes: must be numbers from 0 to {teachers}, the number of teachers"
        )
    return found


def middle_of_widest_gap(values: npt.NDArray[np.number]) -> npt.NDArray[np.float64]:
    """Return the middle of the widest gap between sorted values, the upper of equally wide ones.

    Args:
        values: Values (queries, labels), on at least two labels.

    Returns:
        Middles, (queries,).

    Raises:
        InvalidInputError: There are fewer than two labels, or values are not a table.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[1] < 2:
        raise InvalidInputError(
            f"votes of shape {table.shape}: must be queries × labels, on at least two labels"
        )
    ordered = np.sort(table, axis=1)[:, ::-1]
    widest = (ordered[:, :-1] - ordered[:, 1:]).argmax(axis=1)[:, None]
    upper, lower = (np.take_along_axis(ordered, widest + more, axis=1) for more in (0, 1))
    return np.asarray((upper + lower)[:, 0] / 2)


def _numbers(name: str, table: npt.NDArray[np.number]) -> npt.NDArray[np.float64]:
    try:
        found = table.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name} of type {table.dtype}: must be numbers") from None
    if not np.isfinite(found).all() or (found < 0).any():
        raise InvalidInputError(f"{name}: must be finite numbers, none below 0")
    return found
