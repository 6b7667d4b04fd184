"""A temporary home directory for users without one: libraries store caches there."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CACHES = {"XDG_CACHE_HOME": ".cache", "MPLCONFIGDIR": ".matplotlib", "KERAS_HOME": ".keras"}
"""Environment variables of caches, and their folders in a temporary home."""


@contextmanager
def writable_home() -> Iterator[bool]:
    """Provide writable cache folders to libraries that are loaded in this context.

    A container's user may be a number without a home, and a node's home may be read-only. Some
    libraries then raise; others use a path in the working directory or in /tmp that any user could
    have filled, and what numba reads there is run. So such a user gets a private folder for as long
    as the context lasts. A home that can be read is still read.

    Yields:
        Whether the home was not writable.
    """
    before = dict(os.environ)
    if not os.path.isabs(before.get("XDG_CACHE_HOME") or os.sep):
        del os.environ["XDG_CACHE_HOME"]  # its specification says to ignore relative paths
    home, own, owner = Path(os.path.expanduser("~")), None, os.getpid()
    lacking = not (home.is_absolute() and _writable(home))
    if lacking and (own := _new_folder()) is not None:
        if not (home.is_absolute() and home.is_dir()):
            os.environ["HOME"] = str(own)
        for name, place in _CACHES.items():
            os.environ.setdefault(name, str(own / place))
    try:
        yield lacking
    finally:
        if own is not None and os.getpid() == owner:  # and not a process forked from it
            shutil.rmtree(own, ignore_errors=True)
        os.environ.clear()
        os.environ.update(before)


def _new_folder() -> Path | None:
    try:
        return Path(tempfile.mkdtemp(prefix="earshot-home-"))
    except OSError:  # code that needs temporary files reports it
        return None


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
