"""Files that are either complete or absent, and on the disk when their writer returns."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import glob
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OWNER_ONLY = 0o600
NO_PERMISSIONS = (
    "if that has no effect, the file system stores no permissions (exFAT and most network shares "
    "store none): use a folder on another one"
)
"""Advice that follows `chmod` where a secret is open to other users."""

_DRAFT = re.compile(r"\d+-\d+(\.[\w-]+)?")
"""End of a draft's name, after the name of its file: process, thread and suffix."""
_ABANDONED_SECONDS = 24 * 3600.0
"""Age from which a draft is considered left over by a killed process."""
_NO_FOLDER_SYNC = {errno.EINVAL, errno.ENOTSUP, errno.ENOSYS}
"""Errors of file systems, such as network shares and FUSE, that cannot sync folders."""


@contextmanager
def replacement(path: Path, mode: int = 0o666) -> Iterator[Path]:
    """Yield a path to write to; the file there then replaces the one at `path`.

    Args:
        path: Path of the file; its folder exists.
        mode: Permissions of the file, less the process's mask.

    Yields:
        An empty file with the same suffix, in the same folder; after an exception nothing of it
        remains, and the old file is unchanged.
    """
    with _draft(path, mode) as draft:
        yield draft
        to_disk(draft)
        draft.replace(path)
        to_disk(path.parent)


def replace_file(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Make or replace a file; text is written as UTF-8.

    Args:
        path: Path of the file; its folder exists.
        content: Whole content of the file.
        mode: Permissions of the file, less the process's mask.
    """
    with replacement(path, mode) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """Yield a path to write to; the file there is then renamed to `path`, unless that exists.

    Hence an empty file at `path` is never an unfinished one.

    Args:
        path: Path of the file; its folder exists.

    Yields:
        An empty file that only its owner can read, in the same folder.

    Raises:
        OSError: The file cannot be made; nothing of it remains.
    """
    with _draft(path, OWNER_ONLY) as draft:
        yield draft
        to_disk(draft)
        with _turn(path):
            if not os.path.lexists(path):
                draft.rename(path)
    to_disk(path.parent)


@contextmanager
def _turn(path: Path) -> Iterator[None]:
    """Hold the lock for naming a file: a rename alone would replace another process's file.

    Hard links would name it without replacing another, but Android, exFAT and network shares have
    none. A killed process leaves no lock behind.
    """
    place = path.with_name(f".{path.name}.turn")
    while True:
        handle = os.open(place, os.O_RDWR | os.O_CREAT, OWNER_ONLY)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX)
            except OSError as error:
                place.unlink(missing_ok=True)
                why = f"the file system has no locks ({error.strerror})"
                raise OSError(error.errno, why, str(path.parent)) from error
            if _is_at(handle, place):  # else the previous holder has removed it
                try:
                    yield
                finally:
                    place.unlink(missing_ok=True)
                return
        finally:
            os.close(handle)


def _is_at(handle: int, place: Path) -> bool:
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(handle), place.stat())
    return False


@contextmanager
def _draft(path: Path, mode: int) -> Iterator[Path]:
    """Make an empty file beside `path`, and remove it at the end if it is still there."""
    begun = f".{path.stem}."
    for left_over in path.parent.glob(f"{glob.escape(begun)}*{glob.escape(path.suffix)}"):
        with contextlib.suppress(FileNotFoundError):
            if _DRAFT.fullmatch(left_over.name, len(begun)) and _is_old(left_over):
                left_over.unlink()
    draft = path.with_name(f"{begun}{os.getpid()}-{threading.get_ident()}{path.suffix}")
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _is_old(draft: Path) -> bool:
    return time.time() - draft.stat().st_mtime > _ABANDONED_SECONDS


def to_disk(place: Path) -> None:
    """Flush a file's content, or a folder's names, to the disk.

    Where a file system cannot do that for folders, a power cut may lose the newest names; a file
    that has its name is complete even there.
    """
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC or not place.is_dir():
            raise
    finally:
        os.close(handle)
