"""Three hundred phones as they come finish a discovery phase over HTTP, though many are killed.

The phones' noise is seeded, so what is published has to be what a phase in one process publishes
that nobody disturbs, to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.discovery_phase import by_plain_addition
from support.networked import ServerProcess, await_
from support.parameters import discovery_parameters

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.http import HttpTransport
from earshot_protocol.api import Invite, StartPhase
from earshot_protocol.geometry import unit_rows
from earshot_protocol.messages import Wait
from earshot_protocol.phases.discovery import Discovered
from earshot_protocol.phases.discovery_budget import SUMS, affordable
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.start_centroids import CentroidSet
from earshot_server.processes.embedded import embedded
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import HeardPoints

PHONES, DIMENSIONS, CELLS = 300, 8, 12
CLASSES = ("bus", "café", "office", "park")
ENCODER = HeardPoints(DEFAULT_ENCODER, DIMENSIONS)
KEY = bytes(range(32))
_THREADS = 8
"""A phone each at a time: more would wait for the same two cores."""
PLACES = unit_rows(np.random.default_rng(7).standard_normal((len(CLASSES), DIMENSIONS)))
PARAMETERS = affordable(
    discovery_parameters(
        phones=PHONES,
        labels=CLASSES,
        encoder=ENCODER.name,
        start=CentroidSet.of(np.random.default_rng(8).standard_normal((CELLS, DIMENSIONS))),
        sums=SUMS,
        # Nobody vanishes for good: no step may end by its deadline, however slow the machine is.
        step_seconds=3600.0,
    ),
    2.0,
)


def heard(number: int) -> tuple[np.ndarray, list[str | None]]:
    random = np.random.default_rng([9, number])
    scenes = random.integers(len(CLASSES), size=20)
    points = PLACES[scenes] + 0.15 * random.standard_normal((20, DIMENSIONS))
    labels = [CLASSES[scene] if random.random() < 0.3 else None for scene in scenes]
    return unit_rows(points).astype(np.float32), labels


def undisturbed() -> Discovered:
    """The phase in one process, with plain addition, which gives the same sums."""
    phones = [
        Phone(
            MemoryStore(*heard(number)),
            ENCODER,
            hierarchy=LabelHierarchy.flat(CLASSES),
            random=np.random.default_rng([10, number]).bytes,
            summation=IDEAL,
        )
        for number in range(PHONES)
    ]
    return by_plain_addition(PARAMETERS, phones)


class Member:
    """A phone in an encrypted file; each of its visits is a process's life."""

    def __init__(self, number: int, folder: Path, address: str) -> None:
        self.number, self._path = number, folder / f"{number}.db"
        self._random = np.random.default_rng([10, number]).bytes
        self.line = HttpTransport(address, Ed25519PrivateKey.generate(), tries=600)
        self.answered, self.killed_in = 0, list[str]()
        self.result: Discovered | None = None
        with closing(self._store()) as store:
            for point, choice in zip(*heard(number), strict=True):
                recording = store.add(point)
                if choice is not None:
                    store.label(recording, choice)

    def _store(self) -> EncryptedStore:
        return EncryptedStore(self._path, KEY, dimensions=DIMENSIONS)

    def opened(self) -> Phone:
        return Phone(
            self._store(),
            ENCODER,
            hierarchy=LabelHierarchy.flat(CLASSES),
            random=self._random,
        )

    def visit(self) -> None:
        """Do what is to be done; in every step a third of the phones is killed, in turn."""
        task = self.line.task()
        if isinstance(task, Wait):
            return
        if isinstance(task, Discovered):
            with self.opened() as phone:
                assert phone.answer(task) is None
            self.result = task
            return
        with self.opened() as phone:
            answer = phone.answer(task)
        assert answer is not None
        if (self.number + self.answered) % 3 == 0:  # it died before it could send
            with self.opened() as phone:
                assert phone.answer(task) == answer
            self.killed_in.append(type(task).__name__)
        self.line.send(answer)
        self.answered += 1


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("discovery")
    with embedded(folder / "database") as postgres:
        server = ServerProcess(folder / "server", postgres.url)
        server.start()
        yield server
        assert server.stop() == 0


@pytest.mark.slow
def test_phones_that_are_killed_in_every_round_publish_what_undisturbed_ones_do(
    server: ServerProcess, tmp_path: Path
) -> None:
    expected = undisturbed()
    operator = server.operator()
    code = operator.invite(Invite(uses=PHONES)).code
    phase = operator.start(StartPhase(parameters=PARAMETERS))  # not `anyway`: as phones come
    members = [Member(number, tmp_path, server.address) for number in range(PHONES)]
    for member in members:  # one after the other: who joins first has the first number
        member.line.enrol(code)
        member.line.task()
    with ThreadPoolExecutor(_THREADS) as pool:
        while waiting := [member for member in members if member.result is None]:
            list(pool.map(Member.visit, waiting))
    results = [member.result for member in members if member.result is not None]
    killed = {step for member in members for step in member.killed_in}
    assert {msgspec.msgpack.encode(result) for result in results} == {
        msgspec.msgpack.encode(msgspec.structs.replace(expected, phase=results[0].phase))
    }
    assert killed == {"SumCells", "SumLabels", "ShareKeys", "MaskInput", "Unmask"}
    assert expected.names == CLASSES, "every place has a prototype beyond the noise"
    assert expected.cells is not None
    assert set(expected.cell_labels) == set(range(len(CLASSES))), "and a cell"
    await_(lambda: operator.export(phase).phase.status == "published", "the result")
    for member in members:
        member.line.close()
    for member in members[:30]:
        with member.opened() as phone:
            steps = [entry["step"] for entry in phone.ledger.export()]
            assert sorted(steps) == sorted(2 * ["cells 1", "cells 2", "labels"])
