"""Votes for whole sets of labels: only the sets that are cast are kept, never all 2^k of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.voting.label_ballots import Approval


@dataclass(frozen=True)
class SubsetVotes:
    """How many teachers find exactly which labels, query by query.

    Attributes:
        sets: the sets that are cast, zeros and ones, int8 (cast, labels); of a query each once,
            queries one after the other.
        counts: teachers that cast each, int64 (cast,).
        starts: of each query, where its sets begin, int64 (queries,).

    Raises:
        InvalidInputError: arrays that do not fit each other, or a query without a vote.
    """

    sets: npt.NDArray[np.int8]
    counts: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        cast = len(self.counts)
        if self.sets.ndim != 2 or len(self.sets) != cast or (self.counts < 1).any():
            raise InvalidInputError(
                f"{cast} counts of sets of shape {self.sets.shape}: must be one for each set, all "
                "at least 1"
            )
        ends = np.append(self.starts, cast)
        if ends[0] != 0 or (np.diff(ends) < 1).any():
            raise InvalidInputError("starts: must begin at 0 and rise, a set at least for each")

    @property
    def labels(self) -> int:
        """How many labels there are, k."""
        return int(self.sets.shape[1])

    @property
    def query(self) -> npt.NDArray[np.int64]:
        """Which query each set belongs to, int64 (cast,)."""
        return np.repeat(np.arange(len(self.starts)), self.cast)

    @property
    def cast(self) -> npt.NDArray[np.int64]:
        """How many sets each query has, int64 (queries,)."""
        return np.diff(np.append(self.starts, len(self.counts)))

    @property
    def most(self) -> npt.NDArray[np.int64]:
        """Votes of the set that has most, int64 (queries,)."""
        most: npt.NDArray[np.int64] = np.maximum.reduceat(self.counts, self.starts)
        return most

    @property
    def log_uncast(self) -> npt.NDArray[np.float64]:
        """How many of all 2^k sets nobody casts: their logarithms, (queries,); −∞ of none."""
        log_all = self.labels * np.log(2.0)
        with np.errstate(divide="ignore"):
            # As 2^k is a power of two and so many sets few, this is exact where it matters.
            logs: npt.NDArray[np.float64] = log_all + np.log1p(
                -np.ldexp(self.cast.astype(np.float64), -self.labels)
            )
        return logs


def subset_votes(predictions: npt.NDArray[np.integer]) -> SubsetVotes:
    """How many teachers find exactly which labels.

    Args:
        predictions: zeros and ones, (teachers, queries, labels).

    Raises:
        InvalidInputError: other numbers, another shape, or nobody who predicts.
    """
    table = checked_predictions(predictions)
    teachers, queries, labels = table.shape
    packed = np.packbits(table.astype(bool), axis=-1)
    query = np.broadcast_to(np.arange(queries, dtype=">u8")[:, None], (teachers, queries, 1))
    # The number of the query before the members of the set: rows come sorted by query.
    rows = np.concatenate([np.ascontiguousarray(query).view(np.uint8), packed], axis=-1)
    found, counts = np.unique(rows.reshape(-1, rows.shape[-1]), axis=0, return_counts=True)
    of_query = np.ascontiguousarray(found[:, :8]).view(">u8")[:, 0]
    sets = np.unpackbits(found[:, 8:], axis=-1, count=labels).astype(np.int8)
    starts = np.searchsorted(of_query, np.arange(queries)).astype(np.int64)
    return SubsetVotes(sets, counts.astype(np.int64), starts)


def checked_predictions(predictions: npt.NDArray[np.integer]) -> npt.NDArray[np.int8]:
    """What teachers find, each label by itself.

    Args:
        predictions: zeros and ones, (teachers, queries, labels).

    Returns:
        The same as int8.

    Raises:
        InvalidInputError: other numbers, another shape, or nobody who predicts.
    """
    table = np.asarray(predictions)
    if table.ndim != 3 or 0 in table.shape:
        raise InvalidInputError(
            f"predictions of shape {table.shape}: must be teachers × queries × labels, one of each "
            "at least"
        )
    return Approval(table.shape[2]).cast(table).astype(np.int8)
