"""How long work says how far it is."""

from __future__ import annotations

from typing import Protocol


class Progress(Protocol):
    """Shows how far a piece of work is."""

    def __call__(self, what: str, done: int, total: int, line: str | None = None) -> None:
        """Show it.

        Args:
            what: name of the piece of work.
            done: units of it that are done.
            total: units in all.
            line: words to show instead of the name, as long as they are true.
        """


def silent(what: str, done: int, total: int, line: str | None = None) -> None:
    """Ignore progress."""
