"""Phones that take part in discovery phases over HTTP, step by step."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from earshot_client.phone import Phone
from earshot_client.transport.http import HttpTransport
from earshot_protocol.api import Invite, StartPhase
from earshot_protocol.messages import Wait
from earshot_protocol.wire import Answer, Task
from support import discovery_phase
from support.discovery_phase import PHONES
from support.networked import ServerProcess, await_

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
        for number in phones:
            self.answer(number)

    def answer(self, number: int) -> None:
        """Let one phone answer its next task."""
        answer = self.phones[number].answer(self.task(number))
        assert answer is not None
        self.lines[number].send(answer)
        self.sent[number] = answer
