"""What a former version left in the middle of its phases is opened, and loses nothing but sums.

A secure sum that was under way ends by name: its keys were made without the salt of today's.

`former/make.py` says what the files hold and how they were made.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from itertools import count
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psycopg
import pytest
from support.api_caller import Caller, Server
from support.policies import without_budget

from earshot_client.labels import LabelHierarchy
from earshot_client.phone import Phone
from earshot_client.store.encrypted import EncryptedStore
from earshot_client.transport.enrolment import enrol, signing_key
from earshot_client.visits.endings import Endings
from earshot_client.visits.outcome import Event
from earshot_client.visits.participation import Participation
from earshot_protocol.messages import Failed
from earshot_protocol.phases.learning import Result
from earshot_protocol.phases.statistics import Statistics
from earshot_protocol.privacy.local_mechanisms import COUNTED_RECORDINGS
from earshot_protocol.secure_sum.rounds import FORMER_SUM
from earshot_protocol.wire import Answer, Task
from earshot_server.api.views import PhaseView
from earshot_server.discovery.optics import Optics
from earshot_server.processes.driver import Driver
from earshot_server.processes.embedded import EmbeddedPostgres, embedded
from earshot_server.records import PhaseRecord
from earshot_server.store.archive import Archive
from earshot_server.store.database import Database

FORMER = Path(__file__).parent / "former"
NOON = datetime(2026, 3, 1, 12)
RATE = 8000
HERTZ = {"bus": 300, "park": 1000, "office": 1700}
HIERARCHY = LabelHierarchy(
    {"bus": ("tram", "coach"), "park": ("forest", "garden"), "office": ("desk", "meeting")}
)
POLICY = without_budget(least_phones=3)
MOST_TURNS = 40
_numbers = count()


class FormerPhone(msgspec.Struct, frozen=True):
    """Of a phone: the key of its file, what it told then, and what its ledger grew by later."""

    key: str
    ledger: list[dict[str, Any]]
    scenes: dict[str, str | None]
    grown: list[dict[str, Any]]


class Former(msgspec.Struct, frozen=True):
    """What the former version said of the files, and of where it went from there itself."""

    names: dict[str, str]
    phases: list[PhaseView]
    phones: dict[str, FormerPhone]
    endings: dict[str, Result | Statistics | Failed]

    def ending(self, name: str) -> Result | Statistics | Failed:
        return self.endings[self.names[name]]


EXPECTED = msgspec.json.decode((FORMER / "expected.json").read_bytes(), type=Former)


class Pitch:
    """The encoder of the phones: the loudest frequency, drawn on a parabola."""

    name = "pitch"
    dimensions = 2

    def embed(self, samples: np.ndarray) -> np.ndarray:
        kilohertz = np.abs(np.fft.rfft(samples)).argmax(axis=1) / 1000
        return np.stack([kilohertz - 1, (kilohertz - 1) ** 2 - 0.25], axis=1).astype(np.float32)

    def project(self, embeddings: np.ndarray, dimensions: int) -> np.ndarray:
        return embeddings[:, :dimensions].astype(np.float32)


class Line:
    """A phone's transport to an application in this process."""

    def __init__(self, server: Server, store: EncryptedStore) -> None:
        self._caller = Caller(server.app, key=signing_key(store))
        self._endings = Endings(store)
        enrol(store, self, None)  # type: ignore[arg-type]

    @property
    def phone(self) -> str:
        return self._caller.name

    @phone.setter
    def phone(self, name: str) -> None:
        self._caller.name = name

    def task(self) -> Task:
        return self._caller.task(self._endings.known())

    def send(self, answer: Answer) -> None:
        response = self._caller.answer(answer)
        assert response.status_code == 204, response.data


def opened(folder: Path, name: str) -> EncryptedStore:
    key = bytes.fromhex(EXPECTED.phones[name].key)
    return EncryptedStore(folder / f"{name}.db", key, dimensions=Pitch.dimensions)


def phone_of(name: str, store: EncryptedStore) -> Phone:
    random = np.random.default_rng([9, *name.encode()])
    return Phone(store, Pitch(), POLICY, hierarchy=HIERARCHY, random=random.bytes)


def tone(hertz: int) -> np.ndarray:
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(RATE) / RATE)


def told(phone: Phone) -> list[dict[str, Any]]:
    """Its ledger, as the former version told it: without days and events."""
    return [
        {key: value for key, value in entry.items() if key not in ("day", "event")}
        for entry in phone.ledger.export()
    ]


def scenes_named(phone: Phone) -> dict[str, str | None]:
    return {scene: phone.scene(tone(hertz), RATE) for scene, hertz in HERTZ.items()}


class World:
    """The server and the phones, as they were left, under the present code.

    Args:
        url: of a database without any table.
        folder: for copies of the phones' files.
    """

    def __init__(self, url: str, folder: Path) -> None:
        with psycopg.connect(url) as connection:
            connection.execute((FORMER / "database.sql").read_bytes())
        self.folder = folder / "phones"
        shutil.copytree(FORMER / "phones", self.folder)
        self.database = Database(url)
        self.database.migrate()
        self.archive = Archive(self.database)
        self.server = Server.over(
            self.database,
            folder / "server",
            phone_requests_per_minute=10**6,
            address_requests_per_minute=10**6,
        )
        self.phones: dict[str, Phone] = {}
        self.parts: dict[str, Participation] = {}
        self.open_phones()

    def open_phones(self) -> None:
        for name in EXPECTED.phones:
            store = opened(self.folder, name)
            self.phones[name] = phone_of(name, store)
            self.parts[name] = Participation(self.phones[name], store, Line(self.server, store))

    def close_phones(self) -> None:
        for phone in self.phones.values():
            phone.close()

    def go_on(self) -> None:
        """Until the server has nothing to do, and no phone has."""
        driver = Driver(self.database, Optics(), keep_seconds=1e10)
        driver.turn()
        for _ in range(MOST_TURNS):
            for name in self.parts:
                self.visit(name)
            if not driver.turn():
                break

    def visit(self, name: str) -> None:
        while (visit := self.parts[name].visit(NOON)).event is not Event.WAITING:
            assert visit.event in (Event.ANSWERED, Event.ENDED), f"{name}: {visit}"

    def record(self, name: str) -> PhaseRecord:
        record = self.archive.phase(bytes.fromhex(EXPECTED.names[name]))
        assert record is not None
        return record


@pytest.fixture(scope="module")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedPostgres]:
    quick = {"fsync": "off", "synchronous_commit": "off"}
    with embedded(tmp_path_factory.mktemp("former"), quick) as running:
        yield running


@contextmanager
def restored(postgres: EmbeddedPostgres, folder: Path) -> Iterator[World]:
    name = f"former_{next(_numbers)}"
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    world = World(postgres.url.replace("/postgres?", f"/{name}?"), folder)
    yield world
    world.close_phones()
    world.database.close()


@pytest.fixture
def world(postgres: EmbeddedPostgres, tmp_path: Path) -> Iterator[World]:
    """As it was left."""
    with restored(postgres, tmp_path) as left:
        yield left


@pytest.fixture(scope="module")
def later(postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """The same once everything is over, with the phones' files closed and opened again."""
    with restored(postgres, tmp_path_factory.mktemp("later")) as left:
        left.go_on()
        left.close_phones()
        left.open_phones()
        yield left


# ------------------------------------------------------------------------------ as it was left


def test_all_phases_are_seen_as_they_were(world: World) -> None:
    records = world.archive.phases()
    # An operator's stop was shown as a failure then.
    expected = [
        msgspec.structs.replace(view, status="stopped", step="stopped")
        if view.phase == EXPECTED.names["stopped"]
        else view
        for view in EXPECTED.phases
    ]
    assert [PhaseView.of(record) for record in records] == expected
    assert [record.status for record in records] == [
        *("gathering", "running", "running"),
        *("stopped", "failed", "published"),
    ]
    assert world.record("learning").step == "centroid vote: masked input"
    assert world.record("statistics").step == "histogram: share keys"
    for name in ("published", "failed", "stopped"):
        assert world.record(name).ending == EXPECTED.ending(name)
    assert world.archive.counts().phones == len(EXPECTED.phones)


def test_the_dashboard_and_operators_are_shown_them(world: World) -> None:
    overview = world.server.read("/")
    assert overview.status_code == 200
    for name in EXPECTED.names.values():
        assert name in overview.text
        assert world.server.read(f"/phases/{name}").status_code == 200
        assert world.server.read(f"/v1/phases/{name}/export").status_code == 200
    assert "park" in world.server.read("/statistics").text


def test_phones_know_what_they_knew(world: World) -> None:
    for name, phone in world.phones.items():
        assert told(phone) == EXPECTED.phones[name].ledger, name
        assert not any(entry["day"] for entry in phone.ledger.export())
        assert phone.result == EXPECTED.ending("published")
        # Nobody tested that result's names against noise, so its scenes have none any more.
        assert scenes_named(phone) == dict.fromkeys(EXPECTED.phones[name].scenes)
    assert set(EXPECTED.phones["a0"].scenes.values()) == set(HERTZ)


def test_a_phones_file_is_whole_after_it_was_opened_and_closed(tmp_path: Path) -> None:
    shutil.copytree(FORMER / "phones", tmp_path / "phones")
    for name, former in EXPECTED.phones.items():
        with closing(opened(tmp_path / "phones", name)) as store:
            embeddings, choices = store.recordings()
            numbers = [each.number for each in store.descriptions()]
            assert {(each.day, each.counted) for each in store.descriptions()} <= {(None, False)}
            values = {key: store.get(key) for key in ("membership", "sum", "answered", "result")}
        with phone_of(name, opened(tmp_path / "phones", name)) as phone:
            recording = phone.hear(tone(HERTZ["park"]), RATE)
            phone.label(recording, "garden")
        with closing(opened(tmp_path / "phones", name)) as store:
            heard, chosen = store.recordings()
            np.testing.assert_array_equal(heard[:-1], embeddings)
            np.testing.assert_array_equal(heard[-1:], Pitch().embed(tone(HERTZ["park"])[None]))
            assert chosen == (*choices, "garden")
            assert [each.number for each in store.descriptions()[:-1]] == numbers
            assert store.descriptions()[-1].day is not None
            assert {key: store.get(key) for key in values} == values
            assert told(phone_of(name, store)) == former.ledger


# ------------------------------------------------------------------------------- once it is over


def test_a_sum_that_began_under_the_former_protocol_ends_by_name(later: World) -> None:
    """Its keys are not bound to what phones were told, and no phone of today makes such keys."""
    for name in ("published", "failed", "stopped"):
        assert later.record(name).ending == EXPECTED.ending(name), name
    for name in ("learning", "statistics"):
        record = later.record(name)
        assert record.status == "failed"
        assert record.ending == Failed(phase=record.phase, reason=FORMER_SUM)


def test_a_phone_that_comes_before_the_phase_has_ended_is_told_why_it_cannot_go_on(
    world: World,
) -> None:
    before = world.phones["a4"].ledger.export()
    told = world.parts["a4"].visit(NOON)
    assert (told.event, told.detail) == (Event.TROUBLE, FORMER_SUM)
    # Whoever has answered gives that answer again, as it was.
    assert world.parts["a3"].visit(NOON).event is Event.ANSWERED
    Driver(world.database, Optics(), keep_seconds=1e10).turn()
    assert world.parts["a4"].visit(NOON).event is Event.ENDED
    assert world.phones["a4"].ledger.export() == before


def of_today(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of the former version as it is made now.

    It let both conditions of a sum's graph spend one 2^-40 between them, and counted the 8
    recordings that these phones hold.
    """
    both, recordings = (2.0**-39 + 2.0**-128) / (2.0**-40 + 2.0**-128), COUNTED_RECORDINGS / 8
    through_a_sum = entry["mechanism"].startswith("ballot sum")
    of_all_recordings = entry["unit"] == "phone" and not through_a_sum
    return entry | {
        "epsilon": pytest.approx(entry["epsilon"] * (recordings if of_all_recordings else 1)),
        "delta": pytest.approx(entry["delta"] * (both if through_a_sum else 1), rel=1e-9),
    }


def test_ledgers_have_grown_by_what_came_after(later: World) -> None:
    for name, phone in later.phones.items():
        former = EXPECTED.phones[name]
        grown = [entry for entry in former.grown if entry["phase"] == EXPECTED.names["gathering"]]
        first = len(former.ledger) + 1
        numbered = [
            of_today(entry) | {"number": number} for number, entry in enumerate(grown, first)
        ]
        assert grown
        assert told(phone) == [*former.ledger, *numbered], name
        assert all(entry["day"] for entry in phone.ledger.export()[first - 1 :])


def test_what_gathered_phones_has_found_all_of_them(later: World) -> None:
    record = later.record("gathering")
    assert (record.status, record.joined) == ("published", len(later.phones))
    for name, phone in later.phones.items():
        assert phone.result == record.ending
        assert set(scenes_named(phone).values()) == set(HERTZ), name
        assert later.parts[name].visit(NOON).event is Event.WAITING
