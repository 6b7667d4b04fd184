"""`earshot phase start` as it comes: a discovery phase over HTTP and PostgreSQL, and what it shows.

Twelve phones keep the limits of every phone, but for the size of the crowd. Their noise is seeded,
so what is published is compared, bit by bit, with the same phase in one process.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.request
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.command import earshot
from support.networked import ServerProcess, await_

from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.http import HttpTransport
from earshot_protocol import encoder_file
from earshot_protocol.api import Invite
from earshot_protocol.environments import default_hierarchy
from earshot_protocol.messages import Wait
from earshot_protocol.phases.discovery import Discovered, DiscoveryParameters
from earshot_protocol.phases.discovery_budget import DIMENSIONS
from earshot_protocol.privacy.mechanisms import Unit
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER, packaged
from earshot_protocol.wire import Answer, Task
from earshot_server.discovery.optics import Optics
from earshot_server.phases.coordinator import Coordinator
from earshot_server.store.memory import MemoryPhaseStore
from earshot_simulations.engine.interface import HeardPoints

PHONES = 12
POLICY = Policy(least_phones=PHONES)
PLACES = ("train", "kitchen", "park")
START = encoder_file.read(packaged(DEFAULT_ENCODER)).start_centroids(DIMENSIONS, 20)


def make_phones() -> dict[int, Phone]:
    """Phones that each heard three places, near three of the start centroids."""
    phones = {}
    for number in range(PHONES):
        random = np.random.default_rng([61, number])
        scenes = np.arange(9) % 3
        points = START[[2, 7, 11]][scenes] + random.normal(0, 0.05, (9, DIMENSIONS))
        phones[number] = Phone(
            MemoryStore(points.astype(np.float32), [PLACES[scene] for scene in scenes]),
            HeardPoints(DEFAULT_ENCODER, DIMENSIONS),
            POLICY,
            random=random.bytes,
        )
    return phones


def answered(phone: Phone, task: Task) -> Answer:
    answer = phone.answer(task)
    assert answer is not None
    return answer


class Played:
    """A phase that has been played over HTTP, and the server that shows it."""

    def __init__(self, server: ServerProcess) -> None:
        words = ("phase", "start", "--phones", PHONES, "--anyway", "--step-hours", 1, "--json")
        run = earshot(*words, "--server", server.address, "--data", server.data)
        assert run.returncode == 0, run.stderr
        self.server = server
        self.said = json.loads(run.stdout)
        self.phase = self.said["phase"]
        self.phones = make_phones()
        code = server.operator().invite(Invite(uses=PHONES)).code
        lines = {
            number: HttpTransport(server.address, Ed25519PrivateKey.generate(), tries=600)
            for number in self.phones
        }
        for line in lines.values():
            line.enrol(code)
            assert isinstance(line.task(), Wait)
        parameters = server.operator().phase(self.phase).parameters
        assert isinstance(parameters, DiscoveryParameters)
        self.parameters = parameters
        for _ in parameters.plan().steps:
            for number, phone in self.phones.items():
                lines[number].send(answered(phone, task_of(lines[number], number)))
        results = []
        for number, phone in self.phones.items():
            result = task_of(lines[number], number)
            assert phone.answer(result) is None
            assert isinstance(result, Discovered)
            results.append(result)
        for line in lines.values():
            line.close()
        assert all(result == results[0] for result in results)
        self.result = results[0]

    def read(self, path: str, operator: bool = False) -> str:
        asked = urllib.request.Request(self.server.address + path)  # noqa: S310
        if operator:
            token = (self.server.data / "operator.token").read_text().strip()
            pair = base64.b64encode(f"operator:{token}".encode()).decode()
            asked.add_header("Authorization", f"Basic {pair}")
        # S310: our own server's address.
        with urllib.request.urlopen(asked, timeout=60) as response:  # noqa: S310
            content: bytes = response.read()
        return content.decode()


def task_of(line: HttpTransport, number: int) -> Task:
    """The phone's next task, as soon as there is one."""
    found: list[Task] = []

    def asked() -> bool:
        found.append(line.task())
        return not isinstance(found[-1], Wait)

    await_(asked, f"a task for phone {number}")
    return found[-1]


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Played]:
    server = ServerProcess(tmp_path_factory.mktemp("discovery"), None, "--threads", "60")
    with server:
        yield Played(server)


def test_what_a_server_publishes_is_what_one_process_does(played: Played) -> None:
    parameters = msgspec.structs.replace(played.parameters, phones=PHONES)
    coordinator = Coordinator.start(
        MemoryPhaseStore(),
        Optics(),
        parameters,
        now=0.0,
        choices=tuple(default_hierarchy().groups.values()),
    )
    phones = make_phones()
    while coordinator.missing():
        for number, phone in phones.items():
            coordinator.accept(number, answered(phone, coordinator.task_for(number)))
        assert coordinator.advance(time.time())
    result = coordinator.result()
    assert isinstance(result, Discovered)
    assert msgspec.structs.replace(result, phase=played.result.phase) == played.result


def test_phones_spend_what_the_operator_was_told_and_keep_the_result(played: Played) -> None:
    foretold = played.said["forecast"]["together"]
    assert foretold["phone"]["epsilon"] == pytest.approx(2.0, abs=1e-6)
    for phone in played.phones.values():
        steps = [release.step for release in phone.ledger.releases if release.unit is Unit.PHONE]
        assert steps == ["cells 1", "cells 2", "labels"]
        assert phone.result == played.result


def test_the_result_is_public_and_among_the_results(played: Played) -> None:
    found = json.loads(played.read(f"/v1/results/{played.phase}"))
    assert found["type"] == "discovered"
    assert found["cells"]["rows"] == len(found["moved"]) == 20
    assert len(found["lengths"]) == len(found["labels"]) == len(found["label_names"])
    (listed,) = json.loads(played.read("/v1/results"))["results"]
    assert listed["phase"] == played.phase
    assert listed["environments"] == len(set(played.result.labels))
    assert listed["named"] == played.result.named


def test_the_dashboard_shows_its_cells_and_both_units(played: Played) -> None:
    page = played.read(f"/phases/{played.phase}", operator=True)
    for said in (
        f"{PHONES} of {PHONES} phones stayed: they gave",
        "20 cells around public start centroids. 2 secure sums moved the cells",
        "One phone (zero-out)",
        "One phone, replaced",
    ):
        assert said in page.replace("\u202f", " ")
    cells = played.read(f"/phases/{played.phase}/cells.csv", operator=True)
    assert len(cells.splitlines()) == 21
    assert "Discovery phase" in played.read("/", operator=True)


def test_phones_as_they_come_were_named_as_the_reason_to_ask_anyway(played: Played) -> None:
    rules = [refusal["rule"] for refusal in played.said["forecast"]["refusals"]]
    assert rules == ["least_phones"]
