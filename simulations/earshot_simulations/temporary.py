"""Temporary folders that are removed once their process has ended.

A folder is locked while its process lives. joblib's resource tracker, a process that ignores
SIGTERM and Ctrl-C, removes it if its owner is killed. If the tracker is killed as well, the next
process on this machine that makes a folder of the kind removes it: a free lock marks an abandoned
folder.
"""

from __future__ import annotations

import fcntl
import glob
import os
import platform
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self


class TemporaryFolder:
    """A new folder of the system's temporary folder (TMPDIR), for its owner alone.

    Attributes:
        path: Path of the folder.

    Args:
        holds: Word for the content of the folder; it is part of the folder's name.
    """

    def __init__(self, holds: str) -> None:
        _remove_abandoned(holds)
        import joblib

        self.path, lock = _made(holds)
        with suppress(ValueError):  # it takes only short ASCII names
            joblib.externals.loky.backend.resource_tracker.register(str(self.path), "folder")
        self._end = weakref.finalize(self, _remove, self.path, lock, os.getpid())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Remove the folder; also called when this object or its process ends."""
        self._end()


def _name(holds: str) -> str:
    # A lock may hold on one machine alone, and several may share TMPDIR.
    return f"earshot-{holds}-{platform.node()}-"


def _made(holds: str) -> tuple[Path, int]:
    """Make a folder and lock it; return it and the open file that holds the lock."""
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_name(holds)))
        # Before it is locked, another process may remove it as abandoned.
        with suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY)
            with suppress(OSError):  # a file system without locks: the folder counts as locked
                fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)


def _remove(folder: Path, lock: int, owner: int) -> None:
    import joblib

    if os.getpid() != owner:  # a forked copy does not own the folder
        return
    shutil.rmtree(folder, ignore_errors=True)
    with suppress(ValueError):
        joblib.externals.loky.backend.resource_tracker.unregister(str(folder), "folder")
    os.close(lock)


def _remove_abandoned(holds: str) -> None:
    """Remove the folders of one kind whose processes are gone."""
    for folder in Path(tempfile.gettempdir()).glob(f"{glob.escape(_name(holds))}*"):
        with suppress(OSError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            try:
                if os.fstat(lock).st_uid == os.geteuid():
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)
