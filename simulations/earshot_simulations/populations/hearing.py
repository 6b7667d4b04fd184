"""A cache of embedded sound, shared by the populations of this run and of later ones.

What was heard has the bits that hearing it again would have: it is known by the sound, the encoder
and everything of the machine that decides bits, and is read only if it is as it was written.
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
"""Environment variable with the folder of hearings for later runs; by default the user's cache."""


@dataclass(frozen=True)
class Hearings:
    """A place where populations keep what they have heard for one another; processes may share it.

    The least recently used hearings give way to new ones once there are more than `most` of them,
    and these take more than `room`.

    Attributes:
        folder: Folder of the hearings; whoever made it removes it.
        most: Hearings that are held whatever their size.
        room: Bytes of hearings that are held however many they are.
    """

    folder: Path
    most: int
    room: int = 0

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
    another such context, or in `hearing_kept`, the outer one serves.

    Args:
        most: Most hearings that are kept at a time, at least 1.

    Yields:
        The place where they are kept, for other processes to use.

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
    """Disable the cache within the block.

    Hearings stay on disk, at most `ROOM` of them: in the folder that the environment variable
    EARSHOT_HEARINGS names, or in the user's cache. Where neither is there or can be written, the
    same as `hearing_once`.

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

    None for a user without a home, such as a container's number with no name. A cache that is found
    from the working directory is none either: somebody else may have made it.
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
    """Return whether a folder is there, or can be made, and can be written to."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryDirectory(dir=folder):
            return True
    except OSError:
        return False


@contextmanager
def heard(what: object, hear: Callable[[Path], None]) -> Iterator[Path]:
    """Yield the folder of a hearing, which exists within the context, and perhaps afterwards.

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

    A process that is killed leaves nothing that looks complete.
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
    """Return whether a hearing is there, with every bit as it was written."""
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
    """Remove surplus and unfinished hearings, but for those that another process is using."""
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
