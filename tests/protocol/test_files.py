"""Files that are replaced whole, or made by whoever is first."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import stat
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytest

from earshot_protocol.errors import InvalidInputError
from earshot_protocol.files import OWNER_ONLY, made_whole, replace_file, replacement, to_disk
from earshot_protocol.journal import opened


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def half_write(writer: AbstractContextManager[Path], places: list[Path]) -> None:
    with writer as draft:
        places.append(draft)
        draft.write_text("half")
        raise OSError("full")


def test_a_file_is_made_and_replaced_and_nothing_else_is_left(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    replace_file(path, "one")
    replace_file(path, "zwölf")
    assert path.read_text(encoding="utf-8") == "zwölf"
    replace_file(path, b"\x00")
    assert path.read_bytes() == b"\x00"
    assert names(tmp_path) == ["a.txt"]


def test_a_writer_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    replace_file(path, "old")
    places: list[Path] = []
    with pytest.raises(OSError, match="full"):
        half_write(replacement(path), places)
    ((folder, suffix),) = [(draft.parent, draft.suffix) for draft in places]
    assert (folder, suffix) == (tmp_path, ".keras")
    assert path.read_text() == "old"
    assert names(tmp_path) == ["model.keras"]


def test_a_killed_writers_draft_goes_once_it_is_old(tmp_path: Path) -> None:
    with replacement(tmp_path / "key") as draft:
        pass
    other = tmp_path / draft.name.replace("key", "keys")
    for left_over in (draft, other, tmp_path / ".key.mine"):
        left_over.write_text("half")
        os.utime(left_over, (0, 0))
    young = tmp_path / ".key.1-1"
    young.write_text("half")
    replace_file(tmp_path / "key", "whole")
    assert names(tmp_path) == sorted([".key.1-1", ".key.mine", other.name, "key"])
    os.utime(young, (0, 0))
    with made_whole(tmp_path / "key"):
        pass
    assert names(tmp_path) == sorted([".key.mine", other.name, "key"])


@pytest.mark.parametrize(("hours", "left"), [(23.9, [".key.1-1"]), (24.1, [])])
def test_a_draft_is_left_over_after_a_day(tmp_path: Path, hours: float, left: list[str]) -> None:
    draft, then = tmp_path / ".key.1-1", time.time() - 3600 * hours
    draft.write_text("half")
    os.utime(draft, (then, then))
    replace_file(tmp_path / "key", "whole")
    assert names(tmp_path) == [*left, "key"]


def make_whole(path: Path, content: str) -> None:
    with made_whole(path) as draft:
        draft.write_text(content)


@pytest.mark.parametrize("write", [replace_file, make_whole])
def test_content_and_name_are_on_the_disk_before_the_writer_returns(
    write: Callable[[Path, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a"
    synced: list[tuple[str, bool]] = []
    fsync = os.fsync

    def noted(handle: int) -> None:
        place = Path(os.readlink(f"/proc/self/fd/{handle}"))
        synced.append((place.name, path.exists()))
        fsync(handle)

    monkeypatch.setattr(os, "fsync", noted)
    descriptors = os.listdir("/proc/self/fd")
    write(path, "x")
    assert os.listdir("/proc/self/fd") == descriptors
    (draft, before), (folder, after) = synced
    assert (draft.startswith(".a."), before) == (True, False)
    assert (folder, after) == (tmp_path.name, True)


@pytest.mark.parametrize(("mode", "seen"), [(0o666, 0o644), (OWNER_ONLY, OWNER_ONLY)])
def test_a_file_has_its_permissions_from_its_first_byte_on(
    tmp_path: Path, mode: int, seen: int
) -> None:
    mask = os.umask(0o022)
    try:
        with replacement(tmp_path / "a", mode) as draft:
            assert stat.S_IMODE(draft.stat().st_mode) == seen
    finally:
        os.umask(mask)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == seen


def test_of_two_that_make_a_file_the_first_wins(tmp_path: Path) -> None:
    path = tmp_path / "key"

    def make(content: int) -> None:
        with made_whole(path) as draft:
            assert stat.S_IMODE(draft.stat().st_mode) == OWNER_ONLY
            draft.write_text(str(content) * 1000)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make, range(8)))
    first = path.read_text()
    assert len(set(first)) == 1
    assert len(first) == 1000
    make(9)
    assert path.read_text() == first
    assert names(tmp_path) == ["key"]


def test_nothing_remains_of_a_file_that_could_not_be_made(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="full"):
        half_write(made_whole(tmp_path / "key"), [])
    assert names(tmp_path) == []
    with pytest.raises(FileNotFoundError):
        replace_file(tmp_path / "no" / "folder", "x")


# ------------------------------------------------- file systems without links, locks or syncs

STEPS = ("open", "fsync", "rename", "unlink", "close")
"""Functions of `os` that change something on the way to a file's name."""


def test_nothing_of_the_product_needs_hard_links() -> None:
    root = Path(__file__).parents[2]
    packages = ("protocol", "client", "server", "models", "simulations")
    sources = [file for each in packages for file in (root / each).rglob("*.py")]
    assert len(sources) > 300
    linking = re.compile(r"\bos\.link\b|hardlink_to")
    assert [str(file) for file in sources if linking.search(file.read_text("utf-8"))] == []


def test_a_file_that_comes_meanwhile_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second maker starts when the first has found the name free, and not taken it yet."""
    path, exists = tmp_path / "key", os.path.lexists
    asked = [threading.Event(), threading.Event()]
    second = threading.Thread(target=make_whole, args=(path, "second"))

    def asking(place: Path) -> bool:
        there = exists(place)
        if not asked[0].is_set():
            asked[0].set()
            second.start()
            asked[1].wait(0.3)  # in vain: the other one's turn comes later
        else:
            asked[1].set()
        return there

    monkeypatch.setattr(os.path, "lexists", asking)
    make_whole(path, "first")
    second.join()
    assert asked[1].is_set()
    assert path.read_text() == "first"
    assert names(tmp_path) == ["key"]


def test_a_turn_that_was_removed_is_no_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits for one that had its turn gets the lock of a file that is gone by then."""
    lock, exists = fcntl.flock, os.path.lexists
    place, locked, held = tmp_path / ".key.turn", [], []

    def late(handle: int, how: int) -> None:
        lock(handle, how)
        locked.append(os.fstat(handle))
        if len(locked) < 3:
            place.unlink()
        if len(locked) == 2:
            place.touch()

    def asking(path: Path) -> bool:
        held.append(os.path.samestat(locked[-1], place.stat()))
        return exists(path)

    monkeypatch.setattr(fcntl, "flock", late)
    monkeypatch.setattr(os.path, "lexists", asking)
    make_whole(tmp_path / "key", "x")
    assert (len(locked), held) == (3, [True])
    assert names(tmp_path) == ["key"]


def killing(patch: pytest.MonkeyPatch, end: Callable[[], Any], at: int) -> list[str]:
    """Let `end` come before the step with that number; return the steps so far, in time."""
    done: list[str] = []

    def noted(name: str, do: Callable[..., Any]) -> Callable[..., Any]:
        def step(*given: Any, **more: Any) -> Any:
            done.append(name)
            if len(done) == at:
                end()
            return do(*given, **more)

        return step

    for name in STEPS:
        patch.setattr(os, name, noted(name, getattr(os, name)))
    return done


def test_whenever_its_maker_is_killed_a_file_is_whole_or_absent(tmp_path: Path) -> None:
    absent, whole = 0, 0
    for at in range(1, 100):
        folder = tmp_path / str(at)
        folder.mkdir()
        child = os.fork()
        if not child:
            with pytest.MonkeyPatch.context() as patch:
                killing(patch, lambda: os._exit(9), at)
                make_whole(folder / "key", "x" * 1000)
                os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, 9)
        there = (folder / "key").exists()
        assert not there or (folder / "key").read_text() == "x" * 1000
        absent, whole = absent + (not there), whole + there
        assert all(name == "key" or name.startswith(".key.") for name in names(folder))
        make_whole(folder / "key", "y")
        assert (folder / "key").read_text() == ("x" * 1000 if there else "y")
        if status == 0:
            break
    assert status == 0
    assert min(absent, whole) >= 4


def test_whatever_step_fails_a_file_is_whole_or_absent(tmp_path: Path) -> None:
    def fail() -> None:
        raise OSError(errno.EIO, "broken")

    def made(path: Path) -> bool:
        with contextlib.suppress(OSError):
            make_whole(path, "x" * 1000)
            return True
        return False

    failed = 0
    for at in range(1, 100):
        folder = tmp_path / str(at)
        folder.mkdir()
        with pytest.MonkeyPatch.context() as patch:
            done = killing(patch, fail, at)
            failed += not made(folder / "key")
            ended = len(done) < at
        there = (folder / "key").exists()
        assert not there or (folder / "key").read_text() == "x" * 1000
        make_whole(folder / "key", "y")
        assert (folder / "key").read_text() == ("x" * 1000 if there else "y")
        if ended:
            break
    assert ended
    assert failed == at - 1


@pytest.mark.parametrize("number", [errno.EINVAL, errno.ENOTSUP, errno.ENOSYS])
def test_a_folder_that_cannot_be_synced_is_not_an_error_but_a_broken_disk_is(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync = os.fsync

    def refuse(handle: int) -> None:
        if stat.S_ISDIR(os.fstat(handle).st_mode):
            raise OSError(number, "of folders")
        sync(handle)

    def broken(handle: int) -> None:
        raise OSError(errno.EIO if stat.S_ISDIR(os.fstat(handle).st_mode) else number, "broken")

    monkeypatch.setattr(os, "fsync", refuse)
    make_whole(tmp_path / "key", "x")
    replace_file(tmp_path / "other", "x")
    assert names(tmp_path) == ["key", "other"]
    monkeypatch.setattr(os, "fsync", broken)
    for place in (tmp_path, tmp_path / "key"):
        with pytest.raises(OSError, match="broken"):
            to_disk(place)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS])
def test_a_file_system_without_locks_is_named(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", refuse)
    with pytest.raises(OSError, match="the file system has no locks") as raised:
        make_whole(tmp_path / "key", "x")
    assert raised.value.errno == number
    assert names(tmp_path) == []
    with (
        pytest.raises(InvalidInputError, match="the file system has no locks"),
        opened(tmp_path / "journal"),
    ):
        pass
