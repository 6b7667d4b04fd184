"""Phones in Node and in a browser beside Python's, over HTTP: each kind of phase, with a helper.

The server runs in processes of its own, over PostgreSQL; its helper answers in this one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from playwright.sync_api import Browser, Page
from support.dashboard_browser import browser
from support.discovery_phase import by_plain_addition
from support.networked import ServerProcess, await_
from support.policies import without_budget
from support.served_helper import ServedHelper
from support.statistics_phase import counts
from support.web_pages import served
from support.web_phone import WebPhone

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.memory import MemoryStore
from earshot_client.transport.http import HttpTransport
from earshot_client.voters import NearestRecordings
from earshot_protocol.api import Invite, StartPhase
from earshot_protocol.geometry import Geometry, unit_rows
from earshot_protocol.messages import Wait
from earshot_protocol.phases.discovery import Discovered, DiscoveryParameters
from earshot_protocol.phases.labelling import Labelled, LabellingParameters
from earshot_protocol.phases.parameters import Parameters
from earshot_protocol.phases.places import AgreedPlaces
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
STATISTICS = StatisticsParameters(**COMMON, contacts=CONTACTS, noise=1e-6)
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


_OPEN = """
async ([about, heard, labels]) => {
  const { LabelHierarchy, openPhone } = await import("/client/web/index.ts");
  const bytes = (text) => Uint8Array.from(text.match(/../g), (byte) => parseInt(byte, 16));
  const unit = (row) => {
    const norm = Math.hypot(...row);
    return row.map((value) => value / norm);
  };
  const policy = { least_phones: 3, any_delta: true };
  for (const span of ["", "yearly_", "lifetime_"]) {
    for (const unit of ["", "phone_"]) {
      for (const what of ["epsilon", "delta"]) policy[`largest_${span}${unit}${what}`] = Infinity;
    }
  }
  const phone = openPhone({
    server: about.server,
    invitation: about.invitation,
    leader: bytes(about.leader),
    helper: bytes(about.helper),
    hierarchy: LabelHierarchy.flat(about.classes),
    policy,
    encoder: {
      name: about.encoder,
      dimensions: heard[0].length,
      rate: 8000,
      embed: (second) => unit(second.slice(0, heard[0].length)),
      project: (embedding, dimensions) => unit(embedding.slice(0, dimensions)),
    },
  });
  for (const [at, point] of heard.entries()) {
    const samples = new Float32Array(8000);
    samples.set(point.map((value) => value / 2));
    samples.set(point.map((value) => -value / 2), 4000);
    const recording = await phone.hear({ channels: [samples], rate: 8000 });
    if (labels[at] !== null) await phone.label(recording, labels[at]);
  }
  window.phone = phone;
}
"""
_VISIT = """
async () => {
  const visit = await phone.visit();
  const ending = await phone.ending();
  const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [visit, ending && [ending.type, hex(ending.phase)]];
}
"""


class PagePhone:
    """A phone in a page of another origin than the server's, in a browser of its own profile."""

    def __init__(self, running: Browser, origin: str, number: int, about: dict[str, Any]) -> None:
        points, labels = heard(number)
        self._context = running.new_context()
        self._page: Page = self._context.new_page()
        self._said: list[str] = []
        self._page.on("console", lambda message: self._said.append(message.text))
        self._page.goto(origin)
        self._page.evaluate(_OPEN, [about, points.tolist(), labels])
        self.ended: tuple[str, str] | None = None

    def visit(self) -> None:
        said, ending = self._page.evaluate(_VISIT)
        assert said["event"] in ("waiting", "answered", "phase over"), (said, self._said)
        self.ended = None if ending is None else (ending[0], ending[1])

    def steps(self) -> list[str]:
        steps: list[str] = self._page.evaluate(
            "async () => (await phone.ledger()).map((entry) => entry.step)"
        )
        return steps

    def close(self) -> None:
        self._page.evaluate("() => phone.leave()")
        self._context.close()


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
def running() -> Iterator[Browser]:
    with browser() as chromium:
        yield chromium


@pytest.fixture(scope="module")
def origin() -> Iterator[str]:
    with served(asked="http://127.0.0.1:*") as address:
        yield address


@pytest.fixture(scope="module")
def server(
    helper: ServedHelper, origin: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("leader")
    terms = ("--helper", helper.address, "--helper-key", helper.key, "--phone-origin", origin)
    with ServerProcess(folder, None, *terms) as running:
        leader = Credentials.load_or_create(folder, leads=True).leader
        helper.leaders = frozenset({bytes.fromhex(leader)})
        yield running


class Everybody(NamedTuple):
    """What a phase takes: a server, its helper, and phones in Node and in a browser."""

    server: ServerProcess
    helper: ServedHelper
    web: WebPhone
    running: Browser
    origin: str


@pytest.fixture
def everybody(
    server: ServerProcess, helper: ServedHelper, web: WebPhone, running: Browser, origin: str
) -> Everybody:
    return Everybody(server, helper, web, running, origin)


def played(
    everybody: Everybody, parameters: Parameters, in_python: int = 5, in_node: int = 5
) -> Outcome:
    """A whole phase of phones in Python, Node and a browser; return what was published."""
    phones = parameters.phones
    assert in_python + in_node < phones
    server, helper, web, running, origin = everybody
    operator = server.operator()
    (leader,) = helper.leaders
    about = {
        "server": server.address,
        "invitation": operator.invite(Invite(uses=phones)).code,
        "leader": leader.hex(),
        "helper": helper.key,
        "encoder": ENCODER.name,
        "classes": CLASSES,
    }
    phase = operator.start(StartPhase(parameters=parameters, anyway=True))
    crowd: list[PythonPhone | NodePhone | PagePhone] = [
        *(PythonPhone(number, about) for number in range(in_python)),
        *(NodePhone(web, number, about) for number in range(in_python, in_python + in_node)),
        *(
            PagePhone(running, origin, number, about)
            for number in range(in_python + in_node, phones)
        ),
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
@pytest.mark.parametrize("summation", [name for name in SummationName if name.by_operators])
def test_statistics_of_all_kinds_of_phones_are_those_of_plain_addition(
    everybody: Everybody, summation: SummationName
) -> None:
    asked = msgspec.structs.replace(STATISTICS, summation=summation)
    assert_counted(played(everybody, asked), PHONES)


@pytest.mark.slow
def test_confusion_matrices_of_all_kinds_of_phones_are_those_of_plain_addition(
    everybody: Everybody,
) -> None:
    # The last place has no name.
    places = AgreedPlaces(
        encoder=ENCODER.name,
        geometry=Geometry.SPHERICAL,
        centroids=Matrix.of(PLACES),
        labels=(0, 1, -1),
    )
    result = played(everybody, msgspec.structs.replace(STATISTICS, places=places, confusion=True))
    assert isinstance(result, Statistics)
    contacts, matrix = np.zeros(7), np.zeros((3, 3))
    for points, labels in map(heard, range(PHONES)):
        nearest = (points @ PLACES.T).argmax(axis=1)
        table, labelled = np.zeros((3, 3)), np.zeros(3)
        for place, label in zip(nearest, labels, strict=True):
            if label is None:
                contacts[3 + place if place < 2 else 6] += 1
                continue
            own = CLASSES.index(label)
            contacts[own] += 1
            labelled[own] += 1
            table[own, place] += place < 2
        matrix += table / max(1, np.linalg.norm(labelled))
    assert counts(result) == tuple(contacts)
    assert np.array(result.confusion).reshape(3, 3) == pytest.approx(matrix, abs=0.01)


@pytest.mark.slow
def test_twenty_pages_and_twenty_phones_in_python_are_in_one_sum(everybody: Everybody) -> None:
    many = msgspec.structs.replace(STATISTICS, phones=40)
    assert_counted(played(everybody, many, in_python=20, in_node=0), 40)


def assert_counted(result: Outcome, phones: int) -> None:
    """Contacts are those that the phones were told, by plain addition."""
    assert isinstance(result, Statistics)
    spoken = [label for number in range(phones) for label in heard(number)[1]]
    assert counts(result) == (*map(spoken.count, CLASSES), 0, 0, 0, spoken.count(None))
    assert result.phones == phones


@pytest.mark.slow
def test_discovery_by_all_kinds_of_phones_gives_what_plain_addition_gives(
    everybody: Everybody,
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
    result = played(everybody, DISCOVERY)
    assert isinstance(result, Discovered)
    assert result.names == expected.names == CLASSES
    found, plain = (unit_rows(each.centroids.array().astype(float)) for each in (result, expected))
    assert np.abs(found - plain).max() < 1e-3


@pytest.mark.slow
def test_samples_are_labelled_by_the_votes_of_all_kinds_of_phones(everybody: Everybody) -> None:
    result = played(everybody, LABELLING)
    assert isinstance(result, Labelled)
    answers = [NearestRecordings.of(*heard(number)).answers(SAMPLES) for number in range(PHONES)]
    votes = [[column.count(label) for label in CLASSES] for column in zip(*answers, strict=True)]
    assert [list(row) for row in result.label_votes] == votes
    assert list(result.agreement) == [max(row) for row in votes]
