"""Files that are there whole or not at all, and are on the disk when their writer returns."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OWNER_ONLY = 0o600


@contextmanager
def replacement(path: Path, mode: int = 0o666) -> Iterator[Path]:
    """Give a place to write a file at, which then takes the place of the one that is there.

    Args:
        path: of the file; its folder exists.
        mode: permissions of the file, less the process's mask.

    Yields:
        An empty file with the same suffix, in the same folder; after an exception nothing of it
        remains, and the old file is as it was.
    """
    with _draft(path, mode) as draft:
        yield draft
        _to_disk(draft)
        draft.replace(path)
        _to_disk(path.parent)


def replace_file(path: Path, content: str | bytes, mode: int = 0o666) -> None:
    """Make or replace a file; text is written as UTF-8.

    Args:
        path: of the file; its folder exists.
        content: all of it.
        mode: permissions of the file, less the process's mask.
    """
    with replacement(path, mode) as draft:
        draft.write_bytes(content.encode() if isinstance(content, str) else content)


@contextmanager
def made_whole(path: Path) -> Iterator[Path]:
    """Give a place to make a file at, which then has its own name, if nobody else was first.

    So a file of that name without content is never one that was about to be made.

    Args:
        path: of the file; its folder exists.

    Yields:
        An empty file for its owner only, in the same folder.

    Raises:
        OSError: the file cannot be made; nothing of it remains.
    """
    with _draft(path, OWNER_ONLY) as draft:
        yield draft
        _to_disk(draft)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)  # where a rename would replace what another process has made
    _to_disk(path.parent)


@contextmanager
def _draft(path: Path, mode: int) -> Iterator[Path]:
    writer = f"{os.getpid()}-{threading.get_ident()}"
    draft = path.with_name(f".{path.stem}.{writer}{path.suffix}")
    draft.unlink(missing_ok=True)  # left over from a process that was killed
    try:
        os.close(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        yield draft
    finally:
        draft.unlink(missing_ok=True)


def _to_disk(place: Path) -> None:
    """Wait until a file's content, or a folder's names, would outlive a power cut."""
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
