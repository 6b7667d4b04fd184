"""Progress of long work, on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Progress(Protocol):
    """Told what is done, how much of it, of how much, and perhaps a line that says more."""

    def __call__(self, what: str, done: int, total: int, line: str | None = None) -> None:
        """Show it."""


@contextmanager
def shown() -> Iterator[Progress]:
    """One line per piece of work: what it is, how far it is, how long it took and will take."""
    from rich import progress as rich
    from rich.console import Console

    display = rich.Progress(
        rich.TextColumn("{task.description:<32}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
        console=Console(stderr=True),
    )
    lines: dict[str, rich.TaskID] = {}

    def progress(what: str, done: int, total: int, line: str | None = None) -> None:
        display.start()
        if what not in lines:
            lines[what] = display.add_task(what, total=total)
        display.update(lines[what], completed=done, total=total, description=line or what)

    try:
        yield progress
    finally:
        if lines:
            display.stop()
