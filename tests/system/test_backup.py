"""A server with a database of its own is backed up in the middle of a sum, and restored.

After the backup, the phones go on with the old server; then it is gone. No phone is asked anything
of that phase again, and the next phase of the restored server ends with a result.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support import discovery_phase
from support.command import earshot
from support.discovery_phase import PHONES
from support.networked import ServerProcess, await_

from earshot_client.phone import Phone
from earshot_client.transport.http import HttpTransport
from earshot_protocol.api import Invite, StartPhase
from earshot_protocol.errors import UnexpectedMessageError
from earshot_protocol.messages import Failed, Wait
from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.wire import Answer, Task

PARAMETERS = discovery_phase.parameters(step_seconds=3600.0)


class Crowd:
    """Phones with their keys, on the lines to one server."""

    def __init__(self, server: ServerProcess) -> None:
        self.phones = {number: discovery_phase.phone(number, False) for number in range(PHONES)}
        self.keys = {number: Ed25519PrivateKey.generate() for number in self.phones}
        self.lines = dict[int, HttpTransport]()
        self.names = dict.fromkeys(self.phones, "new")
        self.sent = dict[int, Answer]()
        self.known = list[bytes]()
        """Phases whose ending all phones have."""
        self.call(server)
        code = server.operator().invite(Invite(uses=PHONES)).code
        self.names = {number: line.enrol(code) for number, line in self.lines.items()}

    def call(self, server: ServerProcess) -> None:
        """Go to this server from now on, under the same keys and names."""
        self.hang_up()
        self.lines = {
            number: HttpTransport(
                server.address, key, self.names[number], known=lambda: tuple(self.known), tries=600
            )
            for number, key in self.keys.items()
        }

    def hang_up(self) -> None:
        for line in self.lines.values():
            line.close()

    def start(self, server: ServerProcess) -> bytes:
        asked = StartPhase(parameters=PARAMETERS, anyway=True, gather_seconds=3600.0)
        phase = bytes.fromhex(server.operator().start(asked))
        for line in self.lines.values():
            assert isinstance(line.task(), Wait)
        return phase

    def task(self, number: int) -> Task:
        """The phone's next task, as soon as there is one."""
        found: list[Task] = []

        def asked() -> bool:
            found.append(self.lines[number].task())
            return not isinstance(found[-1], Wait)

        await_(asked, f"a task for phone {number}")
        return found[-1]

    def step(self, phones: dict[int, Phone]) -> None:
        for number, phone in phones.items():
            answer = phone.answer(self.task(number))
            assert answer is not None
            self.lines[number].send(answer)
            self.sent[number] = answer


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("backup")


@pytest.fixture
def old(folder: Path) -> Iterator[ServerProcess]:
    with ServerProcess(folder / "old", None) as server:
        yield server


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
