"""Interface by which long work shows its progress."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Display of the progress of a piece of work."""

    def __call__(self, what: str, done: int, total: int, line: str | None = None) -> None:
        """Show the progress of a piece of work.

        Args:
            what: Name of the piece of work.
            done: Units of the work that are done.
            total: Units of the work in all.
            line: Text to show instead of the name.
        """


def silent(what: str, done: int, total: int, line: str | None = None) -> None:
    """Ignore progress."""
