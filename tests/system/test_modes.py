"""What server and phone keep is for their own account, however open the umask is."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.networked import ServerProcess, await_

from earshot_client.commands.folder import opened
from earshot_server.credentials import Credentials


@pytest.fixture
def no_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder: Path, passable: int = 0) -> list[str]:
    """Whatever is there that others may read, write, or, beyond `passable`, pass through."""
    found = []
    for path in (folder, *folder.rglob("*")):
        mode = path.lstat().st_mode
        if not stat.S_ISLNK(mode) and mode & 0o077 & ~passable:
            found.append(f"{path} {stat.filemode(mode)}")
    return found


@pytest.mark.usefixtures("no_umask")
def test_the_servers_folder_is_its_own(tmp_path: Path) -> None:
    data = tmp_path / "new" / "deep" / "data"
    server = ServerProcess(tmp_path)
    server.data = data
    with server:
        # As root, PostgreSQL is somebody else, who must pass through; nobody reads.
        passable = stat.S_IXOTH if os.geteuid() == 0 else 0
        assert open_to_others(tmp_path / "new", passable) == []
        assert open_to_others(data / "postgresql") == []
        assert {"operator.token", "invitation.key", "postgresql.log"} <= set(os.listdir(data))
    assert open_to_others(tmp_path / "new", passable) == []


@pytest.mark.slow
@pytest.mark.usefixtures("no_umask")
def test_a_log_that_others_may_read_is_closed_and_an_open_folder_is_told_of(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir(mode=0o755)
    (data / "postgresql.log").touch(mode=0o644)
    server = ServerProcess(data)
    with server:
        assert open_to_others(data / "postgresql.log") == []
        assert stat.S_IMODE(data.stat().st_mode) == 0o755  # it may hold what is not ours
        told = f"the data folder {data} is open to other users"
        await_(lambda: told in server.log.read_text(), "a word about the data folder")


@pytest.mark.usefixtures("no_umask")
def test_credentials_make_a_folder_of_their_own(tmp_path: Path) -> None:
    Credentials.load_or_create(tmp_path / "data")
    assert open_to_others(tmp_path / "data") == []


@pytest.mark.usefixtures("no_umask")
def test_a_phones_folder_is_its_own(tmp_path: Path) -> None:
    data = tmp_path / "new" / "deep" / "phone"
    store = opened(data)
    store.put("name", b"value")
    assert len(list(data.iterdir())) == 3  # with the journal
    assert open_to_others(tmp_path / "new") == []
    store.close()
    (data / "phone.db").chmod(0o644)
    opened(data).close()
    assert open_to_others(tmp_path / "new") == []
