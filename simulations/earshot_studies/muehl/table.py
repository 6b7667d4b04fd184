"""Data sets as arrays: a row of numbers for each record, and its class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from earshot_protocol.errors import InvalidInputError


@dataclass(frozen=True)
class Table:
    """Records of one kind.

    Attributes:
        rows: Numbers of each record, float32 (records, …) in [0, 1].
        labels: Class of each record, int64 (records,), as an index into `classes`.
        classes: Names of the classes.

    Raises:
        InvalidInputError: There are more or fewer labels than rows, or a label is not a class.
    """

    rows: NDArray[np.float32]
    labels: NDArray[np.int64]
    classes: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.labels.shape != self.rows.shape[:1]:
            raise InvalidInputError(
                f"labels of shape {self.labels.shape} for {len(self.rows)} rows: each row needs "
                "one label"
            )
        if len(self.labels) and not 0 <= self.labels.min() <= self.labels.max() < len(self.classes):
            raise InvalidInputError(
                f"labels from {self.labels.min()} to {self.labels.max()}: must be from 0 to "
                f"{len(self.classes) - 1}"
            )

    def __len__(self) -> int:
        return len(self.rows)

    def at(self, places: NDArray[np.integer] | slice) -> Table:
        """Return some of the records."""
        return Table(self.rows[places], self.labels[places], self.classes)

    def joined(self, other: Table) -> Table:
        """Return these records followed by the other's.

        Raises:
            InvalidInputError: The classes or the shapes of rows differ.
        """
        if self.classes != other.classes or self.rows.shape[1:] != other.rows.shape[1:]:
            raise InvalidInputError("tables whose classes or columns differ cannot be joined")
        rows = np.concatenate([self.rows, other.rows])
        return Table(rows, np.concatenate([self.labels, other.labels]), self.classes)


@dataclass(frozen=True)
class PublishedSplit:
    """The two published parts of a data set."""

    train: Table
    test: Table
