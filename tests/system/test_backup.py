"""A server with a database of its own is backed up in the middle of a sum, and restored.

After the backup, the phones go on with the old server; then it is gone. No phone is asked anything
of that phase again, and the next phase of the restored server ends with a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.command import earshot
from support.crowd import PARAMETERS, Crowd
from support.discovery_phase import PHONES
from support.networked import ServerProcess

from earshot_protocol.errors import UnexpectedMessageError
from earshot_protocol.messages import Failed
from earshot_protocol.phases.discovery import Discovered


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("backup")


@pytest.fixture
def old(folder: Path) -> Iterator[ServerProcess]:
    with ServerProcess(folder / "old", None) as server:
        yield server


@pytest.mark.slow
def test_a_backup_in_the_middle_of_a_sum_comes_back_without_it(
    old: ServerProcess, folder: Path
) -> None:
    crowd = Crowd(old)
    phase = crowd.start(old)
    crowd.step(crowd.phones)
    crowd.step(crowd.phones)
    some = dict(list(crowd.phones.items())[: PHONES // 2])
    crowd.step(some)  # they have sent their masked vectors
    backup = folder / "backup"
    made = earshot("backup", backup, "--data", old.data)
    assert made.returncode == 0, made.stderr
    assert backup.stat().st_mode & 0o777 == 0o600
    # The old server goes on: everybody's vector is masked, and the sum is opened.
    crowd.step({number: each for number, each in crowd.phones.items() if number not in some})
    crowd.step(crowd.phones)
    assert all(each.ledger.releases_in(phase) for each in crowd.phones.values())
    old.kill()

    new = ServerProcess(folder / "new", None)
    (folder / "new").rmdir()  # the helper makes it, and its log goes elsewhere
    new.log = folder / "new.log"
    came = earshot("restore", backup, "--data", new.data, "--port", new.port)
    assert came.returncode == 0, came.stderr
    assert "1 phase under way in the backup ended" in came.stdout
    with new:
        crowd.call(new)
        for number, phone in crowd.phones.items():
            task = crowd.task(number)
            assert isinstance(task, Failed)
            assert task.phase == phase
            assert task.reason.startswith("restored from a backup of ")
            assert phone.answer(task) is None
        # Nothing of the old sum is taken from anybody, either.
        for number, line in crowd.lines.items():
            with pytest.raises(UnexpectedMessageError):
                line.send(crowd.sent[number])
        for said in (
            earshot("phase", "show", phase.hex(), "--data", new.data).stdout,
            earshot("phase", "export", phase.hex(), "--data", new.data).stdout,
        ):
            assert "restored from a backup of" in said
            assert "sums may have been spent" in said
        audit = earshot("operator", "audit", "--data", new.data).stdout.splitlines()
        assert "restore server" in audit[0]
        assert "start phase" in audit[1]

        crowd.known.append(phase)
        following = crowd.start(new)
        for _ in PARAMETERS.plan().steps:
            crowd.step(crowd.phones)
        for number, phone in crowd.phones.items():
            result = crowd.task(number)
            assert isinstance(result, Discovered)
            assert result.phase == following
            # The ledger counts both phases, whatever the server has forgotten.
            assert phone.ledger.releases_in(phase)
            assert phone.ledger.releases_in(following)
        crowd.hang_up()
