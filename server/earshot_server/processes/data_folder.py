"""Data folder of a server: it can be written, and one server has it at a time."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from earshot_protocol.errors import LocalError
from earshot_protocol.files import OWNER_ONLY

SERVER_LOCK = "server.lock"
"""File that whoever serves from a data folder holds."""

_log = logging.getLogger(__name__)


class DataFolderError(LocalError):
    """The data folder cannot be written."""


class FolderInUseError(LocalError):
    """Another process has the data folder."""


def check_writable(folder: Path) -> None:
    """Check the folder here, before a process that would be restarted again and again fails.

    Raises:
        DataFolderError: The folder cannot be made or written.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        if folder.stat().st_mode & (stat.S_IRWXG | stat.S_IROTH | stat.S_IWOTH):
            _log.warning("the data folder %s is open to other users: chmod 700 it", folder)
    except OSError as error:
        raise _unwritable(folder, error) from error


@contextmanager
def owning(folder: Path, name: str = SERVER_LOCK) -> Iterator[None]:
    """Hold a folder for this process alone, until the block or the process ends, however it does.

    Children do not inherit it.

    Args:
        folder: Folder, which exists.
        name: File in it that stands for what only one process may do.

    Raises:
        FolderInUseError: Another process holds it.
        DataFolderError: The file cannot be written or locked.
    """
    try:
        lock = os.fdopen(os.open(folder / name, os.O_RDWR | os.O_CREAT, OWNER_ONLY), "rb")
    except OSError as error:
        raise _unwritable(folder, error) from error
    with lock:
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError) as error:  # systems differ in which it is
            raise FolderInUseError(
                f"{folder} is in use by another server: stop that one, or choose another --data"
            ) from error
        except OSError as error:
            raise _unwritable(folder, error) from error
        yield


def _unwritable(folder: Path, error: OSError) -> DataFolderError:
    return DataFolderError(
        f"the data folder {folder} cannot be written ({error.strerror}): choose another --data"
    )
