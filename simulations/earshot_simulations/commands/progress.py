"""Progress of long work, on standard error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[str, int, int], None]


@contextmanager
def shown() -> Iterator[Progress]:
    """One line per piece of work: what it is, how far it is, how long it took."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TaskID,
        TextColumn,
        TimeElapsedColumn,
    )

    display = Progress(
        TextColumn("{task.description:<32}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
    )
    lines: dict[str, TaskID] = {}

    def progress(what: str, done: int, total: int) -> None:
        display.start()
        if what not in lines:
            lines[what] = display.add_task(what, total=total)
        display.update(lines[what], completed=done, total=total)

    try:
        yield progress
    finally:
        if lines:
            display.stop()
