"""Sharing of sound between populations: the first embeds what others hear alike."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

PREFIX = "earshot-"
"""Prefix of the names of temporary folders."""


@dataclass(frozen=True)
class Hearings:
    """A place where populations keep what they have heard for one another; processes may share it.

    Attributes:
        folder: Folder of the hearings; whoever made it removes it.
        most: Most hearings that it holds; the least recently used give way to new ones.
    """

    folder: Path
    most: int

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let populations that are prepared within, in this process, look here first."""
        before = _KEPT.set(self)
        try:
            yield
        finally:
            _KEPT.reset(before)


_KEPT: ContextVar[Hearings | None] = ContextVar("kept", default=None)


@contextmanager
def hearing_once(most: int = 1) -> Iterator[Hearings]:
    """Let populations that are prepared within hear the same sound once.

    The hearings lie in the system's temporary folder (TMPDIR), and are removed on leaving. Inside
    another such context, the outer one serves.

    Args:
        most: Most hearings that are kept at a time, at least 1.

    Yields:
        The place where they are kept, for other processes to use.

    Raises:
        OSError: There is no room for the hearings.
    """
    outer = _KEPT.get()
    if outer is not None:
        yield outer
        return
    with TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        kept = Hearings(Path(folder), most)
        with kept.used():
            yield kept


@contextmanager
def heard(what: object, hear: Callable[[Path], None]) -> Iterator[Path]:
    """Yield the folder of a hearing, which exists within the context, and perhaps afterwards.

    Args:
        what: Object whose `repr` tells everything that the sound depends on.
        hear: Function that writes the hearing to an empty folder. One process calls it, and others
            that want the same wait for it.
    """
    kept = _KEPT.get()
    if kept is None:
        with TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as own:
            hear(Path(own))
            yield Path(own)
        return
    place = kept.folder / hashlib.sha256(repr(what).encode()).hexdigest()
    with _locked(place):
        if place.exists():
            os.utime(place)
        else:
            # Renamed when complete: a process that is killed leaves nothing that looks complete.
            unfinished = place.with_suffix(".new")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            hear(unfinished)
            unfinished.rename(place)
        _make_room(kept, place)
        yield place


def _make_room(kept: Hearings, newest: Path) -> None:
    """Remove surplus hearings; one that another process is reading stays until the next time."""
    places = (place for place in kept.folder.iterdir() if place.is_dir() and not place.suffix)
    others = sorted(set(places) - {newest}, key=lambda place: place.stat().st_mtime_ns)
    for place in others[: len(others) + 1 - kept.most]:
        with suppress(BlockingIOError), _locked(place, fcntl.LOCK_NB):
            shutil.rmtree(place, ignore_errors=True)


@contextmanager
def _locked(place: Path, how: int = 0) -> Iterator[None]:
    with place.with_suffix(".lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | how)
        yield
