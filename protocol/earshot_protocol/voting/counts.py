"""How many teachers voted for what: tables that a curator holds, checked before they are used."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from earshot_protocol import checks
from earshot_protocol.errors import InvalidInputError

_ROUNDING = 1e-3
"""By which a student's scores may miss a sum of one: float32 over some thousand classes."""


def checked_votes(votes: npt.NDArray[np.number]) -> npt.NDArray[np.float64]:
    """Votes of teachers, weighted or not.

    Args:
        votes: (queries, classes), how many each class has.

    Returns:
        The same as float64.

    Raises:
        InvalidInputError: no table of two classes or more, or a count that is not a number, not
            finite, or negative.
    """
    table = np.asarray(votes)
    if table.ndim != 2 or table.shape[1] < 2:
        raise InvalidInputError(
            f"votes of shape {table.shape}: must be queries × classes, of two classes at least"
        )
    return _numbers("votes", table)


def checked_counts(votes: npt.NDArray[np.number], teachers: int) -> npt.NDArray[np.int64]:
    """Votes of an ensemble each of whose teachers votes once on every query.

    Args:
        votes: (queries, classes), how many each class has.
        teachers: how many there are.

    Returns:
        The same as int64.

    Raises:
        InvalidInputError: as `checked_votes`, or a count that is not whole, or counts of a query
            that do not add up to the number of teachers.
        InvalidParametersError: no whole number of teachers.
    """
    teachers = checks.whole("teachers", teachers)
    table = checked_votes(votes)
    counts = table.astype(np.int64)
    if (counts != table).any():
        raise InvalidInputError("votes: must be whole numbers where every teacher has one vote")
    wrong = np.flatnonzero(counts.sum(axis=1) != teachers)
    if len(wrong):
        raise InvalidInputError(
            f"votes: {len(wrong)} of {len(counts)} queries do not have one vote of each of the "
            f"{teachers} teachers; query {wrong[0]} has {counts[wrong[0]].sum()}"
        )
    return counts


def checked_scores(
    scores: npt.NDArray[np.number], shape: tuple[int, int]
) -> npt.NDArray[np.float64]:
    """How probable a student finds each class.

    Args:
        scores: (queries, classes), each from 0 to 1, of a query adding up to 1.
        shape: which is expected.

    Returns:
        The same as float64.

    Raises:
        InvalidInputError: another shape, or scores that are no probabilities of classes.
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


def _numbers(name: str, table: npt.NDArray[np.number]) -> npt.NDArray[np.float64]:
    try:
        found = table.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInputError(f"{name} of type {table.dtype}: must be numbers") from None
    if not np.isfinite(found).all() or (found < 0).any():
        raise InvalidInputError(f"{name}: must be finite numbers, none below 0")
    return found
