"""Runs that are interrupted, and go on where they ended."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from earshot_models.commands.progress import shown
from earshot_protocol.progress import Progress


@contextmanager
def resumable(folder: Path) -> Iterator[Progress]:
    """Show the progress of a run; its interruption is not a failure and ends it with status 130.

    Args:
        folder: Folder of what is done; made if it does not exist, named when the run is
            interrupted.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with shown() as progress:
            yield progress
    except KeyboardInterrupt:
        print(f"finished work is in {folder}; the same command goes on from there")
        sys.exit(130)
