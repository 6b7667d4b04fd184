"""Environments as groups of cells with one label, as former discovery phases published them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol


class Group(NamedTuple):
    """One environment.

    Attributes:
        label: Label of its cells, an index.
        name: Name of the label.
        clear: Its cells whose name stands clear of the noise, counted from 0.
        doubtful: Its cells whose name may be noise, counted from 0.
        votes: Votes for its label in all of its cells.
    """

    label: int
    name: str
    clear: tuple[int, ...]
    doubtful: tuple[int, ...]
    votes: float

    @property
    def cells(self) -> int:
        """Number of its cells."""
        return len(self.clear) + len(self.doubtful)


class NamedCells(Protocol):
    """Cells with their labels, of which some are clear of the noise."""

    @property
    def labels(self) -> Iterable[int]:
        """Label of each cell, an index."""

    @property
    def names(self) -> Sequence[str | None]:
        """Name of the label of each cell; None where it may be noise."""

    @property
    def label_names(self) -> Sequence[str]:
        """Names of all labels."""

    @property
    def label_votes(self) -> Any:
        """Votes per cell and label."""


def groups(found: NamedCells) -> tuple[Group, ...]:
    """Return the environments that cells make up: those with a clear name first, by votes."""
    labels = [int(label) for label in found.labels]
    made = []
    for label in sorted(set(labels)):
        rows = [row for row, each in enumerate(labels) if each == label]
        made.append(
            Group(
                label,
                found.label_names[label],
                tuple(row for row in rows if found.names[row] is not None),
                tuple(row for row in rows if found.names[row] is None),
                float(sum(found.label_votes[row][label] for row in rows)),
            )
        )
    return tuple(sorted(made, key=lambda group: (not group.clear, -group.votes)))


def numbers(rows: tuple[int, ...]) -> str:
    """Return the numbers, from 1, by which people know cells."""
    return ", ".join(str(row + 1) for row in rows)
