"""Phones in TypeScript beside Python's, over HTTP: a phase of each kind, with a helper.

The server runs in processes of its own, over PostgreSQL; its helper answers in this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from support.discovery_phase import by_plain_addition
from support.networked import ServerProcess, await_
from support.policies import without_budget
from support.served_helper import ServedHelper
from support.web_phone import WebPhone

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.http import HttpTransport
from earshot_client.voters import NearestRecordings
from earshot_protocol.api import Invite, StartPhase
from earshot_protocol.geometry import unit_rows
from earshot_protocol.messages import Wait
from earshot_protocol.phases.discovery import Discovered, DiscoveryParameters
from earshot_protocol.phases.labelling import Labelled, LabellingParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.plan import Outcome
from earshot_protocol.phases.statistics import Statistics, StatisticsParameters
from earshot_protocol.secure_sum.interface import SummationName
from earshot_protocol.shipped_encoders import DEFAULT_ENCODER
from earshot_protocol.start_centroids import CentroidSet
from earshot_protocol.wire import Ending, Matrix
from earshot_server.credentials import Credentials
from earshot_simulations.engine.ideal import IDEAL
from earshot_simulations.engine.interface import HeardPoints

PHONES, DIMENSIONS, CELLS, CONTACTS = 12, 8, 6, 10
CLASSES = ("bus", "café", "office")
ENCODER = HeardPoints(DEFAULT_ENCODER, DIMENSIONS)
HIERARCHY = LabelHierarchy.flat(CLASSES)
PLACES = unit_rows(np.random.default_rng(7).standard_normal((len(CLASSES), DIMENSIONS)))
COMMON: dict[str, Any] = {
    "phones": PHONES,
    "labels": CLASSES,
    "dropout": 0.25,
    "corrupted": 0.05,
    # Nobody vanishes: no step may end by its deadline, however slow the machine is.
    "step_seconds": 3600.0,
    "summation": SummationName.TWO_OPERATORS,
}
# Of noise there is none: a vote more or less has a chance of exp(-500).
STATISTICS = StatisticsParameters(**COMMON, contacts=CONTACTS, epsilon=5000.0)
DISCOVERY = DiscoveryParameters(
    **COMMON,
    encoder=ENCODER.name,
    start=CentroidSet.of(np.random.default_rng(8).standard_normal((CELLS, DIMENSIONS))),
    most_cells=CELLS,
    sums=1,
    cells_noise=1e-4,
    labels_noise=1e-4,
    rows=len(CLASSES),
)
SAMPLES = PLACES.astype(np.float32)
LABELLING = LabellingParameters(
    **COMMON,
    encoder=ENCODER.name,
    samples=Matrix.of(SAMPLES),
    votes_noise=0.02,
    check_noise=0.02,
    threshold=1.0,
)


def heard(number: int) -> tuple[np.ndarray, list[str | None]]:
    random = np.random.default_rng([9, number])
    scenes = random.integers(len(CLASSES), size=CONTACTS)
    points = PLACES[scenes] + 0.1 * random.standard_normal((CONTACTS, DIMENSIONS))
    labels = [CLASSES[scene] if random.random() < 0.6 else None for scene in scenes]
    return unit_rows(points).astype(np.float32), labels


class PythonPhone:
    """A phone in Python."""

    def __init__(self, number: int, about: dict[str, Any]) -> None:
        policy = without_budget(
            least_phones=3,
            leaders=(bytes.fromhex(about["leader"]),),
            helpers=(bytes.fromhex(about["helper"]),),
        )
        self._phone = Phone(MemoryStore(*heard(number)), ENCODER, policy, hierarchy=HIERARCHY)
        self._known: tuple[bytes, ...] = ()
        self._line = HttpTransport(
            about["server"], Ed25519PrivateKey.generate(), known=lambda: self._known
        )
        self._line.enrol(about["invitation"])
        self.ended: tuple[str, str] | None = None
        self.result: Ending | None = None

    def visit(self) -> None:
        task = self._line.task()
        if isinstance(task, Wait):
            return
        answer = self._phone.answer(task)
        if isinstance(task, Ending):
            self._known = (task.phase, *self._known)
            self.ended = (str(task.__struct_config__.tag), task.phase.hex())
            self.result = task
        elif answer is not None:
            self._line.send(answer)

    def steps(self) -> list[str]:
        return [entry["step"] for entry in self._phone.ledger.export()]

    def close(self) -> None:
        self._line.close()


class NodePhone:
    """A phone in TypeScript."""

    def __init__(self, web: WebPhone, number: int, about: dict[str, Any]) -> None:
        points, labels = heard(number)
        self._web = web
        self._number = web.ask("open", about, points.tolist(), labels)
        self.said: list[dict[str, Any]] = []
        self.ended: tuple[str, str] | None = None

    def visit(self) -> None:
        self.said.append(self._web.ask("visit", self._number))
        assert self.said[-1]["event"] in ("waiting", "answered", "phase over"), self.said
        ending = self._web.ask("ending", self._number)
        self.ended = None if ending is None else (ending[0], ending[1])

    def steps(self) -> list[str]:
        steps: list[str] = self._web.ask("steps", self._number)
        return steps

    def close(self) -> None:
        self._web.ask("leave", self._number)


@pytest.fixture(scope="module")
def web() -> Iterator[WebPhone]:
    with WebPhone("crowd_oracle.ts") as phones:
        yield phones


@pytest.fixture(scope="module")
def helper() -> Iterator[ServedHelper]:
    with ServedHelper().running() as running:
        yield running


@pytest.fixture(scope="module")
def server(
    helper: ServedHelper, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("leader")
    with ServerProcess(
        folder, None, "--helper", helper.address, "--helper-key", helper.key
    ) as running:
        leader = Credentials.load_or_create(folder, leads=True).leader
        helper.leaders = frozenset({bytes.fromhex(leader)})
        yield running


def played(
    server: ServerProcess, helper: ServedHelper, web: WebPhone, parameters: Parameters
) -> Outcome:
    """A whole phase, of which every second phone is in TypeScript; return what was published."""
    operator = server.operator()
    (leader,) = helper.leaders
    about = {
        "server": server.address,
        "invitation": operator.invite(Invite(uses=PHONES)).code,
        "leader": leader.hex(),
        "helper": helper.key,
        "encoder": ENCODER.name,
        "classes": CLASSES,
    }
    phase = operator.start(StartPhase(parameters=parameters, anyway=True))
    crowd = [
        NodePhone(web, number, about) if number % 2 else PythonPhone(number, about)
        for number in range(PHONES)
    ]

    def all_have() -> bool:
        for phone in crowd:
            if phone.ended is None or phone.ended[1] != phase:
                phone.visit()
        return all(phone.ended is not None and phone.ended[1] == phase for phone in crowd)

    await_(all_have, "the result", 300)
    assert operator.phase(phase).refusals == {}
    steps = sorted([f"{each.release.step}" for each in parameters.plan().expenses()])
    for phone in crowd:
        assert sorted(phone.steps()) == steps, "each once, in each unit"
        phone.close()
    (kind,) = {phone.ended[0] for phone in crowd if phone.ended is not None}
    first = crowd[0]
    assert isinstance(first, PythonPhone)
    assert isinstance(first.result, Outcome)
    assert kind == first.result.__struct_config__.tag
    return first.result


@pytest.mark.slow
def test_statistics_of_both_kinds_of_phones_are_those_of_plain_addition(
    server: ServerProcess, helper: ServedHelper, web: WebPhone
) -> None:
    result = played(server, helper, web, STATISTICS)
    assert isinstance(result, Statistics)
    spoken = [label for number in range(PHONES) for label in heard(number)[1]]
    assert result.contacts == tuple(spoken.count(label) for label in CLASSES)


@pytest.mark.slow
def test_discovery_by_both_kinds_of_phones_gives_what_plain_addition_gives(
    server: ServerProcess, helper: ServedHelper, web: WebPhone
) -> None:
    alone = msgspec.structs.replace(DISCOVERY, summation=SummationName.BELL)
    expected = by_plain_addition(
        alone,
        [
            Phone(
                MemoryStore(*heard(number)),
                ENCODER,
                without_budget(least_phones=3),
                hierarchy=HIERARCHY,
                summation=IDEAL,
            )
            for number in range(PHONES)
        ],
    )
    result = played(server, helper, web, DISCOVERY)
    assert isinstance(result, Discovered)
    assert result.names == expected.names == CLASSES
    found, plain = (unit_rows(each.centroids.array().astype(float)) for each in (result, expected))
    assert np.abs(found - plain).max() < 1e-3


@pytest.mark.slow
def test_samples_are_labelled_by_the_votes_of_both_kinds_of_phones(
    server: ServerProcess, helper: ServedHelper, web: WebPhone
) -> None:
    result = played(server, helper, web, LABELLING)
    assert isinstance(result, Labelled)
    answers = [NearestRecordings.of(*heard(number)).answers(SAMPLES) for number in range(PHONES)]
    votes = [[column.count(label) for label in CLASSES] for column in zip(*answers, strict=True)]
    assert [list(row) for row in result.label_votes] == votes
    assert list(result.agreement) == [max(row) for row in votes]
