"""Files that are either complete or absent, and are on the disk when their writer returns."""

from __future__ import annotations

import contextlib
import glob
import os
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

OWNER_ONLY = 0o600

_DRAFT = re.compile(r"\d+-\d+(\.\w+)?")
"""End of a draft's name, after the name of its file: process, thread and suffix."""
_ABANDONED_SECONDS = 24 * 3600.0
"""Age from which a draft is one of a process that was killed."""


@contextmanager
def replacement(path: Path, mode: int = 0o666) -> Iterator[Path]:
    """Yield a path at which to write a file, which then replaces the one that is there.

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
    """Yield a path at which to make a file, which then gets its name, unless another came first.

    Hence a file of that name without content is never one that was about to be made.

    Args:
        path: Path of the file; its folder exists.

    Yields:
        An empty file for its owner only, in the same folder.

    Raises:
        OSError: The file cannot be made; nothing of it remains.
    """
    with _draft(path, OWNER_ONLY) as draft:
        yield draft
        to_disk(draft)
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)  # a rename would replace what another process has made
    to_disk(path.parent)


@contextmanager
def _draft(path: Path, mode: int) -> Iterator[Path]:
    """Make an empty file beside the one that is written, and remove it however that ends."""
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
    """Wait until a file's content, or a folder's names, would outlive a power cut."""
    handle = os.open(place, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
