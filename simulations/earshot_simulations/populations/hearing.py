"""A cache of embedded sound, shared by the populations of this run and of later ones.

A cached hearing equals a new one bit for bit: its key covers the sound, the encoder and everything
on the machine that affects bits, and its digest is verified on reading.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from earshot_simulations.temporary import TemporaryFolder
from earshot_simulations.versions import sources, versions

ROOM = 2 * 2**30
"""Bytes of hearings that are kept for later runs: about four million seconds of sound."""
_UNFINISHED = ".new"
FOLDER = "EARSHOT_HEARINGS"
"""Environment variable with the folder of the cache; by default in the user's cache."""


@dataclass(frozen=True)
class Hearings:
    """A cache of embedded sound, shared by populations and processes.

    The least recently used hearings are removed once there are more than `most` of them and they
    take more than `room`.

    Attributes:
        folder: Folder of the hearings; its creator removes it.
        most: Hearings that are kept regardless of their size.
        room: Bytes of hearings that are kept regardless of their number.
    """

    folder: Path
    most: int
    room: int = 0

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let populations that are prepared within, in this process, use this cache."""
        before = _KEPT.set(self)
        try:
            yield
        finally:
            _KEPT.reset(before)


_KEPT: ContextVar[Hearings | None] = ContextVar("kept", default=None)


@contextmanager
def hearing_once(most: int = 1) -> Iterator[Hearings]:
    """Let populations that are prepared within embed the same sound only once.

    The cache is in the system's temporary folder (TMPDIR), and is removed on leaving. Inside
    another such context, or `hearing_kept`, the outer cache is used.

    Args:
        most: Most hearings that are kept at a time, at least 1.

    Yields:
        The cache, for other processes to use.

    Raises:
        OSError: There is no room for the hearings.
    """
    outer = _KEPT.get()
    if outer is not None:
        yield replace(outer, most=max(outer.most, most))
        return
    with TemporaryFolder("sound") as folder:
        kept = Hearings(folder.path, most)
        with kept.used():
            yield kept


@contextmanager
def hearing_kept() -> Iterator[Hearings]:
    """Let populations that are prepared within use a cache that is kept for later runs.

    It holds at most `ROOM` bytes afterwards, in the folder of the environment variable
    EARSHOT_HEARINGS, or in the user's cache. If that folder is not writable, this is
    `hearing_once`.

    Yields:
        The place where they are kept, for other processes to use.

    Raises:
        OSError: There is no room for the hearings.
    """
    folder = hearings_folder()
    if folder is None or not _writable(folder):
        with hearing_once() as kept:
            yield kept
        return
    kept = Hearings(folder, 1, ROOM)
    try:
        with kept.used():
            yield kept
    finally:
        _make_room(replace(kept, most=0))


def hearings_folder() -> Path | None:
    """Return the folder in which `hearing_kept` keeps hearings, whether it exists or not.

    None for a user without a home, such as an unnamed user of a container, and for a cache relative
    to the working directory, which another user may control.
    """
    named = os.environ.get(FOLDER)
    if named:
        return Path(named)
    from platformdirs import user_cache_path

    try:
        cache = user_cache_path("earshot")
    except RuntimeError:  # older ones return "~/.cache"
        return None
    return cache / "hearings" if cache.is_absolute() else None


def _writable(folder: Path) -> bool:
    """Return whether a folder exists or can be made, and is writable."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder):
            return True
    except OSError:
        return False


@contextmanager
def heard(what: object, hear: Callable[[Path], None]) -> Iterator[Path]:
    """Yield the folder of a hearing, from the cache if possible; it exists within the context.

    Args:
        what: Object whose `repr` tells the sound and the encoder, by their contents; None for a
            hearing that is not kept.
        hear: Function that writes the hearing to an empty folder. One process calls it, and others
            that want the same wait for it.
    """
    kept = _KEPT.get()
    if kept is None or what is None:
        with TemporaryFolder("sound") as own:
            hear(own.path)
            yield own.path
        return
    made_by = repr((what, versions(), sources()))
    place = kept.folder / hashlib.sha256(made_by.encode()).hexdigest()
    with _locked(place):
        if _complete(place):
            os.utime(place)
        else:
            _hear(place, hear)
        _make_room(kept, place)
        yield place


def _hear(place: Path, hear: Callable[[Path], None]) -> None:
    """Hear into a folder that is renamed when complete, with its digest beside it.

    A killed process leaves only an incomplete folder, recognizable as such.
    """
    unfinished = place.with_suffix(_UNFINISHED)
    for left in (place, unfinished):
        shutil.rmtree(left, ignore_errors=True)
    unfinished.mkdir()
    try:
        hear(unfinished)
        place.with_suffix(".sha256").write_bytes(_digest(unfinished))
        unfinished.rename(place)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise


def _complete(place: Path) -> bool:
    """Return whether a hearing exists and matches its digest."""
    try:
        return place.with_suffix(".sha256").read_bytes() == _digest(place)
    except OSError:
        return False


def _digest(folder: Path) -> bytes:
    found = {}
    for file in sorted(folder.iterdir()):
        with file.open("rb") as content:
            found[file.name] = hashlib.file_digest(content, "sha256").hexdigest()
    return json.dumps(found).encode()


def _make_room(kept: Hearings, newest: Path | None = None) -> None:
    """Remove surplus and unfinished hearings, except those in use by another process."""
    places = {place for place in kept.folder.iterdir() if place.is_dir() and not place.suffix}
    others = sorted(places - {newest}, key=_used_last, reverse=True)
    for unfinished in kept.folder.glob(f"*{_UNFINISHED}"):  # of a process that was killed
        with suppress(BlockingIOError), _locked(unfinished, fcntl.LOCK_NB):
            shutil.rmtree(unfinished, ignore_errors=True)
    held, size = 0, 0
    for place in [newest, *others] if newest else others:
        held, size = held + 1, size + _size(place)
        if place != newest and held > kept.most and size > kept.room:
            with suppress(BlockingIOError), _locked(place, fcntl.LOCK_NB):
                shutil.rmtree(place, ignore_errors=True)
                place.with_suffix(".sha256").unlink(missing_ok=True)


def _used_last(place: Path) -> int:
    with suppress(OSError):  # another process may have removed it
        return place.stat().st_mtime_ns
    return 0


def _size(place: Path) -> int:
    with suppress(OSError):
        return sum(file.stat().st_size for file in place.iterdir())
    return 0


@contextmanager
def _locked(place: Path, how: int = 0) -> Iterator[None]:
    with place.with_suffix(".lock").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX | how)
        yield
