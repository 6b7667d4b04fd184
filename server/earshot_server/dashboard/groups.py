"""Environments as groups of cells: those of one label, as a discovery phase publishes them."""

from __future__ import annotations

from typing import NamedTuple

from earshot_protocol.phases.discovery import Discovered


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


def groups(found: Discovered) -> tuple[Group, ...]:
    """The environments of a discovery phase: those with a clear name first, by their votes."""
    made = []
    for label in sorted(set(found.labels)):
        rows = [row for row, each in enumerate(found.labels) if each == label]
        made.append(
            Group(
                label,
                found.label_names[label],
                tuple(row for row in rows if found.names[row] is not None),
                tuple(row for row in rows if found.names[row] is None),
                sum(found.label_votes[row][label] for row in rows),
            )
        )
    return tuple(sorted(made, key=lambda group: (not group.clear, -group.votes)))


def numbers(rows: tuple[int, ...]) -> str:
    """Cells by the numbers that people know them by, from 1."""
    return ", ".join(str(row + 1) for row in rows)
