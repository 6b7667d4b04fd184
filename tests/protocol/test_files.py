"""Files that are replaced whole, or made by whoever is first."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from earshot_protocol.files import OWNER_ONLY, made_whole, replace_file, replacement


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
