"""A helper's folder that is put back, in whatever way: one list a sum is answered, or none."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path

import pytest
from support.debian import program
from support.killed_helper import opened
from support.kills import in_child
from support.operators import (
    NOW,
    Operators,
    another_list,
    entries,
    inputs_of,
    listed,
    request,
    terms,
)

from earshot_protocol.privacy.sum_noise import WholeLaplace
from earshot_protocol.two_operators.messages import AddUp
from earshot_protocol.two_operators.refusals import HelperRefusalError
from earshot_protocol.wire import encode
from earshot_server.helper import keys
from earshot_server.helper.folder import HelperFolder
from earshot_server.helper.keys import KeyFolderError
from earshot_server.store.database import DatabaseUnavailableError

# A helper that is killed is a fork of this process. A test before these may have imported JAX,
# which then warns of every fork: its threads are not in the fork, where nothing needs them.
pytestmark = pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called.*JAX:RuntimeWarning")

AGREED = terms(noise=WholeLaplace.of(20.0))
Way = Callable[[Path, Path], object]
"""A way to bring what is in one folder into another."""


def run(*words: object) -> None:
    subprocess.run([*map(str, words)], check=True, capture_output=True)  # noqa: S603 - our own


def rsync(*options: str) -> Way:
    def synchronized(there: Path, here: Path) -> None:
        run(program("rsync", "rsync"), "-a", *options, f"{there}/", f"{here}/")

    return synchronized


def linked(there: Path, here: Path) -> None:
    """Keys as hard links, which are the same files; the database as a copy."""
    shutil.copytree(there, here, dirs_exist_ok=True, ignore=shutil.ignore_patterns("keys"))
    run("cp", "-alf", f"{there}/keys/.", f"{here}/keys/")


def linked_by_rsync(there: Path, here: Path) -> None:
    (here / "keys").mkdir(exist_ok=True)
    rsync("--exclude=/keys")(there, here)
    rsync(f"--link-dest={there}/keys")(there / "keys", here / "keys")


def packed(there: Path, here: Path) -> None:
    run("tar", "--create", f"--file={here}.tar", f"--directory={there}", ".")
    run("tar", "--extract", f"--file={here}.tar", f"--directory={here}", "--preserve-permissions")


def anew(there: Path, here: Path) -> None:
    shutil.rmtree(here)
    shutil.copytree(there, here)


def moved(there: Path, here: Path) -> None:
    shutil.rmtree(here)
    there.rename(here)


WAYS: dict[str, Way] = {
    "rsync": rsync(),
    "rsync --delete": rsync("--delete"),
    "rsync --delete --inplace": rsync("--delete", "--inplace"),
    "rsync --inplace": rsync("--inplace"),
    "rsync --checksum": rsync("--checksum"),
    "rsync --ignore-times --inplace": rsync("--ignore-times", "--inplace"),
    "cp -a": lambda there, here: run("cp", "-a", f"{there}/.", f"{here}/"),
    "cp -a --remove-destination": lambda there, here: run(
        "cp", "-a", "--remove-destination", f"{there}/.", f"{here}/"
    ),
    "links": linked,
    "links by rsync": linked_by_rsync,
    "tar": packed,
    "into an empty folder": anew,
    "in the place of the folder": moved,
    "the database alone": lambda there, here: run(
        "cp", "-a", *there.glob("helper.db*"), f"{here}/"
    ),
    "the keys alone": lambda there, here: rsync("--delete")(there / "keys", here / "keys"),
}


QUICK = ("rsync", "links")


@pytest.fixture(
    params=[pytest.param(n, marks=() if n in QUICK else pytest.mark.slow) for n in WAYS]
)
def way(request: pytest.FixtureRequest) -> Way:
    return WAYS[request.param]


def copied(path: Path, backup: Path) -> None:
    """Take the copy that is put back; its database is older, as rsync sees it by the second."""
    rsync()(path, backup)
    for file in backup.glob("helper.db*"):
        os.utime(file, (1e9, 1e9))


def due(path: Path, sums: int = 3) -> tuple[Operators, list[AddUp]]:
    """Several sums whose lists may come."""
    operators, tasks = Operators(), []
    with opened(path) as folder:
        operators.book = folder.book
        for _ in range(sums):
            operators.now = NOW
            leader, _ = operators.collected(inputs_of(range(15)), parameters=AGREED)
            tasks.append(listed(leader))
    return operators, tasks


def answered(path: Path, operators: Operators, *tasks: AddUp) -> None:
    with opened(path, operators.now) as folder:
        for task in tasks:
            said(folder, operators, task)


def answered_and_killed(path: Path, operators: Operators, *tasks: AddUp) -> None:
    """SQLite's log stays, with all that was written."""
    with opened(path, operators.now) as folder:
        for task in tasks:
            said(folder, operators, task)
        folder.database.empty_log()
        folder.book.write()  # the log begins again, and knows nothing of the answers
        os.kill(os.getpid(), signal.SIGKILL)


def said(folder: HelperFolder, operators: Operators, task: AddUp) -> str:
    """The answer, in hexadecimal."""
    operators.book = folder.book
    return encode(operators.helper.answer(task)).hex()


def both(operators: Operators, task: AddUp) -> tuple[AddUp, AddUp]:
    """The list, and the same without a victim."""
    return task, another_list(operators, task, b"".join(entries(task)[1:]))


def check_no_second(folder: HelperFolder, operators: Operators, tasks: list[AddUp]) -> None:
    """A list that differs is refused."""
    for task in tasks:
        _, other = both(operators, task)
        with pytest.raises((HelperRefusalError, DatabaseUnavailableError)):
            said(folder, operators, other)


def check_after_start(path: Path, operators: Operators, tasks: list[AddUp]) -> None:
    """The helper starts and answers no other list, or it does not start and says what to do."""
    refused = ""
    try:
        with opened(path, operators.now) as folder:
            check_no_second(folder, operators, tasks)
    except KeyFolderError as error:
        refused = str(error)
    if refused:
        assert "Remove the folder" in refused
        shutil.rmtree(path / "keys")
        with opened(path, operators.now) as folder:
            check_no_second(folder, operators, tasks)


@pytest.mark.parametrize("ended", ["stopped", "killed"])
def test_a_folder_that_is_put_back_gets_no_second_answer(
    tmp_path: Path, way: Way, ended: str
) -> None:
    path, backup = tmp_path / "helper", tmp_path / "backup"
    operators, tasks = due(path)
    backup.mkdir()
    copied(path, backup)
    if ended == "stopped":
        answered(path, operators, *tasks[:2])
    else:
        assert in_child(partial(answered_and_killed, path, operators, *tasks[:2])) == (True, None)
    way(backup, path)
    check_after_start(path, operators, tasks[:2])


def test_a_copy_taken_while_the_helper_runs_gets_no_second_answer(tmp_path: Path, way: Way) -> None:
    """Under the running helper, to which the files are put back, and after another start."""
    path, backup = tmp_path / "helper", tmp_path / "backup"
    operators, tasks = due(path)
    backup.mkdir()
    with opened(path, operators.now) as running:
        copied(path, backup)
        for task in tasks[:2]:
            said(running, operators, task)
        way(backup, path)
        check_no_second(running, operators, tasks[:2])
        # A worker that is started in place of one that died opens the files that are there now.
        with ExitStack() as stack:
            try:
                worker = HelperFolder.open(path)
            except (DatabaseUnavailableError, OSError):
                worker = running
            stack.callback(worker.database.close)
            check_no_second(worker, operators, tasks[:2])
    check_after_start(path, operators, tasks[:2])


def test_what_was_open_and_was_not_touched_is_answered(tmp_path: Path) -> None:
    """A restore onto the folder it was taken from changes nothing while nothing was answered."""
    path, backup = tmp_path / "helper", tmp_path / "backup"
    operators, tasks = due(path)
    rsync()(path, backup)
    rsync("--delete")(backup, path)
    answered(path, operators, *tasks)


def test_of_two_databases_over_one_folder_of_keys_one_answers(tmp_path: Path) -> None:
    """The database is put back under a process that has read the key, and answers first."""
    path = tmp_path / "helper"
    operators, (task,) = due(path, 1)
    one, other = both(operators, task)
    shutil.copy2(path / "helper.db", tmp_path / "backup.db")
    with opened(path, operators.now) as first:
        (tmp_path / "backup.db").replace(path / "helper.db")
        for log in path.glob("helper.db-*"):
            log.unlink()
        with opened(path, operators.now) as second:
            keep = second.book.answer

            def overtaken(*given: object) -> None:
                said(first, operators, one)
                operators.book = second.book
                keep(*given)  # type: ignore[arg-type]

            second.book.answer = overtaken  # type: ignore[method-assign]
            with pytest.raises(HelperRefusalError, match="is gone"):
                said(second, operators, other)


def test_nobody_answers_between_a_total_and_the_end_of_its_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    operators, (task,) = due(tmp_path, 1)
    erase, kept_out = keys.KeyFolder.erase, []

    def erased(folder: keys.KeyFolder, sum_id: bytes) -> None:
        handle = os.open(folder.path, os.O_RDONLY)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            kept_out.append(sum_id)
        finally:
            os.close(handle)
        erase(folder, sum_id)

    monkeypatch.setattr(keys.KeyFolder, "erase", erased)
    answered(tmp_path, operators, task)
    assert kept_out == [task.sum_id]


def given_anew(path: Path) -> None:
    """Owners, permissions and times are set for every file, to what they are."""
    for each in (path, *path.rglob("*")):
        found = each.stat()
        os.chown(each, found.st_uid, found.st_gid)
        each.chmod(found.st_mode & 0o7777)
        os.utime(each, ns=(found.st_atime_ns, found.st_mtime_ns))


def test_owners_that_are_set_at_every_start_stop_nothing(tmp_path: Path) -> None:
    operators, tasks = due(tmp_path)
    for task in tasks:
        given_anew(tmp_path)
        answered(tmp_path, operators, task)


def test_without_times_of_birth_a_changed_owner_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "birth", lambda path: None)
    operators, tasks = due(tmp_path)
    answered(tmp_path, operators, tasks[0])
    given_anew(tmp_path)
    with pytest.raises(KeyFolderError, match=r"of its keys, 2 .*fsGroupChangePolicy.*Remove the"):
        answered(tmp_path, operators, tasks[1])


@pytest.mark.parametrize("name", ["rsync", "tar"])
def test_without_times_of_birth_no_copy_is_used_either(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keys, "birth", lambda path: None)
    test_a_folder_that_is_put_back_gets_no_second_answer(tmp_path, WAYS[name], "stopped")


@pytest.mark.parametrize("link", [linked, linked_by_rsync])
def test_a_key_with_a_second_name_is_not_used(tmp_path: Path, link: Way) -> None:
    """Its content could be written into the second name again, which is the file that was made."""
    path, backup = tmp_path / "helper", tmp_path / "backup"
    operators, (task,) = due(path, 1)
    backup.mkdir()
    with opened(path, operators.now) as running:
        link(path, backup)
        with pytest.raises(HelperRefusalError, match="is gone"):
            said(running, operators, task)
    with pytest.raises(KeyFolderError, match=r"of its keys, 1 .*hard links.*Remove the"):
        answered(path, operators, task)
    shutil.rmtree(backup)
    answered(path, operators, task)


def test_of_two_helpers_over_the_same_keys_none_answers(tmp_path: Path) -> None:
    path, second = tmp_path / "helper", tmp_path / "second"
    operators, (task,) = due(path, 1)
    second.mkdir()
    with opened(path, operators.now) as folder:
        linked(path, second)
        other = HelperFolder.open(second)
        with closing(other.database):
            for each in (folder, other):
                with pytest.raises(HelperRefusalError, match="is gone"):
                    said(each, operators, task)


def test_a_key_is_gone_from_every_name_it_has(tmp_path: Path) -> None:
    operators, _ = due(tmp_path, 1)
    (key,) = (tmp_path / "keys").glob("*.key")
    (tmp_path / "second name").hardlink_to(key)
    with opened(tmp_path, operators.now + 1e6):  # too late for any list
        pass
    assert (tmp_path / "second name").read_bytes() == b""


def test_a_helper_is_ready_only_while_its_keys_can_be_kept(tmp_path: Path) -> None:
    with opened(tmp_path, time.time()) as folder:
        operators = Operators(book=folder.book, now=time.time())
        operators.helper.answer(request(operators.begin(AGREED)))
        folder.book.write()
        assert len(list((tmp_path / "keys").iterdir())) == 3
        (tmp_path / "keys").rename(tmp_path / "away")
        with pytest.raises(DatabaseUnavailableError, match="cannot be read or written"):
            folder.book.write()
        shutil.copytree(tmp_path / "away", tmp_path / "keys")
        with pytest.raises(DatabaseUnavailableError, match="of its keys, 1 are not"):
            folder.book.write()


def test_a_birth_stays_with_its_file(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"one")
    made = keys.birth(file)
    assert made is not None
    assert abs(made - file.stat().st_mtime_ns) < 10**9
    os.utime(file, ns=(1, 1))
    file.write_bytes(b"another")
    file.rename(tmp_path / "renamed")
    assert keys.birth(tmp_path / "renamed") == made
    shutil.copy2(tmp_path / "renamed", file)
    assert keys.birth(file) != made
    with pytest.raises(FileNotFoundError):
        keys.birth(tmp_path / "missing")
