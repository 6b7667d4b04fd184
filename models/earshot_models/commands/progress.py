"""Progress of long work, on standard error."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from earshot_protocol.progress import Progress

_EVERY = 10.0
"""Seconds between two lines about the same work, without a terminal."""


@contextmanager
def shown() -> Iterator[Progress]:
    """Show one line per task: name, progress, elapsed and remaining time.

    Where standard error is not a terminal, as in a log, print plain lines: one every ten seconds,
    and one when a task is done.
    """
    from rich import progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield _Lines()
        return
    display = rich.Progress(
        rich.TextColumn("{task.description:<32}"),
        rich.BarColumn(),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        rich.TimeRemainingColumn(),
        console=console,
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


class _Lines:
    """Progress for logs: lines are only ever appended."""

    def __init__(self) -> None:
        self._began: dict[str, float] = {}
        self._finished: set[str] = set()
        self._last = time.monotonic()

    def __call__(self, what: str, done: int, total: int, line: str | None = None) -> None:
        """Show progress, see `Progress`."""
        now = time.monotonic()
        began = self._began.setdefault(what, now)
        finished = done >= total
        if what in self._finished or (now - self._last < _EVERY and not finished):
            return
        self._last = now
        if finished:
            self._finished.add(what)
        took = timedelta(seconds=round(now - began))
        print(f"{line or what}: {done:,} of {total:,}, {took}", file=sys.stderr, flush=True)
