"""Runs that can be interrupted and resumed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from earshot_models.commands.progress import shown
from earshot_protocol.progress import Progress


@contextmanager
def resumable(folder: Path) -> Iterator[Progress]:
    """Show the progress of a run; on Ctrl-C, report how to resume it and exit with status 130.

    Args:
        folder: Folder of finished work; made if it does not exist.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with shown() as progress:
            yield progress
    except KeyboardInterrupt:
        print(f"finished work is in {folder}; the same command goes on from there")
        sys.exit(130)
