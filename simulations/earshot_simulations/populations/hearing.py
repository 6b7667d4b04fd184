"""Sound is heard once: what several populations hear alike is embedded by the first of them."""

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
"""How the names of temporary folders begin."""


@dataclass(frozen=True)
class Kept:
    """Where populations keep what they have heard for one another; processes may share it.

    Attributes:
        folder: whoever made it removes it.
        most: how many hearings it holds; those not asked for the longest give way to new ones.
    """

    folder: Path
    most: int

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let populations that are prepared within, in this process, look there first."""
        before = _KEPT.set(self)
        try:
            yield
        finally:
            _KEPT.reset(before)


_KEPT: ContextVar[Kept | None] = ContextVar("kept", default=None)


@contextmanager
def hearing_once(most: int = 1) -> Iterator[Kept]:
    """Let populations that are prepared within hear the same sound once.

    What was heard lies in the system's temporary folder (TMPDIR), and is removed on leaving. Inside
    another of these, the outer one serves.

    Args:
        most: how many hearings are kept at a time, at least 1.

    Yields:
        where they are kept, for other processes to use.

    Raises:
        OSError: there is no room for it.
    """
    outer = _KEPT.get()
    if outer is not None:
        yield outer
        return
    with TemporaryDirectory(prefix=PREFIX, ignore_cleanup_errors=True) as folder:
        kept = Kept(Path(folder), most)
        with kept.used():
            yield kept


@contextmanager
def heard(what: object, hear: Callable[[Path], None]) -> Iterator[Path]:
    """The folder of what was heard; it is there inside the context, and may go afterwards.

    Args:
        what: whose `repr` says all that the sound depends on.
        hear: writes it to an empty folder, where nobody has before. One process does, and others
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
            # Renamed when it is whole: a process that is killed leaves nothing that passes for it.
            unfinished = place.with_suffix(".new")
            shutil.rmtree(unfinished, ignore_errors=True)
            unfinished.mkdir()
            hear(unfinished)
            unfinished.rename(place)
        _make_room(kept, place)
        yield place


def _make_room(kept: Kept, newest: Path) -> None:
    """Remove what is too many; what another process is reading stays until the next time."""
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
