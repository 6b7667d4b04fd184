"""Sparse votes for label sets: only cast sets are stored, never all 2^k."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from earshot_models.votes.label_ballots import Approval
from earshot_protocol.errors import InvalidInputError


@dataclass(frozen=True)
class SubsetVotes:
    """Counts of identical label sets, query by query.

    Attributes:
        sets: Sets that are cast, zeros and ones, int8 (cast, labels); each once per query, queries
            one after the other.
        counts: Teachers that cast each set, int64 (cast,).
        starts: Index of each query's first set, int64 (queries,).

    Raises:
        InvalidInputError: The arrays do not fit each other, or a query has no vote.
    """

    sets: npt.NDArray[np.int8]
    counts: npt.NDArray[np.int64]
    starts: npt.NDArray[np.int64]

    def __post_init__(self) -> None:
        cast = len(self.counts)
        if self.sets.ndim != 2 or len(self.sets) != cast or (self.counts < 1).any():
            raise InvalidInputError(
                f"{cast} counts of sets of shape {self.sets.shape}: must be one per set, each at "
                "least 1"
            )
        ends = np.append(self.starts, cast)
        if ends[0] != 0 or (np.diff(ends) < 1).any():
            raise InvalidInputError("starts: must begin at 0 and rise, with at least one set each")

    @property
    def labels(self) -> int:
        """Number of labels, k."""
        return int(self.sets.shape[1])

    @property
    def query(self) -> npt.NDArray[np.int64]:
        """Query to which each set belongs, int64 (cast,)."""
        return np.repeat(np.arange(len(self.starts)), self.cast)

    @property
    def cast(self) -> npt.NDArray[np.int64]:
        """Number of sets that each query has, int64 (queries,)."""
        return np.diff(np.append(self.starts, len(self.counts)))

    @property
    def most(self) -> npt.NDArray[np.int64]:
        """Votes of the set that has most, int64 (queries,)."""
        most: npt.NDArray[np.int64] = np.maximum.reduceat(self.counts, self.starts)
        return most

    @property
    def log_uncast(self) -> npt.NDArray[np.float64]:
        """Logarithm of the number of sets without votes, (queries,); −∞ for none."""
        log_all = self.labels * np.log(2.0)
        with np.errstate(divide="ignore"):
            # Accurate, as 2^k is a power of two and few sets are cast.
            logs: npt.NDArray[np.float64] = log_all + np.log1p(
                -np.ldexp(self.cast.astype(np.float64), -self.labels)
            )
        return logs


def subset_votes(predictions: npt.NDArray[np.integer]) -> SubsetVotes:
    """Count identical label sets of teachers.

    Args:
        predictions: Zeros and ones, (teachers, queries, labels).

    Raises:
        InvalidInputError: There are other numbers, another shape, or no predictions.
    """
    table = checked_predictions(predictions)
    teachers, queries, labels = table.shape
    packed = np.packbits(table.astype(bool), axis=-1)
    query = np.broadcast_to(np.arange(queries, dtype=">u8")[:, None], (teachers, queries, 1))
    # The query's number comes first, so that rows are sorted by query.
    rows = np.concatenate([np.ascontiguousarray(query).view(np.uint8), packed], axis=-1)
    found, counts = np.unique(rows.reshape(-1, rows.shape[-1]), axis=0, return_counts=True)
    of_query = np.ascontiguousarray(found[:, :8]).view(">u8")[:, 0]
    sets = np.unpackbits(found[:, 8:], axis=-1, count=labels).astype(np.int8)
    starts = np.searchsorted(of_query, np.arange(queries)).astype(np.int64)
    return SubsetVotes(sets, counts.astype(np.int64), starts)


def checked_predictions(predictions: npt.NDArray[np.integer]) -> npt.NDArray[np.int8]:
    """Validate teachers' predictions of labels, and return them as int8.

    Args:
        predictions: Zeros and ones, (teachers, queries, labels).

    Raises:
        InvalidInputError: There are other numbers, another shape, or no predictions.
    """
    table = np.asarray(predictions)
    if table.ndim != 3 or 0 in table.shape:
        raise InvalidInputError(
            f"predictions of shape {table.shape}: must be teachers × queries × labels, at least "
            "one of each"
        )
    return Approval(table.shape[2]).cast(table).astype(np.int8)
