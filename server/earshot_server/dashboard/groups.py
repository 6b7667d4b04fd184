"""Environments as groups of cells: those of one label, as a discovery phase publishes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol


class Group(NamedTuple):
    """One environment.

    Attributes:
        label: of its cells, an index.
        name: the label.
        clear: its cells whose name stands clear of the noise, from 0.
        doubtful: its cells whose name may be noise.
        votes: for its label, in all of its cells.
    """

    label: int
    name: str
    clear: tuple[int, ...]
    doubtful: tuple[int, ...]
    votes: float

    @property
    def cells(self) -> int:
        """How many cells it has."""
        return len(self.clear) + len(self.doubtful)


class NamedCells(Protocol):
    """What knows cells, their labels, and which of these are clear of the noise."""

    @property
    def labels(self) -> Iterable[int]:
        """Of each cell, an index."""

    @property
    def names(self) -> Sequence[str | None]:
        """The label of each cell; None where it may be noise."""

    @property
    def label_names(self) -> Sequence[str]:
        """All labels."""

    @property
    def label_votes(self) -> Any:
        """Per cell and label."""


def groups(found: NamedCells) -> tuple[Group, ...]:
    """The environments that cells make up: those with a clear name first, by their votes."""
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
    """Cells by the numbers that people know them by, from 1."""
    return ", ".join(str(row + 1) for row in rows)
