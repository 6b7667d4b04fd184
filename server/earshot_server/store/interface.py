"""What a coordinator asks of its store."""

from __future__ import annotations

from typing import Protocol


class PhaseStore(Protocol):
    """Keeps phases: one snapshot each, and the answers accepted since it was taken.

    A snapshot and the deletion of the answers that went into it are one atomic change, so that a
    coordinator which dies at any point is rebuilt from `snapshot` and `answers` without loss.
    """

    def create(self, phase: bytes, snapshot: bytes) -> None:
        """Add a phase.

        Raises:
            InvalidInputError: the phase exists.
        """
        ...

    def phases(self) -> tuple[bytes, ...]:
        """All phases, oldest first."""
        ...

    def snapshot(self, phase: bytes) -> bytes:
        """The newest snapshot.

        Raises:
            InvalidInputError: no such phase.
        """
        ...

    def replace(self, phase: bytes, snapshot: bytes) -> None:
        """Put a new snapshot in place and delete the answers that went into it.

        Raises:
            InvalidInputError: no such phase.
        """
        ...

    def add_answer(self, phase: bytes, phone: int, answer: bytes) -> None:
        """Keep an accepted answer; durable when this returns.

        Raises:
            InvalidInputError: no such phase.
        """
        ...

    def answers(self, phase: bytes) -> tuple[tuple[int, bytes], ...]:
        """The answers accepted since the snapshot: (phone, answer), in order of arrival.

        Raises:
            InvalidInputError: no such phase.
        """
        ...
