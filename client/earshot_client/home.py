"""A home for a command whose user has none: libraries keep caches there, and some fail without."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_CACHES = {"XDG_CACHE_HOME": ".cache", "MPLCONFIGDIR": ".matplotlib", "KERAS_HOME": ".keras"}
"""Variables that name a cache, and its place in a home that we make."""


@contextmanager
def writable_home() -> Iterator[bool]:
    """Let libraries that are loaded within find caches that they can write.

    A container's user may be a number without a home, and a node's home may be read-only. Some
    libraries then raise; others use a path in the working directory or in /tmp that any user could
    have filled, and what numba reads there is run. So such a user gets a folder of its own for as
    long as the context lasts. A home that can be read is still read.

    Yields:
        Whether there was none that can be written.
    """
    before = dict(os.environ)
    if not os.path.isabs(before.get("XDG_CACHE_HOME") or os.sep):
        del os.environ["XDG_CACHE_HOME"]  # its specification: relative paths are to be ignored
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
    except OSError:  # whoever needs temporary files says so
        return None


def _writable(folder: Path) -> bool:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
