"""Creation of a file that is either complete or absent."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from pathlib import Path

_ALONE = threading.Lock()
"""Lock of the temporary name, which threads of one process share."""


@contextlib.contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """Make a file under another name, and give it its own on leaving, unless another came first.

    So a file of that name without content is never one that was about to be made.

    Args:
        path: Path of the file; its folder exists.

    Yields:
        The path at which to make it: an empty file for its owner only, whose content the caller
        syncs.

    Raises:
        OSError: The file cannot be made; nothing of it remains.
    """
    fresh = path.with_name(f"{path.name}.{os.getpid()}")
    with _ALONE:
        fresh.unlink(missing_ok=True)  # left over from a process that was killed
        try:
            os.close(os.open(fresh, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
            yield fresh
            with contextlib.suppress(FileExistsError):
                os.link(fresh, path)  # a rename would replace what another process has made
        finally:
            fresh.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
