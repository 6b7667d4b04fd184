"""Checks of a server's data folder: it is writable, and only one server uses it."""

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
"""Lock file of the process that serves from a data folder."""

_log = logging.getLogger(__name__)


class DataFolderError(LocalError):
    """The data folder cannot be written."""


class FolderInUseError(LocalError):
    """Another process uses the data folder."""


def check_writable(folder: Path) -> None:
    """Check that the folder is writable, before child processes would fail and be restarted.

    Raises:
        DataFolderError: The folder cannot be created or written.
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
    """Lock a folder for this process, until the block or the process ends, even if it is killed.

    Child processes do not inherit the lock.

    Args:
        folder: Folder, which exists.
        name: Name of the lock file.

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
        except (BlockingIOError, PermissionError) as error:  # which one depends on the system
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
