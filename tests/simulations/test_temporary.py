"""Temporary folders: they go with their owner, however it ends, and nobody else's is touched."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from support.networked import await_

from earshot_simulations import temporary
from earshot_simulations.temporary import TemporaryFolder

OWNER = """
import sys
from earshot_simulations.temporary import TemporaryFolder
folder = TemporaryFolder("test")
(folder.path / "state").write_text("secret")
print(folder.path, flush=True)
sys.stdin.readline()
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@contextmanager
def owner(place: Path) -> Iterator[tuple[psutil.Process, Path]]:
    """Yield another process, and the folder that it owns until it is killed or the block ends."""
    with subprocess.Popen(  # noqa: S603 - the program is written above
        [sys.executable, "-c", OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "TMPDIR": str(place)},
    ) as process:
        assert process.stdout is not None
        yield psutil.Process(process.pid), Path(process.stdout.readline().strip())


def test_a_folder_is_its_owners_alone_and_goes_with_the_block_or_the_object(place: Path) -> None:
    with TemporaryFolder("test") as folder:
        assert folder.path.parent == place
        assert folder.path.stat().st_mode & 0o777 == 0o700
        (folder.path / "some").write_text("")
    assert list(place.iterdir()) == []
    folder = TemporaryFolder("test")
    assert list(place.iterdir()) == [folder.path]
    del folder
    assert list(place.iterdir()) == []


def test_a_removed_folder_leaves_no_file_open() -> None:
    with TemporaryFolder("test"):
        before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        with TemporaryFolder("test"):
            assert len(os.listdir("/proc/self/fd")) == before


def test_a_fork_does_not_remove_what_is_its_parents(place: Path) -> None:
    with TemporaryFolder("test") as folder:
        child = os.fork()
        if child == 0:
            folder.remove()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert list(place.iterdir()) == [folder.path]


@pytest.mark.parametrize("name", ["Männer", "x" * 250, os.fsdecode(b"\xff")])
def test_the_temporary_folder_may_have_any_name(
    name: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    named = place / name / name
    named.mkdir(parents=True)
    monkeypatch.setattr(tempfile, "tempdir", str(named))
    with TemporaryFolder("test") as folder:
        assert folder.path.parent == named
    assert list(named.iterdir()) == []


@pytest.mark.slow
def test_a_killed_owners_folder_goes_at_once_or_with_the_next(place: Path) -> None:
    with owner(place) as (process, path):
        process.kill()
        await_(lambda: not path.exists(), "the process that removes it")
    with owner(place) as (process, path):
        with TemporaryFolder("test") as ours:
            assert set(place.iterdir()) == {path, ours.path}  # both are somebody's
        for remover in process.children():  # as where a whole container is killed
            remover.kill()
        process.kill()
    assert (path / "state").read_text() == "secret"
    with TemporaryFolder("another"):
        assert path.exists()
    with TemporaryFolder("test"):
        assert not path.exists()


def test_what_only_looks_like_an_abandoned_folder_stays(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [place / "earshot-test", place / "earshot-test-other.host-12345678"]
    for folder in others:
        folder.mkdir()
    name = temporary._name("test")
    target = place / "target"
    target.mkdir()
    link, file = place / f"{name}link", place / f"{name}file"
    link.symlink_to(target)
    file.write_text("")
    with TemporaryFolder("test"):
        pass
    assert set(place.iterdir()) == {*others, target, link, file}
    mine = place / f"{name}12345678"
    mine.mkdir()
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    with TemporaryFolder("test"):
        assert mine.is_dir()


def test_a_folder_found_before_it_is_locked_costs_its_maker_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, found = tempfile.mkdtemp, []

    def make(**named: Any) -> str:
        folder = made(**named)
        if not found:
            found.append(folder)
            temporary._remove_abandoned("test")
        return folder

    monkeypatch.setattr(tempfile, "mkdtemp", make)
    opened = os.open

    def open_first(path: Any, *given: int, **named: Any) -> int:
        lock = opened(path, *given, **named)
        if len(found) == 1 and Path(path) != Path(found[0]):
            found.append(path)
            temporary._remove_abandoned("test")  # between opening and locking
        return lock

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", open_first)
        folder = TemporaryFolder("test")
    assert len(found) == 2
    assert str(folder.path) not in map(str, found)
    assert list(place.iterdir()) == [folder.path]
    folder.remove()


def test_simultaneous_starts_do_not_remove_each_other(place: Path) -> None:
    begin, wrong = threading.Barrier(8), []

    def start() -> None:
        begin.wait()
        for _ in range(20):
            with TemporaryFolder("test") as folder:
                try:
                    (folder.path / "some").write_text("")
                except OSError as error:
                    wrong.append(error)

    _all(start, 8)
    assert wrong == []
    assert list(place.iterdir()) == []


def test_where_nothing_can_be_locked_nobody_removes_anything(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(file: int, how: int) -> None:
        raise OSError("no locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with TemporaryFolder("test") as one, TemporaryFolder("test") as other:
        assert set(place.iterdir()) == {one.path, other.path}
    assert list(place.iterdir()) == []


def _all(work: Callable[[], None], times: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(times)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
